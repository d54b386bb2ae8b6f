"""The log of changes, from which an in-memory model of the store is updated without rereading everything.

Kinds: `put` (the memory is new or its document changed), `delete`, `attributes` (only columns of `memories` changed)
and `edges` (an edge of this memory was added, removed or changed).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.identity import KEPT
from speckit_memory.memory.store.file.guarding.queries import rows, value

Kind = Literal["put", "delete", "edges", "attributes"]
Log = tuple[int, list[tuple[int, Kind]]]
"""The number of the last change, and the changed memories with the kind of change."""

MOST_KEPT = 20 * KEPT
"""Upper limit of entries kept for the sake of the trusted segment, which is useless without the changes made since it
was written. Uses of memories are logged too, so that a few hundred searches would exceed `KEPT`."""

# Per memory, the last write or deletion decides what must be reread, since a deleted memory may be put again under its
# id.
_CONTENT = """
SELECT memory_id, kind FROM (
    SELECT memory_id, kind, row_number() OVER (
        PARTITION BY memory_id ORDER BY CASE kind WHEN 'attributes' THEN 0 ELSE seq END DESC
    ) AS place FROM changes WHERE seq > ? AND kind != 'edges'
) WHERE place = 1 ORDER BY memory_id
"""

SEGMENT = "segment"
"""Key in `meta` of the segment that the store trusts: see `segment_files.trusted_segment`."""

# Deletes one range at the start of the log. An entry in `meta` that is not valid JSON counts as no segment.
# Keeps the last :kept entries and those from the segment's own on, whose token proves that it is of this history, but
# never more than :most.
_FORGET = """
DELETE FROM changes WHERE seq <= (
    SELECT max(last - :most, min(last - :kept, coalesce(segment - 1, last))) FROM (
        SELECT max(seq) AS last, (
            SELECT CAST(json_extract(value, '$.sequence') AS INTEGER) FROM meta
            WHERE key = :segment AND json_valid(value)
        ) AS segment FROM changes
    )
)
"""


def record(txn: Transaction, memory_ids: Iterable[int], kind: Kind) -> None:
    """Appends one entry per memory; before the commit, all but the last 10,000 and those since the trusted segment are
    deleted."""
    txn.connection.executemany(
        "INSERT INTO changes (memory_id, kind, token) VALUES (?, ?, random())",
        [(memory_id, kind) for memory_id in memory_ids],
    )
    # Once: in PostgreSQL, each of them would pass the rows that those before it in the transaction have deleted.
    txn.before_commit[_FORGET] = {"kept": KEPT, "most": MOST_KEPT, "segment": SEGMENT}


def latest(connection: Connection) -> int:
    """The number of the last change; 0 in a store without changes."""
    seq: int = value(connection, "SELECT coalesce(max(seq), 0) FROM changes")
    return seq


def ends(connection: Connection) -> tuple[int | None, int]:
    """The numbers of the first and last changes in the log; None and 0 in a store without changes."""
    # SQLite answers min() or max() from one end of the index only if it is the single aggregate of its SELECT.
    first, last = rows(connection, "SELECT (SELECT min(seq) FROM changes), (SELECT max(seq) FROM changes)")[0]
    return first, last or 0


def content_since(connection: Connection, seq: int) -> Log | None:
    """As `since`, but all changes of edges are one entry for the memory id 0, which no memory has."""
    first, last = ends(connection)
    if first is None:
        return (0, []) if seq == 0 else None
    if not first - 1 <= seq <= last:
        return None
    found = rows(connection, _CONTENT, (seq,))
    # a memory that was deleted and put again has other edges
    edges = rows(connection, "SELECT 1 FROM changes WHERE seq > ? AND kind IN ('edges', 'delete') LIMIT 1", (seq,))
    entries: list[tuple[int, Kind]] = [(0, "edges")] if edges else []
    return last, [*entries, *found]


def since(connection: Connection, seq: int) -> Log | None:
    """The last number, and the changes after `seq` by memory; None when the log does not reach back that far.

    Each memory has at most one entry of put and delete (the last one), or of attributes if only these changed. An entry
    `edges` comes before it, also if a deleted memory was put again; a deleted memory has none.
    """
    # from `seq` itself: without a row, the log is empty or of another history
    found = rows(connection, "SELECT seq, memory_id, kind FROM changes WHERE seq >= ? ORDER BY seq", (seq,))
    if not found:
        return (0, []) if seq == 0 and latest(connection) == 0 else None
    # Entries directly after `seq` may have been deleted: the changes since then are unknown.
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
