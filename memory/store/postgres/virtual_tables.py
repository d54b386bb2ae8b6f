"""What FTS5 and sqlite-vec answer in SQLite: the statements about their tables, answered from tables of our own.

The words of a text are those of FTS5's tokenisers, which run here without a database. `postings` holds a row for every
word of a memory, with its places (`field << 28 | offset`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import apsw

if TYPE_CHECKING:
    from speckit_memory.memory.store.postgres.connection import Connection

Rows = Sequence[tuple[Any, ...]]
ANALYSED, WRITTEN = 0, 1
"""Kinds of words: those of `memory_fts` and of `surface_fts`."""
_KINDS = {"memory_fts": ANALYSED, "surface_fts": WRITTEN}
_FIELDS = {ANALYSED: ("title", "triggers", "path", "body"), WRITTEN: ("title", "body")}
FIELD = 28
"""Bits of an offset in a place."""
_CONCERNED = re.compile(r"\b(memory_fts|surface_fts|memory_words|memory_word_places|chunk_vectors|PRAGMA)\b")
_INSERT = re.compile(r"INSERT INTO (memory_fts|surface_fts) \(rowid, ([\w, ]+)\)\s+(VALUES|SELECT)(.*)", re.DOTALL)
_WITHIN = "SELECT rowid FROM surface_fts WHERE surface_fts MATCH ?"
_DELETE = re.compile(r"DELETE FROM (memory_fts|surface_fts) WHERE rowid = \?")


def concerns(sql: str) -> bool:
    """Whether a statement is about a table that PostgreSQL does not have."""
    return _CONCERNED.search(sql) is not None


def without_matches(
    connection: Connection, sql: str, bindings: Sequence[Any] | Mapping[str, Any]
) -> tuple[str, Sequence[Any] | Mapping[str, Any]]:
    """The same statement with the ids of the memories that hold any phrase, instead of a search within it."""
    from speckit_memory.memory.store.postgres.connection import Integers

    at = sql.find(_WITHIN)
    if at < 0 or isinstance(bindings, Mapping):
        return sql, bindings
    place = sql.count("?", 0, at)
    phrases = [words(WRITTEN, text) for text in re.findall(r'"([^"]*)"', bindings[place])]
    held = {memory for phrase in phrases for memory in memories_holding(connection, [phrase])}
    chosen = [*bindings[:place], Integers(sorted(held)), *bindings[place + 1 :]]
    return sql.replace(_WITHIN, "SELECT value FROM carray(?)"), chosen


def answer(connection: Connection, sql: str, bindings: Sequence[Any] | Mapping[str, Any]) -> Rows | None:
    """Carries out such a statement and returns its rows; None for a statement that PostgreSQL answers itself."""
    if not concerns(sql):
        return None
    if sql.startswith("PRAGMA"):
        return ()
    if found := _INSERT.match(sql):
        return _insert(connection, *found.groups(), bindings)
    if found := _DELETE.match(sql):
        _execute(connection, "DELETE FROM postings WHERE kind = $1 AND memory_id = $2", [_KINDS[found[1]], bindings[0]])  # type: ignore[index]
        return ()
    if "chunk_vectors" in sql:
        return _vectors(connection, sql, bindings)
    if "temp.memory_words" in sql:
        return _execute(connection, "SELECT DISTINCT term FROM postings WHERE kind = 0", [])
    if "temp.memory_word_places WHERE term" in sql:
        return _places(connection, bindings[0])  # type: ignore[index]
    if "surface_fts MATCH" in sql and sql.startswith("SELECT rowid"):
        return _holding(connection, sql, list(bindings))
    return None


def _execute(connection: Connection, sql: str, values: list[Any]) -> Rows:
    import psycopg

    from speckit_memory.memory.store.postgres.connection import translated_errors

    with translated_errors(), psycopg.RawCursor(connection.session) as cursor:
        cursor.execute(sql, values, binary=True)
        return cursor.fetchall() if cursor.description else ()


@cache
def _tokeniser(kind: int) -> apsw.FTS5Tokenizer:
    arguments = ["remove_diacritics", "0"]
    if kind == ANALYSED:
        arguments += ["categories", "L* M* N* P* S* C*"]
    return apsw.Connection(":memory:").fts5_tokenizer("unicode61", arguments)


def words(kind: int, text: str) -> list[str]:
    """The words of a text, as FTS5 stores them."""
    reason = apsw.FTS5_TOKENIZE_DOCUMENT
    return [part[0] for part in _tokeniser(kind)(text.encode(), reason, None, include_offsets=False)]


def _insert(
    connection: Connection, table: str, columns: str, how: str, rest: str, bindings: Sequence[Any] | Mapping[str, Any]
) -> Rows:
    if how == "VALUES":
        found: Rows = [tuple(bindings)]
    else:
        found = connection.execute(f"SELECT{rest}", bindings).fetchall()
    return _insert_postings(connection, table, columns, found)


def insert_many(connection: Connection, sql: str, bindings: Sequence[Sequence[Any] | Mapping[str, Any]]) -> bool:
    """Runs an INSERT of words with all of these bindings, in one statement; False for other statements."""
    found = _INSERT.match(sql)
    if found is None:
        return False
    table, columns, how, rest = found.groups()
    rows: list[tuple[Any, ...]] = []
    for each in bindings:
        rows += [tuple(each)] if how == "VALUES" else connection.execute(f"SELECT{rest}", each).fetchall()
    _insert_postings(connection, table, columns, rows)
    return True


def _insert_postings(connection: Connection, table: str, columns: str, rows: Rows) -> Rows:
    """Inserts the words of rows (id, texts of these columns), in the order of the primary key."""
    from speckit_memory.memory.store.postgres.connection import Integers, Texts

    kind = _KINDS[table]
    named = [column.strip() for column in columns.split(",")]
    postings: list[tuple[str, int, str]] = []
    for memory, *texts in rows:
        of_word: dict[str, list[int]] = {}
        for column, text in zip(named, texts, strict=True):
            field = _FIELDS[kind].index(column) << FIELD
            for offset, word in enumerate(words(kind, text)):
                of_word.setdefault(word, []).append(field | offset)
        postings += [(word, memory, "{" + ",".join(map(str, sorted(at))) + "}") for word, at in of_word.items()]
    postings.sort()  # neighbours of the index are inserted one after the other
    _execute(
        connection,
        "INSERT INTO postings (kind, term, memory_id, places) SELECT $1, term, memory, places::int[] "
        "FROM unnest($2, $3, $4) AS made (term, memory, places)",
        [
            kind,
            Texts([word for word, _, _ in postings]),
            Integers([memory for _, memory, _ in postings]),
            Texts([places for _, _, places in postings]),
        ],
    )
    return ()


def _places(connection: Connection, term: str) -> Rows:
    found = _execute(
        connection, "SELECT memory_id, places FROM postings WHERE kind = 0 AND term = $1 ORDER BY memory_id", [term]
    )
    return [(memory, place >> FIELD, place & (1 << FIELD) - 1) for memory, places in found for place in places]


def _holding(connection: Connection, sql: str, bindings: list[Any]) -> Rows:
    """The memories that hold all phrases of an expression, by id."""
    from speckit_memory.memory.store.postgres.connection import parameters
    from speckit_memory.memory.store.postgres.statements import Statement

    values = parameters(Statement("", tuple(range(len(bindings)))), bindings)
    phrases = [words(WRITTEN, text) for text in re.findall(r'"([^"]*)"', values[0])]
    allowed = set(values[1]) if "carray" in sql else None
    matching = memories_holding(connection, [phrase for phrase in phrases if phrase])
    chosen = [memory for memory in matching if allowed is None or memory in allowed]
    return [(memory,) for memory in (chosen[: values[-1]] if "LIMIT" in sql else chosen)]


def memories_holding(connection: Connection, phrases: Sequence[Sequence[str]]) -> list[int]:
    """The memories with the words of every phrase one after the other in one field, ascending; none without phrases."""
    from speckit_memory.memory.store.postgres.connection import Texts

    wanted = sorted({word for phrase in phrases for word in phrase})
    if not wanted:
        return []
    found = _execute(
        connection,
        "SELECT memory_id, term, places FROM postings WHERE kind = 1 AND term = ANY ($1) AND memory_id IN ("
        "SELECT memory_id FROM postings WHERE kind = 1 AND term = ANY ($1) GROUP BY memory_id HAVING count(*) = $2)",
        [Texts(wanted), len(wanted)],
    )
    at: dict[int, dict[str, set[int]]] = {}
    for memory, term, places in found:
        at.setdefault(memory, {})[term] = set(places)
    return sorted(memory for memory, of_word in at.items() if all(_holds(of_word, phrase) for phrase in phrases))


def _holds(places: Mapping[str, set[int]], phrase: Sequence[str]) -> bool:
    begins = set(places[phrase[0]])
    for distance, word in enumerate(phrase[1:], 1):
        begins &= {place - distance for place in places[word]}
    return bool(begins)


def _vectors(connection: Connection, sql: str, bindings: Sequence[Any] | Mapping[str, Any]) -> Rows | None:
    from speckit_memory.memory.store.postgres.connection import VectorBytes

    if sql.startswith("CREATE VIRTUAL TABLE"):
        return ()
    if sql.startswith("DROP TABLE"):
        return _execute(connection, "DELETE FROM chunk_vectors", [])
    if sql.startswith("INSERT INTO chunk_vectors"):
        values = list(bindings)
        return _execute(
            connection,
            "INSERT INTO chunk_vectors (rowid, embedding) VALUES ($1, $2)",
            [values[0], VectorBytes(values[1])],
        )
    if "embedding MATCH" in sql:
        return _nearest(connection, sql, list(bindings))
    return None


def _nearest(connection: Connection, sql: str, bindings: list[Any]) -> Rows:
    """The rows of the nearest vectors with their cosine distances, nearest first."""
    from speckit_memory.memory.store.postgres.connection import VectorBytes, parameters
    from speckit_memory.memory.store.postgres.statements import Statement

    query, count, *scope = parameters(Statement("", tuple(range(len(bindings)))), bindings)
    within = "WHERE rowid = ANY ($3)" if "carray" in sql else ""
    return _execute(
        connection,
        f"SELECT rowid, embedding <=> $1 AS distance FROM chunk_vectors {within} ORDER BY distance LIMIT $2",
        [VectorBytes(query), count, *scope],
    )
