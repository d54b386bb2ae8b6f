"""Reads memories in the form that tools show. Nothing here writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, NamedTuple
from unicodedata import normalize

from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.memory.store.file.connection import Connection, Database
from speckit_memory.memory.store.file.guarding.queries import below, integers, rows, value
from speckit_memory.memory.store.missing import MissingMemoryError
from speckit_memory.memory.store.reading.density import Density, density
from speckit_memory.memory.store.records import EARLIEST, LATEST, MENTION, UNKNOWN_TIME, MemoryRecord, Tier
from speckit_memory.memory.store.tables.memories import absences
from speckit_memory.memory.store.tables.memories.absences import PRESENT, present
from speckit_memory.memory.store.tables.memories.promotions import promotions
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.tables.words import surface
from speckit_memory.pipeline.ports import Ids, MemoryName, Passage


def _known_time(column: str) -> str:
    """SQL for a stored time, NULL where it is unknown or out of range, as older versions may have stored it."""
    return f"iif({column} BETWEEN {EARLIEST} AND {LATEST}, nullif({column}, {UNKNOWN_TIME}), NULL)"


DAY = 86_400
EARLIEST_ZONE, LATEST_ZONE = 14 * 3_600, 12 * 3_600
"""Seconds by which a calendar day begins earlier, and ends later, in the outermost time zones than in UTC."""
# A created_at at midnight UTC is a date without a time.
CREATED = (
    f"iif({_known_time('created_at')} = CAST(created_at / {DAY} AS INTEGER) * {DAY} AND updated_at BETWEEN "
    f"created_at - {EARLIEST_ZONE} AND created_at + {DAY + LATEST_ZONE}, updated_at, {_known_time('created_at')})"
)
"""SQL for a memory's time of creation. For a date without a time, the file's last change if it was on that day."""
LARGEST_ID = 2**63 - 1
"""The largest integer of SQLite."""
SORTS = {
    "updated_at": f"{_known_time('updated_at')} DESC",
    "created_at": f"{CREATED} DESC",
    "last_accessed": f"{_known_time('last_accessed')} DESC NULLS LAST",
    "importance_weight": "importance_weight DESC",
    "title": "title",
    "key": "key",
}
"""Accepted orders of `list_memories`; ties are ordered by id."""

_MEMORY = (
    "SELECT id, key, title, folder, tier, context_type, document_type, content_hash, "
    f"{_known_time('created_at')}, {_known_time('updated_at')}, "
    f"{_known_time('last_accessed')}, access_count, importance_weight, confidence, validation_count, embedding_status, "
    "chunk_count, characters, created_by FROM memories"
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
    str,
)
"""Types of the columns of `_MEMORY` from `context_type` on, since a damaged file may hold any."""
_OF_CHUNKS = "id, memory_id, text, heading, anchor, first_line, last_line FROM chunks"
_PASSAGE = f"SELECT {_OF_CHUNKS}"
PASSAGES = (
    f"SELECT id, {_OF_CHUNKS} WHERE id IN (SELECT value FROM carray(?)) "
    # a single passage has the id of its memory
    f"UNION ALL SELECT memory_id, {_OF_CHUNKS} WHERE ordinal = 0 AND id <> memory_id "
    "AND memory_id IN (SELECT value FROM carray(?))"
)
"""The passages of ids, and the first ones of memories of several passages, each with the id that was asked for."""
BODIES = "SELECT memory_id, body FROM bodies WHERE memory_id IN (SELECT value FROM carray(?))"


class KnownFile(NamedTuple):
    """The store's record of a file; `mtime_ns` is None when its document did not come from a file.

    `ctime_ns` is the file's ctime at the last index run, None if there was none; `absent` says that the file was
    missing. `restored` is the hash of the file's content if a checkpoint restored other content, "" if it restored the
    memory without a file, and None otherwise. `content_hash` is that of the file if `restored` is not empty.
    """

    id: int
    mtime_ns: int | None
    content_hash: str
    embedding_status: str
    ctime_ns: int | None = None
    absent: bool = False
    restored: str | None = None


class Place(NamedTuple):
    """A memory's folder, its last change (None where unknown), and whether it is archived."""

    id: int
    folder: str
    updated_at: float | None
    put_away: bool


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    """Counts of a store. `absent` memories, whose files are missing, and their contents are counted in no figure of
    memories; `edges`, `density` and `bytes` describe the whole graph and file, which keep them. `oldest` and `newest`
    are times of creation, None where none is known.

    `pending_links` counts declared links (without mentions) that have no edge; `dimensions` is 0 and `embedding_model`
    empty before the first vector.
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


def get_memory(connection: Connection, name: int | str) -> MemoryRecord:
    """The memory with this id or key; a key may be in Unicode NFC or NFD. Raises E080."""
    if isinstance(name, int) and abs(name) > LARGEST_ID:  # the number may be too long to print
        raise SpeckitError("E080", "there is no memory with an id beyond 64 bits")
    found = _memories(connection, f"{_MEMORY} WHERE {'id' if isinstance(name, int) else 'key'} = ?", (name,))
    if not found and isinstance(name, str) and not name.isascii():
        # Some file systems decompose the letters of names, and keys are paths.
        spelled = (normalize("NFC", name), normalize("NFD", name))
        found = _memories(connection, f"{_MEMORY} WHERE key IN (?, ?) ORDER BY key LIMIT 1", spelled)
    if not found:
        raise MissingMemoryError(name)
    return found[0]


def list_memories(
    connection: Connection, folder: str = "", sort: str = "updated_at", limit: int = 20, offset: int = 0
) -> tuple[list[MemoryRecord], int]:
    """One page of the memories of a folder, without absent ones.

    Args:
        connection: A connection to the store.
        folder: The folder, subfolders included; all memories when empty.
        sort: A key of `SORTS`.
        limit: Number of memories per page, at least 0.
        offset: Number of memories to skip, at least 0.

    Returns:
        The page, and the total number of memories.

    Raises:
        SpeckitError: E030 for an unknown order, E032 for a negative limit or offset.
    """
    if sort not in SORTS:
        raise SpeckitError("E030", f"there is no sort order '{sort}'", hint=nearest(sort, SORTS))
    if limit < 0 or offset < 0:
        raise SpeckitError("E032", f"limit {limit} and offset {offset} must not be negative")
    condition, bindings = below("folder", folder)
    condition = f"{condition} AND {PRESENT}"
    total: int = value(connection, f"SELECT count(*) FROM memories WHERE {condition}", bindings)
    page = f"{_MEMORY} WHERE {condition} ORDER BY {SORTS[sort]}, id LIMIT ? OFFSET ?"
    return _memories(connection, page, (*bindings, limit, offset)), total


def keys(connection: Connection) -> list[str]:
    """The keys of all memories except absent ones, in order."""
    return [key for (key,) in rows(connection, f"SELECT key FROM memories WHERE {PRESENT} ORDER BY key")]


def places(connection: Connection) -> list[Place]:
    """The places of all memories except absent ones, by id."""
    away = "id IN (SELECT memory_id FROM archivals WHERE restored_at IS NULL)"
    found = rows(
        connection, f"SELECT id, folder, {_known_time('updated_at')}, {away} FROM memories WHERE {PRESENT} ORDER BY id"
    )
    return [Place(memory, folder, updated, bool(put_away)) for memory, folder, updated, put_away in found]


def equal_in_several_folders(connection: Connection) -> list[tuple[str, ...]]:
    """Groups of keys of memories with equal content in more than one folder, each group in order."""
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


def passages(connection: Connection, ids: Sequence[int]) -> list[Passage]:
    """The passages with these chunk or memory ids, in the order given; unknown ids are left out.

    The id of a memory with several chunks yields its first passage.
    """
    chosen = integers(ids)
    by_id = {asked: Passage(*row) for asked, *row in rows(connection, PASSAGES, (chosen, chosen))}
    return [by_id[passage_id] for passage_id in ids if passage_id in by_id]


def passages_of(connection: Connection, memory_id: int, limit: int = -1) -> list[Passage]:
    """The first `limit` passages (-1: all) of a memory in document order; none for an unknown id."""
    return _passages(connection, f"{_PASSAGE} WHERE memory_id = ? ORDER BY ordinal LIMIT ?", (memory_id, limit))


def passages_in(connection: Connection, sections: Sequence[str]) -> list[Passage]:
    """Candidate passages for the ANCHOR sections with these names, by id.

    They are the passages inside such a section, and passages outside any section whose text mentions one: a short
    memory is a single passage that may hold several sections. The caller parses the tags to decide.
    """
    if not sections:
        return []
    marks = ", ".join("?" * len(sections))
    spoken_of = " OR ".join(["text LIKE '%anchor%' || ? || '%'"] * len(sections))
    # The phrase "anchor NAME" preselects memories by full text, so that LIKE scans the passages of few memories only.
    tags = " OR ".join(surface.quote_phrase(f"anchor {section}") for section in sections)
    tagged = "memory_id IN (SELECT rowid FROM surface_fts WHERE surface_fts MATCH ?)"
    chosen = f"{_PASSAGE} WHERE {tagged} AND (anchor IN ({marks}) OR (anchor = '' AND ({spoken_of}))) ORDER BY id"
    return _passages(connection, chosen, (tags, *sections, *sections))


def passages_headed(connection: Connection, slugs: Sequence[str], memories: Ids) -> list[Passage]:
    """Candidate passages of these memories for sections whose headings have these slugs, by id.

    The caller parses the headings to decide.
    """
    if not slugs or not len(memories):
        return []
    said = " OR ".join(["text LIKE ?"] * len(slugs))
    patterns = [f"%{slug.replace('-', '%')}%" for slug in slugs]
    chosen = f"{_PASSAGE} WHERE memory_id IN (SELECT value FROM carray(?)) AND ({said}) ORDER BY id"
    return _passages(connection, chosen, (integers(memories.tolist()), *patterns))


def names_like(connection: Connection, patterns: Sequence[str]) -> list[MemoryName]:
    """Names of the memories whose key, title or uninterpreted front matter matches one of these LIKE patterns, by
    id."""
    said = " OR ".join(f"{column} LIKE ?" for column in ("key", "title", "extra") for _ in patterns) or "0"
    sql = f"SELECT id, key, title, extra FROM memories JOIN texts ON memory_id = id WHERE {said} ORDER BY id"
    return [MemoryName(*row) for row in rows(connection, sql, (*patterns, *patterns, *patterns))]


def used_since(connection: Connection, since: float) -> list[int]:
    """Ids of the memories last accessed after a time (epoch seconds), ascending."""
    return [
        memory
        for (memory,) in rows(connection, "SELECT id FROM memories WHERE last_accessed > ? ORDER BY id", (since,))
    ]


def bodies(connection: Connection, memories: Sequence[int]) -> dict[int, str]:
    """The whole text of each of these memories that is stored."""
    return dict(rows(connection, BODIES, (integers(memories),)))


def body(connection: Connection, memory_id: int) -> str:
    """The whole text of a memory. Raises E080."""
    text: str | None = value(connection, "SELECT body FROM bodies WHERE memory_id = ?", (memory_id,))
    if text is None:
        raise MissingMemoryError(memory_id)
    return text


def known_files(connection: Connection, folder_prefix: str = "") -> dict[str, KnownFile]:
    """The stored files by key, for the keys below this folder (all when empty) and for exactly this key."""
    condition, bindings = below("key", folder_prefix)
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


def pending_chunks(connection: Connection, limit: int) -> list[tuple[int, int]]:
    """(chunk id, memory id) of up to `limit` passages that wait for a vector, by memory and position."""
    return rows(
        connection,
        "SELECT c.id, c.memory_id FROM memories m JOIN chunks c ON c.memory_id = m.id "
        "WHERE m.embedding_status = 'pending' AND c.vector = 'pending' ORDER BY m.id, c.ordinal LIMIT ?",
        (limit,),
    )


def statistics(connection: Connection) -> StoreStatistics:
    """Counts over the whole store; see there for what is said of absent memories."""

    def count(table: str, condition: str = "TRUE", memory: str = "memory_id") -> int:
        return int(value(connection, f"SELECT count(*) FROM {table} WHERE ({condition}) AND {present(memory)}"))

    times = f"SELECT {_known_time('created_at')} AS at FROM memories WHERE {PRESENT}"
    oldest, newest = rows(connection, f"SELECT min(at), max(at) FROM ({times})")[0]
    folders = f"SELECT folder, count(*) FROM memories WHERE {PRESENT} GROUP BY folder ORDER BY folder"
    by_tier = rows(connection, f"SELECT tier, count(*) FROM memories WHERE {PRESENT} GROUP BY tier ORDER BY tier")
    connections = density(connection)
    return StoreStatistics(
        memories=count("memories", memory="id"),
        chunks=count("chunks"),
        edges=connections.edges,
        triggers=count("triggers"),
        pending_embeddings=count("memories", "embedding_status = 'pending'", "id"),
        # An edge of a reverse link starts at the link's target.
        pending_links=count(
            "declared_links d",
            f"evidence NOT GLOB '{MENTION}*' AND NOT EXISTS (SELECT 1 FROM causal_edges e WHERE "
            "e.source_id = iif(d.reverse = 1, d.target_id, d.memory_id) AND "
            "e.target_id = iif(d.reverse = 1, d.memory_id, d.target_id) AND e.relation = d.relation)",
        ),
        absent=absences.count(connection),
        by_tier={Tier(tier): number for tier, number in by_tier},
        by_folder=dict(rows(connection, folders)),
        oldest=oldest,
        newest=newest,
        embedding_model=get_meta(connection, vectors.MODEL) or "",
        dimensions=vectors.dimensions(connection),
        bytes=connection.pragma("page_count") * connection.pragma("page_size"),
        density=connections,
    )


def _memories(connection: Connection, sql: str, bindings: tuple[Any, ...]) -> list[MemoryRecord]:
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
            raise SpeckitError("E024", f"the memory {memory_id} is damaged: its row has values of other types")
        others = tuple(phrases.get(memory_id, ())), promoted.get(memory_id)
        memories.append(MemoryRecord(*(memory_id, key, title, folder, Tier(tier), *facts[:-1], *others, facts[-1])))
    return memories


def _passages(connection: Connection, sql: str, bindings: tuple[Any, ...]) -> list[Passage]:
    return [Passage(*row) for row in connection.execute(sql, bindings)]


class EngineVersions(NamedTuple):
    """The engine of a store and its extension for vectors, with their versions."""

    engine: str
    version: str
    extension: str
    extension_version: str


def engine_versions(database: Database) -> EngineVersions:
    """What serves a store."""
    if database.shared:
        names = ("PostgreSQL", "pgvector")
        sql = "SELECT current_setting('server_version'), extversion FROM pg_extension WHERE extname = 'vector'"
    else:
        names, sql = ("SQLite", "sqlite-vec"), "SELECT sqlite_version(), vec_version()"
    version, extension_version = rows(database.reader(), sql)[0]
    return EngineVersions(names[0], version, names[1], extension_version)
