"""The log of changes, by which an in-memory model of the store catches up without reading everything again.

Kinds: `put` (the memory is new or its document changed), `delete`, `attributes` (only facts of `memories` changed) and
`edges` (an edge of this memory came, went or changed).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import apsw

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.identity import KEPT
from speckit_memory.memory.store.file.guarding.queries import rows, value

Kind = Literal["put", "delete", "edges", "attributes"]
Log = tuple[int, list[tuple[int, Kind]]]
"""The number of the last change, and what changed."""

MOST_KEPT = 20 * KEPT
"""So many entries are kept at most for the segment that the store vouches for, which is of no use to who cannot tell
what changed since: mere use of memories is logged, and a few hundred searches would else make it so."""

# Of one memory the last time that it was written or deleted tells what must be read again: what was deleted may come
# back under its id. A column beside max() is of the row that has the greatest value.
_CONTENT = """
SELECT memory_id, kind, max(CASE kind WHEN 'attributes' THEN 0 ELSE seq END) FROM changes
WHERE seq > ? AND kind != 'edges' GROUP BY memory_id ORDER BY memory_id
"""

SEGMENT = "segment"
"""The name of the fact by which the store vouches for its segment: see `segments.vouched`."""

# One range of the log, whatever it has grown to. What a hand has spoilt in `meta` vouches for nothing.
_FORGET = """
DELETE FROM changes WHERE seq <= (
    SELECT max(last - :most, min(last - :kept, coalesce(segment - 1, last))) FROM (
        SELECT max(seq) AS last, (
            SELECT json_extract(value, '$.sequence') FROM meta WHERE key = :segment AND json_valid(value)
        ) AS segment FROM changes
    )
)
"""


def record(txn: Transaction, memory_ids: Iterable[int], kind: Kind) -> None:
    """Appends one entry per memory and forgets all but the last 10,000, and those that came after the segment."""
    txn.connection.executemany(
        "INSERT INTO changes (memory_id, kind, token) VALUES (?, ?, random())",
        [(memory_id, kind) for memory_id in memory_ids],
    )
    txn.connection.execute(_FORGET, {"kept": KEPT, "most": MOST_KEPT, "segment": SEGMENT})


def latest(connection: apsw.Connection) -> int:
    """The number of the last change; 0 in a store that never changed."""
    seq: int = value(connection, "SELECT coalesce(max(seq), 0) FROM changes")
    return seq


def ends(connection: apsw.Connection) -> tuple[int | None, int]:
    """The numbers of the first change that is kept and of the last; None and 0 in a store that never changed."""
    # One aggregate a SELECT looks at one end of the index; both in one go through all of the log.
    first, last = rows(connection, "SELECT (SELECT min(seq) FROM changes), (SELECT max(seq) FROM changes)")[0]
    return first, last or 0


def content_since(connection: apsw.Connection, seq: int) -> Log | None:
    """As `since`, for who knows nothing of edges: of all that changed, however many, there is one entry at most, for
    the memory 0, which is none."""
    first, last = ends(connection)
    if first is None:
        return (0, []) if seq == 0 else None
    if not first - 1 <= seq <= last:
        return None
    found = rows(connection, _CONTENT, (seq,))
    # what came back after a deletion has other edges
    edges = rows(connection, "SELECT 1 FROM changes WHERE seq > ? AND kind IN ('edges', 'delete') LIMIT 1", (seq,))
    entries: list[tuple[int, Kind]] = [(0, "edges")] if edges else []
    return last, [*entries, *((memory, kind) for memory, kind, _ in found)]


def since(connection: apsw.Connection, seq: int) -> Log | None:
    """The last number, and what changed after `seq`; None when the log does not reach back that far.

    Ordered by memory. A memory has at most one of put and delete, the last, else attributes where only these changed;
    `edges` comes before it as an entry of its own, also where a deleted memory came back, and is left out for one that
    is deleted.
    """
    found = rows(connection, "SELECT seq, memory_id, kind FROM changes WHERE seq >= ? ORDER BY seq", (seq,))
    if not found:
        return (0, []) if seq == 0 and latest(connection) == 0 else None
    if seq < value(connection, "SELECT min(seq) FROM changes") - 1:
        return None
    content: dict[int, Kind] = {}
    edges: set[int] = set()
    for number, memory_id, kind in found:
        if number == seq:
            continue
        if kind in ("edges", "delete"):
            edges.add(memory_id)
        if kind in ("put", "delete") or (kind == "attributes" and memory_id not in content):
            content[memory_id] = kind
    entries: list[tuple[int, Kind]] = []
    for memory_id in sorted(content.keys() | edges):
        changed = content.get(memory_id)
        if memory_id in edges and changed != "delete":
            entries.append((memory_id, "edges"))
        if changed is not None:
            entries.append((memory_id, changed))
    return found[-1][0], entries
