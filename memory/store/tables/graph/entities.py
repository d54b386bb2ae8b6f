"""What memories name, and up to which text of each that is known (feature M10, R10)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import apsw

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.tables.memories.absences import present

_OUTDATED = "FROM memories m LEFT JOIN entity_scans s ON s.memory_id = m.id WHERE s.content_hash IS NOT m.content_hash"


class Unread(NamedTuple):
    """A memory whose text has not been looked at as it is now."""

    memory: int
    content_hash: str
    title: str
    body: str


class Held(NamedTuple):
    """A name, how many memories have it, and one of them; `telling` where it is more than a language of code."""

    name: str
    holders: int
    telling: bool
    memory: int


def outdated(connection: apsw.Connection) -> int:
    """How many memories have not been looked at as they are now."""
    number: int = value(connection, f"SELECT count(*) {_OUTDATED}")
    return number


def scanned(connection: apsw.Connection) -> int:
    """How many memories have been looked at."""
    number: int = value(connection, "SELECT count(*) FROM entity_scans")
    return number


def names(connection: apsw.Connection) -> int:
    """How many different names memories have."""
    number: int = value(connection, "SELECT count(DISTINCT entity) FROM memory_entities")
    return number


def unread(connection: apsw.Connection, limit: int) -> list[Unread]:
    """The first of them, by id, with their texts."""
    found = rows(
        connection,
        "SELECT id, content_hash, title, body FROM texts JOIN "
        f"(SELECT m.id, m.content_hash, m.title {_OUTDATED} ORDER BY m.id LIMIT ?) ON memory_id = id ORDER BY id",
        (limit,),
    )
    return [Unread(*row) for row in found]


def store(txn: Transaction, memory: int, content_hash: str, named: Iterable[tuple[str, str]]) -> None:
    """Keeps the (name, kind) that the text with this hash has; nothing for a memory that was deleted meanwhile."""
    connection = txn.connection
    if not value(connection, "SELECT 1 FROM memories WHERE id = ?", (memory,)):
        return
    connection.execute("DELETE FROM memory_entities WHERE memory_id = ?", (memory,))
    connection.executemany("INSERT INTO memory_entities VALUES (?, ?, ?)", [(memory, *each) for each in named])
    connection.execute("INSERT OR REPLACE INTO entity_scans VALUES (?, ?)", (memory, content_hash))


def shared(connection: apsw.Connection, most: int) -> list[Held]:
    """Each name that 2 to `most` memories have whose files are there, with each of them: by holders, name, memory."""
    found = rows(
        connection,
        f"WITH held AS (SELECT * FROM memory_entities WHERE {present('memory_id')}) "
        "SELECT entity, holders, telling, memory_id FROM held JOIN "
        "(SELECT entity, count(*) AS holders, max(kind <> 'language') AS telling FROM held GROUP BY entity "
        "HAVING count(*) BETWEEN 2 AND ?) USING (entity) ORDER BY holders, entity, memory_id",
        (most,),
    )
    return [Held(name, holders, bool(telling), memory) for name, holders, telling, memory in found]
