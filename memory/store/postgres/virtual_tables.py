"""What FTS5 and sqlite-vec answer in SQLite: the statements about their tables, answered from tables of our own.

The words of a text are those of FTS5's tokenisers, which run here without a database. `postings` holds a row for every
word of a memory, with its places (`field << 28 | offset`), and one of the empty word with the lengths of the fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from speckit_memory.memory.store.file.schema.declared import declared
from speckit_memory.memory.store.file.schema.migrations import MIGRATIONS
from speckit_memory.memory.store.file.splitting import ANALYSED, WRITTEN, split
from speckit_memory.memory.store.postgres import ranking
from speckit_memory.memory.store.postgres.adapters import Bindings, Integers, Texts, VectorBytes, listed_parameters
from speckit_memory.memory.store.postgres.ranking import FIELD, Rows, StatementRunner, execute, field_and_offset

_KINDS = {"memory_fts": ANALYSED, "surface_fts": WRITTEN}
_FIELDS = {ANALYSED: ("title", "triggers", "path", "body"), WRITTEN: ("title", "body")}
_CONCERNED = re.compile(
    r"\b((memory|surface)_fts|memory_fts_docsize|memory_words|memory_word_places|surface_(anew_)?places|surface_anew"
    r"|chunk_vectors|PRAGMA)\b"
)
_INSERT = re.compile(r"INSERT INTO (memory_fts|surface_fts) \(rowid, ([\w, ]+)\)\s+(VALUES|SELECT)(.*)", re.DOTALL)
_INSERT_ANEW = re.compile(r"INSERT INTO temp.surface_anew \(rowid, title, body\) SELECT (.*)", re.DOTALL)
_SHAPE = re.compile(r"PRAGMA (table_info|foreign_key_list)\((\w+)\)")
_WITHIN = "SELECT rowid FROM surface_fts WHERE surface_fts MATCH ?"
_DELETE = re.compile(r"DELETE FROM (memory_fts|surface_fts) WHERE rowid = \?")


def concerns(sql: str) -> bool:
    """Whether a statement is about a table that PostgreSQL does not have."""
    return _CONCERNED.search(sql) is not None


def without_matches(connection: StatementRunner, sql: str, bindings: Bindings) -> tuple[str, Bindings]:
    """The same statement with the ids of the memories that hold any phrase, instead of a search within it."""
    at = sql.find(_WITHIN)
    if at < 0 or isinstance(bindings, Mapping):
        return sql, bindings
    place = sql.count("?", 0, at)
    phrases = _phrases(bindings[place])
    held = {memory for phrase in phrases for memory in memories_holding(connection, [phrase])}
    chosen = [*bindings[:place], Integers(sorted(held)), *bindings[place + 1 :]]
    return sql.replace(_WITHIN, "SELECT value FROM carray(?)"), chosen


def answer(connection: StatementRunner, sql: str, bindings: Bindings) -> Rows | None:
    """Carries out such a statement and returns its rows; None for a statement that PostgreSQL answers itself."""
    if not concerns(sql):
        return None
    if sql.startswith("PRAGMA"):
        return _pragma(connection, sql)
    if insert_many(connection, sql, [bindings]):
        return ()
    if found := _DELETE.match(sql):
        execute(connection, "DELETE FROM postings WHERE kind = $1 AND memory_id = $2", [_KINDS[found[1]], bindings[0]])  # type: ignore[index]
        return ()
    if "chunk_vectors" in sql:
        return _vectors(connection, sql, bindings)
    if "temp.memory_words" in sql:
        return execute(connection, "SELECT DISTINCT term FROM postings WHERE kind = 0 AND term <> ''", [])
    if "memory_fts_docsize" in sql:
        return ranking.column_sizes(connection)
    if "bm25(memory_fts" in sql:
        return ranking.ranked(connection, "carray" in sql, list(bindings))
    if "temp.surface_anew" in sql or "temp.surface_places" in sql or "doc, col" in sql:
        return _compared(connection, sql, bindings)
    if "temp.memory_word_places WHERE term" in sql:
        return _places(connection, bindings[0])  # type: ignore[index]
    if "surface_fts MATCH" in sql and sql.startswith("SELECT rowid"):
        return _holding(connection, sql, list(bindings))
    return None


def _pragma(connection: StatementRunner, sql: str) -> Rows:
    """The shape of a table as SQLite tells it; nothing for settings of files."""
    if "defer_foreign_keys" in sql:
        return execute(connection, "SET CONSTRAINTS ALL DEFERRED", [])
    if "all_principals" in sql:
        whose = "'*'" if sql.endswith("ON") else "DEFAULT"
        return execute(connection, f"SET LOCAL speckit.principal TO {whose}", [])
    found = _SHAPE.fullmatch(sql)
    if found is None:
        return ()
    made = declared(MIGRATIONS)
    return (made.columns if found[1] == "table_info" else made.references).get(found[2], ())


def insert_many(connection: StatementRunner, sql: str, bindings: Sequence[Bindings]) -> bool:
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


def _insert_postings(connection: StatementRunner, table: str, columns: str, rows: Rows) -> None:
    """Inserts the words of rows (id, texts of these columns), in the order of the primary key."""
    kind = _KINDS[table]
    named = [column.strip() for column in columns.split(",")]
    postings: list[tuple[str, int, str]] = []
    for memory, *texts in rows:
        of_word: dict[str, list[int]] = {}
        lengths = [0] * len(_FIELDS[kind])
        for column, text in zip(named, texts, strict=True):
            field = _FIELDS[kind].index(column)
            found_words = split(kind, text)
            lengths[field] = len(found_words)
            for offset, word in enumerate(found_words):
                of_word.setdefault(word, []).append(field << FIELD | offset)
        counted = (("", lengths), *((word, sorted(at)) for word, at in of_word.items()))
        postings += [(word, memory, "{" + ",".join(map(str, at)) + "}") for word, at in counted]
    postings.sort()  # neighbours of the index are inserted one after the other
    execute(
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


def _compared(connection: StatementRunner, sql: str, bindings: Bindings) -> Rows:
    """What a comparison of the stored words with those of the texts reads."""
    if "VIRTUAL TABLE" in sql or sql.startswith("DROP"):
        connection.anew = {}
        return ()
    if found := _INSERT_ANEW.search(sql):
        chosen = connection.execute(f"SELECT {found[1]}", bindings).fetchall()
        connection.anew = {
            memory: [
                (word, memory, column, offset)
                for column, text in zip(_FIELDS[WRITTEN], texts, strict=True)
                for offset, word in enumerate(split(WRITTEN, text))
            ]
            for memory, *texts in chosen
        }
        return ()
    if "temp.surface_anew_places" in sql:
        return [row for rows in connection.anew.values() for row in rows]
    if "temp.surface_anew" in sql:
        return [(memory,) for memory in sorted(connection.anew)]
    kind = WRITTEN if "surface_places" in sql else ANALYSED
    wanted = listed_parameters(list(bindings)) if "carray" in sql else []
    found_rows = execute(
        connection,
        f"SELECT term, memory_id, places FROM postings WHERE kind = {kind} AND term <> ''"
        + (" AND memory_id = ANY ($1)" if wanted else ""),
        wanted,
    )
    return [
        (word, memory, _FIELDS[kind][field], offset)
        for word, memory, places in found_rows
        for field, offset in map(field_and_offset, places)
    ]


def _places(connection: StatementRunner, term: str) -> Rows:
    found = execute(
        connection, "SELECT memory_id, places FROM postings WHERE kind = 0 AND term = $1 ORDER BY memory_id", [term]
    )
    return [(memory, *field_and_offset(place)) for memory, places in found for place in places]


def _holding(connection: StatementRunner, sql: str, bindings: list[Any]) -> Rows:
    """The memories that hold all phrases of an expression, by id."""
    values = listed_parameters(bindings)
    phrases = _phrases(values[0])
    allowed = set(values[1] or ()) if "carray" in sql else None
    matching = memories_holding(connection, [phrase for phrase in phrases if phrase])
    chosen = [memory for memory in matching if allowed is None or memory in allowed]
    return [(memory,) for memory in (chosen[: values[-1]] if "LIMIT" in sql else chosen)]


def memories_holding(connection: StatementRunner, phrases: Sequence[Sequence[str]]) -> list[int]:
    """The memories with the words of every phrase one after the other in one field, ascending; none without phrases."""
    wanted = sorted({word for phrase in phrases for word in phrase})
    if not wanted:
        return []
    found = execute(
        connection,
        "SELECT memory_id, term, places FROM postings WHERE kind = 1 AND term = ANY ($1) AND memory_id IN ("
        "SELECT memory_id FROM postings WHERE kind = 1 AND term = ANY ($1) GROUP BY memory_id HAVING count(*) = $2)",
        [Texts(wanted), len(wanted)],
    )
    at: dict[int, dict[str, set[int]]] = {}
    for memory, term, places in found:
        at.setdefault(memory, {})[term] = set(places)
    return sorted(memory for memory, of_word in at.items() if all(_holds(of_word, phrase) for phrase in phrases))


def _phrases(expression: str) -> list[list[str]]:
    """The words of each phrase of an expression."""
    return [split(WRITTEN, text) for text in re.findall(r'"([^"]*)"', expression)]


def _holds(places: Mapping[str, set[int]], phrase: Sequence[str]) -> bool:
    begins = set(places[phrase[0]])
    for distance, word in enumerate(phrase[1:], 1):
        begins &= {place - distance for place in places[word]}
    return bool(begins)


def _vectors(connection: StatementRunner, sql: str, bindings: Bindings) -> Rows | None:
    if sql.startswith("CREATE VIRTUAL TABLE"):
        return ()
    if sql.startswith("DROP TABLE"):
        return execute(connection, "DELETE FROM chunk_vectors", [])
    if sql.startswith("INSERT INTO chunk_vectors"):
        values = list(bindings)
        return execute(
            connection,
            "INSERT INTO chunk_vectors (rowid, embedding) VALUES ($1, $2)",
            [values[0], VectorBytes(values[1])],
        )
    if "embedding MATCH" in sql:
        return _nearest(connection, sql, list(bindings))
    return None


def _nearest(connection: StatementRunner, sql: str, bindings: list[Any]) -> Rows:
    """The rows of the nearest vectors with their cosine distances, nearest first."""
    query, count, *scope = listed_parameters(bindings)
    within = "WHERE rowid = ANY ($3)" if "carray" in sql else ""
    return execute(
        connection,
        f"SELECT rowid, embedding <=> $1 AS distance FROM chunk_vectors {within} ORDER BY distance LIMIT $2",
        [VectorBytes(query), count, *scope],
    )
