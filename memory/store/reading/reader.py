"""Reading memories as tools show them. Nothing here writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import UnionType
from typing import NamedTuple
from unicodedata import normalize

import apsw

from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.memory.store.file.guarding.queries import integers, rows, value
from speckit_memory.memory.store.missing import MissingMemoryError
from speckit_memory.memory.store.reading.density import Density, density
from speckit_memory.memory.store.records import EARLIEST, LATEST, MENTION, UNKNOWN_TIME, MemoryRecord, Tier
from speckit_memory.memory.store.tables.memories import absences
from speckit_memory.memory.store.tables.memories.absences import PRESENT
from speckit_memory.memory.store.tables.memories.promotions import promotions
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.tables.words import surface
from speckit_memory.pipeline.ports import Ids, MemoryName, Passage


def _known(column: str) -> str:
    """A stored time, NULL where nobody knows it; older versions have stored times that no document has."""
    return f"iif({column} BETWEEN {EARLIEST} AND {LATEST}, nullif({column}, {UNKNOWN_TIME}), NULL)"


DAY = 86_400
EARLIEST_ZONE, LATEST_ZONE = 14 * 3_600, 12 * 3_600
"""By so much a day begins earlier, and ends later, somewhere on earth than in UTC."""
CREATED = (
    f"iif({_known('created_at')} = CAST(created_at / {DAY} AS INTEGER) * {DAY} AND updated_at BETWEEN "
    f"created_at - {EARLIEST_ZONE} AND created_at + {DAY + LATEST_ZONE}, updated_at, {_known('created_at')})"
)
"""When a memory was made, as exactly as is known: for a day without a time, the change of the file on that day."""
LARGEST_ID = 2**63 - 1
"""SQLite has no larger number."""
SORTS = {
    "updated_at": f"{_known('updated_at')} DESC",
    "created_at": f"{CREATED} DESC",
    "last_accessed": f"{_known('last_accessed')} DESC NULLS LAST",
    "importance_weight": "importance_weight DESC",
    "title": "title",
    "key": "key",
}
"""Accepted orders of `list_memories`; equal ones follow by id."""

_MEMORY = (
    "SELECT id, key, title, folder, tier, context_type, document_type, content_hash, "
    f"{_known('created_at')}, {_known('updated_at')}, "
    f"{_known('last_accessed')}, access_count, importance_weight, confidence, validation_count, embedding_status, "
    "chunk_count, characters FROM memories"
)
_FACTS: tuple[type | UnionType, ...] = (
    str,
    str,
    str,
    float | None,
    float | None,
    float | None,
    int,
    float,
    float,
    int,
    str,
    int,
    int,
)
"""Of what kind the columns of `_MEMORY` are, from `context_type` on; a damaged file may hold anything."""
_PASSAGE = "SELECT id, memory_id, text, heading, anchor, first_line, last_line FROM chunks"


class KnownFile(NamedTuple):
    """What the store knows of a file; `mtime_ns` is None when its document did not come from a file.

    `ctime_ns` is when its state changed last as the last index run saw it, None where none has; `absent` says that it
    was not there. `restored` is the hash of its content where a checkpoint has put something else into the store, ""
    where it brought the memory back without a file, and None otherwise; `content_hash` is that of the file then.
    """

    id: int
    mtime_ns: int | None
    content_hash: str
    embedding_status: str
    ctime_ns: int | None = None
    absent: bool = False
    restored: str | None = None


class Place(NamedTuple):
    """Where a memory is, when it changed last (None where nobody knows), and whether it was put away."""

    id: int
    folder: str
    updated_at: float | None
    put_away: bool


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    """How much a store holds. `absent` memories, whose files are not there, are neither among `memories` nor counted by
    tier or folder. `oldest` and `newest` are times of creation, None where none is known.

    `pending_links` counts declared links, but for mentions, that no edge stands for; `dimensions` is 0 and
    `embedding_model` empty before the first vector.
    """

    memories: int
    chunks: int
    edges: int
    triggers: int
    pending_embeddings: int
    pending_links: int
    absent: int
    by_tier: dict[Tier, int]
    by_folder: dict[str, int]
    oldest: float | None
    newest: float | None
    embedding_model: str
    dimensions: int
    bytes: int
    density: Density


def get_memory(connection: apsw.Connection, name: int | str) -> MemoryRecord:
    """The memory with this id or key, whose letters with marks may be written in either normal form. Raises E080."""
    if isinstance(name, int) and abs(name) > LARGEST_ID:  # which may be too long to be told
        raise SpeckitError("E080", "there is no memory with an id beyond 64 bits")
    found = _memories(connection, f"{_MEMORY} WHERE {'id' if isinstance(name, int) else 'key'} = ?", (name,))
    if not found and isinstance(name, str) and not name.isascii():
        spelled = (normalize("NFC", name), normalize("NFD", name))
        found = _memories(connection, f"{_MEMORY} WHERE key IN (?, ?) ORDER BY key LIMIT 1", spelled)
    if not found:
        raise MissingMemoryError(name)
    return found[0]


def list_memories(
    connection: apsw.Connection, folder: str = "", sort: str = "updated_at", limit: int = 20, offset: int = 0
) -> tuple[list[MemoryRecord], int]:
    """One page of the memories of a folder and its sub-folders (all when empty), and how many there are altogether,
    absent ones left out.

    Raises E030 for an order that is not in `SORTS`, E032 for a negative limit or offset.
    """
    if sort not in SORTS:
        raise SpeckitError("E030", f"there is no order '{sort}'", hint=nearest(sort, SORTS))
    if limit < 0 or offset < 0:
        raise SpeckitError("E032", f"limit {limit} and offset {offset} must not be negative")
    condition, bindings = _below("folder", folder)
    condition = f"{condition} AND {PRESENT}"
    total: int = value(connection, f"SELECT count(*) FROM memories WHERE {condition}", bindings)
    page = f"{_MEMORY} WHERE {condition} ORDER BY {SORTS[sort]}, id LIMIT ? OFFSET ?"
    return _memories(connection, page, (*bindings, limit, offset)), total


def keys(connection: apsw.Connection) -> list[str]:
    """The keys of all memories but the absent ones, in order."""
    return [key for (key,) in rows(connection, f"SELECT key FROM memories WHERE {PRESENT} ORDER BY key")]


def places(connection: apsw.Connection) -> list[Place]:
    """Where all memories but the absent ones are, by id."""
    away = "id IN (SELECT memory_id FROM archivals WHERE restored_at IS NULL)"
    found = rows(
        connection, f"SELECT id, folder, {_known('updated_at')}, {away} FROM memories WHERE {PRESENT} ORDER BY id"
    )
    return [Place(memory, folder, updated, bool(put_away)) for memory, folder, updated, put_away in found]


def equal_in_several_folders(connection: apsw.Connection) -> list[tuple[str, ...]]:
    """The keys of memories that hold the same in more than one folder, those of each content in order."""
    several = (
        f"SELECT content_hash FROM memories WHERE {PRESENT} GROUP BY content_hash HAVING count(DISTINCT folder) > 1"
    )
    sql = (
        f"SELECT content_hash, key FROM memories WHERE content_hash IN ({several}) AND {PRESENT} "
        "ORDER BY content_hash, key"
    )
    groups: dict[str, list[str]] = {}
    for digest, key in rows(connection, sql):
        groups.setdefault(digest, []).append(key)
    return [tuple(keys) for keys in groups.values()]


def passages(connection: apsw.Connection, ids: Sequence[int]) -> list[Passage]:
    """The passages with these ids of chunks or memories, in the order asked; unknown ids are left out.

    A memory of several chunks answers with its first.
    """
    chosen = integers(ids)
    by_id = {
        passage.id: passage
        for passage in _passages(connection, f"{_PASSAGE} WHERE id IN (SELECT value FROM carray(?))", (chosen,))
    }
    missing = [passage_id for passage_id in ids if passage_id not in by_id]
    if missing:
        first = f"{_PASSAGE} WHERE ordinal = 0 AND memory_id IN (SELECT value FROM carray(?))"
        by_id |= {passage.memory: passage for passage in _passages(connection, first, (integers(missing),))}
    return [by_id[passage_id] for passage_id in ids if passage_id in by_id]


def passages_of(connection: apsw.Connection, memory_id: int, limit: int = -1) -> list[Passage]:
    """The passages of a memory in document order, the first `limit` or all (-1); none for an unknown id."""
    return _passages(connection, f"{_PASSAGE} WHERE memory_id = ? ORDER BY ordinal LIMIT ?", (memory_id, limit))


def passages_in(connection: apsw.Connection, sections: Sequence[str]) -> list[Passage]:
    """The passages that lie in a section of one of these names, by id.

    A short memory is one passage that lies in no section and may hold several: those whose text speaks of such a
    section are among the passages, and what exactly they hold is left to whoever reads their tags.
    """
    if not sections:
        return []
    marks = ", ".join("?" * len(sections))
    spoken_of = " OR ".join(["text LIKE '%anchor%' || ? || '%'"] * len(sections))
    # the words of a tag stand in a row in the whole text, and of few memories all passages have to be read
    tags = " OR ".join(surface.quoted(f"anchor {section}") for section in sections)
    tagged = "memory_id IN (SELECT rowid FROM surface_fts WHERE surface_fts MATCH ?)"
    chosen = f"{_PASSAGE} WHERE {tagged} AND (anchor IN ({marks}) OR (anchor = '' AND ({spoken_of}))) ORDER BY id"
    return _passages(connection, chosen, (tags, *sections, *sections))


def passages_headed(connection: apsw.Connection, slugs: Sequence[str], memories: Ids) -> list[Passage]:
    """The passages of these memories that may begin a section with a heading of these slugs, by id.

    What exactly the passages hold is left to whoever reads their headings.
    """
    if not slugs or not len(memories):
        return []
    said = " OR ".join(["text LIKE ?"] * len(slugs))
    patterns = [f"%{slug.replace('-', '%')}%" for slug in slugs]
    chosen = f"{_PASSAGE} WHERE memory_id IN (SELECT value FROM carray(?)) AND ({said}) ORDER BY id"
    return _passages(connection, chosen, (integers(memories.tolist()), *patterns))


def names_like(connection: apsw.Connection, patterns: Sequence[str]) -> list[MemoryName]:
    """What those memories are called of which the key, the title or the front matter that nothing interprets holds one
    of these patterns of LIKE, by id."""
    said = " OR ".join(f"{column} LIKE ?" for column in ("key", "title", "extra") for _ in patterns) or "0"
    sql = f"SELECT id, key, title, extra FROM memories JOIN texts ON memory_id = id WHERE {said} ORDER BY id"
    return [MemoryName(*row) for row in rows(connection, sql, (*patterns, *patterns, *patterns))]


def used_since(connection: apsw.Connection, since: float) -> list[int]:
    """The memories that were of use after a time (epoch seconds), ascending."""
    return [
        memory
        for (memory,) in rows(connection, "SELECT id FROM memories WHERE last_accessed > ? ORDER BY id", (since,))
    ]


def body(connection: apsw.Connection, memory_id: int) -> str:
    """The whole text of a memory. Raises E080."""
    text: str | None = value(connection, "SELECT body FROM texts WHERE memory_id = ?", (memory_id,))
    if text is None:
        raise MissingMemoryError(memory_id)
    return text


def known_files(connection: apsw.Connection, folder_prefix: str = "") -> dict[str, KnownFile]:
    """What is stored under the keys of this folder (all when empty), or under exactly this key."""
    condition, bindings = _below("key", folder_prefix)
    columns = (
        "key, id, mtime_ns, coalesce(nullif(r.file_hash, ''), content_hash), embedding_status, ctime_ns, "
        "a.memory_id IS NOT NULL, r.file_hash"
    )
    tables = (
        "memories LEFT JOIN absences a ON a.memory_id = memories.id "
        "LEFT JOIN restorations r ON r.memory_id = memories.id"
    )
    found = rows(connection, f"SELECT {columns} FROM {tables} WHERE {condition} ORDER BY key", bindings)
    return {key: KnownFile._make((*facts, bool(absent), restored)) for key, *facts, absent, restored in found}


def pending_chunks(connection: apsw.Connection, limit: int) -> list[tuple[int, int]]:
    """(chunk id, memory id) of passages that wait for their vector, by memory and position."""
    return rows(
        connection,
        "SELECT c.id, c.memory_id FROM memories m JOIN chunks c ON c.memory_id = m.id "
        "WHERE m.embedding_status = 'pending' AND c.vector = 'pending' ORDER BY m.id, c.ordinal LIMIT ?",
        (limit,),
    )


def statistics(connection: apsw.Connection) -> StoreStatistics:
    """Counts over the whole store."""

    def count(sql: str) -> int:
        number: int = value(connection, sql)
        return number

    return StoreStatistics(
        memories=count(f"SELECT count(*) FROM memories WHERE {PRESENT}"),
        chunks=count("SELECT count(*) FROM chunks"),
        edges=count("SELECT count(*) FROM causal_edges"),
        triggers=count("SELECT count(*) FROM triggers"),
        pending_embeddings=count("SELECT count(*) FROM memories WHERE embedding_status = 'pending'"),
        pending_links=count(
            f"SELECT count(*) FROM declared_links d WHERE evidence NOT GLOB '{MENTION}*' AND NOT EXISTS (SELECT 1 FROM "
            "causal_edges e WHERE e.source_id = iif(d.reverse, d.target_id, d.memory_id) AND "
            "e.target_id = iif(d.reverse, d.memory_id, d.target_id) AND e.relation = d.relation)"
        ),
        absent=absences.count(connection),
        by_tier={
            Tier(tier): number
            for tier, number in rows(
                connection, f"SELECT tier, count(*) FROM memories WHERE {PRESENT} GROUP BY tier ORDER BY tier"
            )
        },
        by_folder=dict(
            rows(connection, f"SELECT folder, count(*) FROM memories WHERE {PRESENT} GROUP BY folder ORDER BY folder")
        ),
        oldest=value(connection, f"SELECT min({_known('created_at')}) FROM memories"),
        newest=value(connection, f"SELECT max({_known('created_at')}) FROM memories"),
        embedding_model=get_meta(connection, vectors.MODEL) or "",
        dimensions=vectors.dimensions(connection),
        bytes=connection.pragma("page_count") * connection.pragma("page_size"),
        density=density(connection),
    )


def _memories(connection: apsw.Connection, sql: str, bindings: apsw.Bindings) -> list[MemoryRecord]:
    found = rows(connection, sql, bindings)
    ids = [row[0] for row in found]
    phrases: dict[int, list[str]] = {}
    for memory_id, phrase in connection.execute(
        "SELECT memory_id, phrase FROM triggers WHERE source = 'authored' "
        "AND memory_id IN (SELECT value FROM carray(?)) ORDER BY memory_id, ordinal",
        (integers(ids),),
    ):
        phrases.setdefault(memory_id, []).append(phrase)
    promoted = promotions(connection, ids)
    memories = []
    for memory_id, key, title, folder, tier, *facts in found:
        if not all(map(isinstance, facts, _FACTS)):
            raise SpeckitError("E024", f"the memory {memory_id} is damaged: its row holds other kinds of values")
        others = tuple(phrases.get(memory_id, ())), promoted.get(memory_id)
        memories.append(MemoryRecord(*(memory_id, key, title, folder, Tier(tier), *facts, *others)))
    return memories


def _passages(connection: apsw.Connection, sql: str, bindings: apsw.Bindings) -> list[Passage]:
    return [Passage(*row) for row in connection.execute(sql, bindings)]


def _below(column: str, folder: str) -> tuple[str, tuple[str, ...]]:
    """A condition for a path being this folder or inside it, which an index can answer: '0' follows '/'."""
    if not folder:
        return "1", ()
    return f"({column} = ? OR ({column} >= ? AND {column} < ?))", (folder, f"{folder}/", f"{folder}0")


def sqlite_versions(connection: apsw.Connection) -> tuple[str, str]:
    """The versions of SQLite and of sqlite-vec that serve this connection."""
    engine, extension = rows(connection, "SELECT sqlite_version(), vec_version()", ())[0]
    return str(engine), str(extension)
