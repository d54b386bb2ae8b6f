"""Which segment a store trusts: a line in its own table of facts, so that it goes wherever the store's file goes.

A backup that is restored brings its own line with it. What lies in the folder says nothing by itself.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass

import apsw

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.segment_files.container import MAGIC
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.changes import SEGMENT
from speckit_memory.memory.store.tables.meta import get_meta, set_meta

FORGOTTEN = "segment_forgotten"
"""Under it stands the last change after which memories were forgotten on purpose."""
NAME = re.compile(r"[0-9a-f]{16}\.seg")
"""What every segment is called: nothing in its name counts, and none bears the name of an earlier one."""
FORMAT = 2
"""Which arrays a segment has and what they mean. Of the layout of the file, see `container`."""
VERSION = f"{MAGIC[-1]}.{FORMAT}"
"""The layout and the format that this version of the product reads and writes; no others are used."""
USES_OF_A_DOCUMENT = 5
"""So many changes of the numbers of a memory cost what a changed document costs."""
LINKS_OF_A_DOCUMENT = 20
"""A segment holds no links, so that nobody takes theirs in; but the log of changes has room for so many only."""
_TYPES = {"name": str, "digest": str, "bytes": int, "sequence": int, "token": int, "version": str}


@dataclass(frozen=True, slots=True)
class Vouched:
    """The file that a store trusts.

    `digest` is the SHA-256 of its table in hexadecimal digits; `sequence` and `token` are those of the last change that
    it holds; `version` is that of its layout.
    """

    name: str
    digest: str
    bytes: int
    sequence: int
    token: int
    version: str = VERSION


def read(connection: apsw.Connection) -> Vouched | None:
    """What the state that the connection sees vouches for; None for nothing, or for what no version of ours wrote."""
    try:
        found = json.loads(get_meta(connection, SEGMENT) or "null")
    except ValueError:
        return None
    if not isinstance(found, dict) or set(found) != set(_TYPES):
        return None
    if any(type(found[name]) is not kind for name, kind in _TYPES.items()) or not NAME.fullmatch(found["name"]):
        return None
    return Vouched(**found)


def vouch(txn: Transaction, segment: Vouched) -> bool:
    """Trusts this file from now on, unless the store is no longer the one whose state the file holds.

    Whoever restores a backup while a segment is built sets the store back, and it may go on from there to the same
    number by other changes. Each has a token of its own. Nor is a file trusted that holds what was forgotten on purpose
    while it was written.
    """
    if behind(txn.connection, segment) is None or holds_forgotten(txn.connection, segment):
        return False
    set_meta(txn, SEGMENT, json.dumps(asdict(segment)))
    return True


def forget(txn: Transaction) -> None:
    """Notes that memories were forgotten on purpose, up to now: files of earlier states still hold them."""
    set_meta(txn, FORGOTTEN, str(last_change(txn.connection)[0]))


def holds_forgotten(connection: apsw.Connection, segment: Vouched) -> bool:
    """Whether a file may hold what was forgotten on purpose."""
    noted = get_meta(connection, FORGOTTEN) or ""
    return noted.isdecimal() and segment.sequence < int(noted)


def give_up(txn: Transaction) -> None:
    """Trusts no file from now on."""
    txn.connection.execute("DELETE FROM meta WHERE key = ?", (SEGMENT,))


def behind(connection: apsw.Connection, segment: Vouched) -> int | None:
    """How many changes came after those that a segment holds.

    None when the log of changes does not reach back that far, or tells another history.
    """
    first, last = changes.ends(connection)
    if first is None:
        return None if segment.sequence else 0
    if not first - 1 <= segment.sequence <= last:
        return None
    if segment.sequence >= first:
        token = value(connection, "SELECT token FROM changes WHERE seq = ?", (segment.sequence,))
        if token != segment.token:
            return None
    return last - segment.sequence


def to_take_in(connection: apsw.Connection, segment: Vouched) -> int:
    """How much a process has to do beside a segment, as a number of changed documents. Each search notes ten uses, and
    each link that came or went two memories."""
    found = value(
        connection,
        "SELECT count(*) FILTER (WHERE kind IN ('put', 'delete')) + count(*) FILTER (WHERE kind = 'attributes') / ? "
        "+ count(*) FILTER (WHERE kind = 'edges') / ? FROM changes WHERE seq > ?",
        (USES_OF_A_DOCUMENT, LINKS_OF_A_DOCUMENT, segment.sequence),
    )
    return int(found)


def last_change(connection: apsw.Connection) -> tuple[int, int]:
    """Number and token of the last change; zeros in a store that never changed."""
    found = rows(connection, "SELECT seq, token FROM changes ORDER BY seq DESC LIMIT 1")
    return found[0] if found else (0, 0)
