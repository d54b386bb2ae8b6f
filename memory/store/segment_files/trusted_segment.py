"""Records in the store which segment it trusts, as a row of its `meta` table that moves with the store's file.

A restored backup brings its own record. The contents of the folder prove nothing.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.segment_files.container import MAGIC
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.changes import SEGMENT
from speckit_memory.memory.store.tables.meta import get_meta, set_meta

FORGOTTEN = "segment_forgotten"
"""Meta key of the number of the last change after which memories were deliberately forgotten."""
NAME = re.compile(r"[0-9a-f]{16}\.seg")
"""Segment file name: 16 random hex digits. Never reused; carries no meaning."""
FORMAT = 3
"""Version of the set of arrays and their meanings. The layout of the file has its own version in `container`."""
VERSION = f"{MAGIC[-1]}.{FORMAT}"
"""The layout and format that this version of the product reads and writes; others are not used."""
USES_OF_A_DOCUMENT = 5
"""Changes of a memory's numbers that cost as much as one changed document."""
LINKS_OF_A_DOCUMENT = 20
"""Link changes counted as one document. A segment holds no links, but they fill the log of changes."""
_TYPES = {"name": str, "digest": str, "bytes": int, "sequence": int, "token": int, "version": str}


@dataclass(frozen=True, slots=True)
class TrustedSegment:
    """The file that a store trusts.

    `digest` is the hexadecimal SHA-256 of its table; `sequence` and `token` identify the last change that it includes;
    `version` is that of its layout and format.
    """

    name: str
    digest: str
    bytes: int
    sequence: int
    token: int
    version: str = VERSION


def read(connection: Connection) -> TrustedSegment | None:
    """The trusted segment in the state that the connection sees; None without one, or for an unknown record."""
    try:
        found = json.loads(get_meta(connection, SEGMENT) or "null")
    except ValueError:
        return None
    if not isinstance(found, dict) or set(found) != set(_TYPES):
        return None
    if any(type(found[name]) is not kind for name, kind in _TYPES.items()) or not NAME.fullmatch(found["name"]):
        return None
    return TrustedSegment(**found)


def vouch(txn: Transaction, segment: TrustedSegment) -> bool:
    """Trust this file from now on, unless the store is no longer in a later state of the same history.

    A backup restored while a segment is built sets the store back, and other changes may then reach the same sequence
    number; the token of each change tells them apart. A file with memories that were deliberately forgotten while it
    was written is not trusted either.
    """
    if behind(txn.connection, segment) is None or holds_forgotten(txn.connection, segment):
        return False
    set_meta(txn, SEGMENT, json.dumps(asdict(segment)))
    return True


def forget(txn: Transaction) -> None:
    """Record that memories were deliberately forgotten up to now: files of earlier states still contain them."""
    set_meta(txn, FORGOTTEN, str(last_change(txn.connection)[0]))


def holds_forgotten(connection: Connection, segment: TrustedSegment) -> bool:
    """Whether a file may contain deliberately forgotten memories."""
    noted = get_meta(connection, FORGOTTEN) or ""
    # Written after the forgetting, the file cannot contain the memories any more.
    return noted.isdecimal() and segment.sequence < int(noted)


def give_up(txn: Transaction) -> None:
    """Trust no file from now on."""
    txn.connection.execute("DELETE FROM meta WHERE key = ?", (SEGMENT,))


def behind(connection: Connection, segment: TrustedSegment) -> int | None:
    """Number of changes after those that a segment includes.

    None when the log of changes does not reach back that far, or belongs to another history.
    """
    first, last = changes.ends(connection)
    # an empty log: only a segment that was written before any change is up to date
    if first is None:
        return None if segment.sequence else 0
    # sequence = first - 1: the log begins right after the segment, and has no token of it to compare
    if not first - 1 <= segment.sequence <= last:
        return None
    # The log still has the segment's last change: its token must be the same.
    if segment.sequence >= first:
        token = value(connection, "SELECT token FROM changes WHERE seq = ?", (segment.sequence,))
        if token != segment.token:
            return None
    return last - segment.sequence


def catch_up_cost(connection: Connection, segment: TrustedSegment) -> int:
    """The cost of applying the changes since a segment, as a number of changed documents. Each search records ten uses,
    and each added or removed link counts for two memories."""
    # one pass over the entries after the segment, a range of the primary key
    found = value(
        connection,
        "SELECT count(*) FILTER (WHERE kind IN ('put', 'delete')) + count(*) FILTER (WHERE kind = 'attributes') / ? "
        "+ count(*) FILTER (WHERE kind = 'edges') / ? FROM changes WHERE seq > ?",
        (USES_OF_A_DOCUMENT, LINKS_OF_A_DOCUMENT, segment.sequence),
    )
    return int(found)


def last_change(connection: Connection) -> tuple[int, int]:
    """Number and token of the last change; zeros for a store without changes."""
    found = rows(connection, "SELECT seq, token FROM changes ORDER BY seq DESC LIMIT 1")
    return found[0] if found else (0, 0)
