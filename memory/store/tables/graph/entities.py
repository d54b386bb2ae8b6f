"""Entities that memories mention, and the version of each text that was scanned for them (features M10, R10)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.tables.memories.absences import present

# IS NOT also holds for NULL: memories that were never scanned
_OUTDATED = "FROM memories m LEFT JOIN entity_scans s ON s.memory_id = m.id WHERE s.content_hash IS NOT m.content_hash"


class Unread(NamedTuple):
    """A memory whose present text has not been scanned."""

    memory: int
    content_hash: str
    title: str
    body: str


class EntityRow(NamedTuple):
    """An entity and one memory that mentions it; `holders` is the number of all such memories. `telling` is false for
    mere names of programming languages."""

    name: str
    holders: int
    telling: bool
    memory: int


def count_outdated(connection: Connection) -> int:
    """Number of memories whose present text has not been scanned."""
    number: int = value(connection, f"SELECT count(*) {_OUTDATED}")
    return number


def count_scanned(connection: Connection) -> int:
    """Number of memories that have been scanned."""
    number: int = value(connection, "SELECT count(*) FROM entity_scans")
    return number


def names(connection: Connection) -> int:
    """Number of distinct entities."""
    number: int = value(connection, "SELECT count(DISTINCT entity) FROM memory_entities")
    return number


def unread(connection: Connection, limit: int) -> Iterator[Unread]:
    """The first `limit` memories to scan, by id, with their texts."""
    # the inner SELECT chooses the memories before any body is read
    found = connection.execute(
        "SELECT id, content_hash, title, body FROM bodies JOIN "
        f"(SELECT m.id, m.content_hash, m.title {_OUTDATED} ORDER BY m.id LIMIT ?) ON memory_id = id ORDER BY id",
        (limit,),
    )
    return (Unread(*row) for row in found)


def store(txn: Transaction, memory: int, content_hash: str, named: Iterable[tuple[str, str]]) -> None:
    """Replaces the entities of a memory; does nothing for one that was deleted meanwhile.

    Args:
        txn: The transaction.
        memory: Id of the memory.
        content_hash: Hash of the scanned text.
        named: The entities found in it, as (name, kind).
    """
    connection = txn.connection
    if not value(connection, "SELECT 1 FROM memories WHERE id = ?", (memory,)):
        return
    connection.execute("DELETE FROM memory_entities WHERE memory_id = ?", (memory,))
    connection.executemany("INSERT INTO memory_entities VALUES (?, ?, ?)", [(memory, *each) for each in named])
    connection.execute("INSERT OR REPLACE INTO entity_scans VALUES (?, ?)", (memory, content_hash))


def shared_entities(connection: Connection, most: int) -> list[EntityRow]:
    """Entities mentioned by 2 to `most` present memories, one row per memory: by holders, name, memory."""
    # `holders` must count present memories only, so both sides read `held`; memory_entities_by_entity has it in
    # groups
    found = rows(
        connection,
        f"WITH held AS (SELECT * FROM memory_entities WHERE {present('memory_id')}) "
        "SELECT entity, holders, telling, memory_id FROM held JOIN "
        "(SELECT entity, count(*) AS holders, max(iif(kind <> 'language', 1, 0)) AS telling FROM held GROUP BY entity "
        "HAVING count(*) BETWEEN 2 AND ?) USING (entity) ORDER BY holders, entity, memory_id",
        (most,),
    )
    return [EntityRow(name, holders, bool(telling), memory) for name, holders, telling, memory in found]
