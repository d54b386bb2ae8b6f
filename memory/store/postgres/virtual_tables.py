"""What FTS5 and sqlite-vec answer in SQLite: the statements about their tables, answered from tables of our own.

The words of a text are those of FTS5's tokenisers, which run here without a database.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from speckit_memory.memory.store.file.schema.declared import declared
from speckit_memory.memory.store.file.schema.migrations import MIGRATIONS
from speckit_memory.memory.store.file.splitting import ANALYSED, WRITTEN, split
from speckit_memory.memory.store.postgres import ranking
from speckit_memory.memory.store.postgres.adapters import Bindings, Integers, Texts, VectorBytes, listed_parameters
from speckit_memory.memory.store.postgres.postings import COLUMNS, FIELD, FIELDS, field_and_offset, unpack
from speckit_memory.memory.store.postgres.ranking import Rows, StatementRunner, execute
from speckit_memory.memory.store.postgres.session import MOST_ROWS

FEW = MOST_ROWS
"""Memories that are read at first of those that hold a word as written. Most callers want to know whether there is one,
and a word that fewer hold is then known whole."""
_KINDS = {"memory_fts": ANALYSED, "surface_fts": WRITTEN}
_CONCERNED = re.compile(
    r"\b((memory|surface)_fts|memory_fts_docsize|memory_words|memory_word_places|surface_(anew_)?places|surface_anew"
    r"|chunk_vectors|postings|PRAGMA)\b"
)
_INSERT = re.compile(r"INSERT INTO (memory_fts|surface_fts) \(rowid, ([\w, ]+)\)\s+(VALUES|SELECT)(.*)", re.DOTALL)
_INSERT_ANEW = re.compile(r"INSERT INTO temp.surface_anew \(rowid, title, body\) SELECT (.*)", re.DOTALL)
_SHAPE = re.compile(r"PRAGMA (table_info|foreign_key_list)\((\w+)\)")
_WITHIN = "SELECT rowid FROM surface_fts WHERE surface_fts MATCH ?"
# From one word to the next in the index: DISTINCT would read every row. Words that are only written are among them,
# and no memory is found by those.
_WORDS = """
WITH RECURSIVE word (term) AS (
    (SELECT term FROM postings WHERE term > '' ORDER BY term LIMIT 1)
    UNION ALL SELECT (SELECT p.term FROM postings p WHERE p.term > word.term ORDER BY p.term LIMIT 1)
    FROM word WHERE word.term IS NOT NULL
)
SELECT term FROM word WHERE term IS NOT NULL
"""
_HOLDERS = "SELECT memory_id, written FROM postings WHERE term = $1 AND written IS NOT NULL LIMIT $2"
_OF_MEMORIES = (
    "SELECT term, memory_id, written FROM postings "
    "WHERE term = ANY ($1) AND memory_id = ANY ($2) AND written IS NOT NULL"
)
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
        connection.words.delete(_KINDS[found[1]], bindings[0])  # type: ignore[index]
        if not connection.in_transaction:
            send_words(connection)
        return ()
    if "chunk_vectors" in sql:
        return _vectors(connection, sql, bindings)
    send_words(connection)
    if "temp.memory_words" in sql:
        return execute(connection, _WORDS, [])
    if "memory_fts_docsize" in sql:
        return ranking.column_sizes(connection)
    if "bm25(memory_fts" in sql:
        return ranking.ranked(connection, "carray" in sql, list(bindings))
    if "temp.surface_anew" in sql or "temp.surface_places" in sql or "doc, col" in sql:
        return _compared(connection, sql, bindings)
    if "JOIN temp.memory_word_places" in sql:
        return _places(connection, *listed_parameters(list(bindings)))
    if "surface_fts MATCH" in sql and sql.endswith("LIMIT 0"):
        for word in {word for phrase in _phrases(str(bindings[0])) for word in phrase}:  # type: ignore[index]
            connection.expect(_HOLDERS, [word, FEW])
        return ()
    if "surface_fts MATCH" in sql and sql.startswith("SELECT rowid"):
        return _holding(connection, list(bindings))
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
    """Adds the words or vectors of an INSERT with all of these bindings; False for other statements."""
    if sql.startswith("INSERT INTO chunk_vectors"):
        vectors = [[chunk, VectorBytes(vector)] for chunk, vector in map(list, bindings)]
        connection.send_many("INSERT INTO chunk_vectors (rowid, embedding) VALUES ($1, $2)", vectors)
        return True
    found = _INSERT.match(sql)
    if found is None:
        return False
    table, columns, how, rest = found.groups()
    named = [column.strip() for column in columns.split(",")]
    for each in bindings:
        rows = [tuple(each)] if how == "VALUES" else connection.execute(f"SELECT{rest}", each).fetchall()
        for memory, *texts in rows:
            connection.words.add(_KINDS[table], memory, dict(zip(named, texts, strict=True)))
    if not connection.in_transaction:
        send_words(connection)
    return True


def send_words(connection: StatementRunner) -> None:
    """Sends the changes of words that were not sent yet."""
    for sql, values in connection.words.statements():
        execute(connection, sql, values)


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
                for column, text in zip(FIELDS[WRITTEN], texts, strict=True)
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
        f"SELECT term, memory_id, {COLUMNS[kind]} FROM postings WHERE {COLUMNS[kind]} IS NOT NULL AND term <> ''"
        + (" AND memory_id = ANY ($1)" if wanted else ""),
        wanted,
    )
    return [
        (word, memory, FIELDS[kind][field], offset)
        for (word, memory, _), places in zip(found_rows, unpack([row[2] for row in found_rows]), strict=True)
        for field, offset in map(field_and_offset, places)
    ]


def _places(connection: StatementRunner, terms: Sequence[str]) -> Rows:
    """The places of the words of a list, by their numbers in it, which begin with 1."""
    found = execute(
        connection,
        "SELECT t.number, p.memory_id, p.analysed FROM unnest($1::text[]) WITH ORDINALITY AS t (term, number) "
        "JOIN postings p ON p.term = t.term AND p.analysed IS NOT NULL ORDER BY 1, 2",
        [terms],
    )
    return [
        (number, memory, *part)
        for (number, memory, _), places in zip(found, unpack([row[2] for row in found]), strict=True)
        for part in sorted(map(field_and_offset, places))
    ]


def _holding(connection: StatementRunner, bindings: list[Any]) -> Rows:
    """Some memories that hold all phrases of an expression, at most as many as the limit, by id."""
    expression, limit = bindings
    return [(memory,) for memory in memories_holding(connection, _phrases(expression), limit)]


def memories_holding(
    connection: StatementRunner, phrases: Sequence[Sequence[str]], limit: int | None = None
) -> list[int]:
    """Memories with the words of every phrase one after the other in one field, ascending; none without words.

    If there are more than `limit`, any of them.
    """
    wanted = sorted({word for phrase in phrases for word in phrase})
    if not wanted:
        return []
    numbered = [[wanted.index(word) for word in phrase] for phrase in phrases if phrase]
    apart = all(len(phrase) == 1 for phrase in numbered)
    found: list[int] = []
    # Of common words, some memories are read at first, and all where these do not tell.
    for most in (None,) if limit is None else (max(limit, FEW), None):
        # held: per word, memories with its packed places
        held = _holders(connection, wanted, most)
        open_ended = [number for number, memories in enumerate(held) if len(memories) == most]
        if rare := [memories.keys() for number, memories in enumerate(held) if number not in open_ended]:
            _add_common(connection, wanted, held, open_ended, set.intersection(*map(set, rare)))
            open_ended = []
        found = list(set.intersection(*map(set, held)))
        if not apart:
            places = unpack([of_word[memory] for memory in found for of_word in held])
            found = [memory for memory in found if _holds([set(next(places)) for _ in held], numbered)]
        if limit is None or not open_ended or len(found) >= limit:
            break
    return sorted(found)[:limit]


def _holders(connection: StatementRunner, words: Sequence[str], most: int | None) -> list[dict[int, bytes]]:
    """For each word, memories that hold it as written, at most `most`, with its packed places."""
    for word in words:  # in one round trip, and kept, since a search asks for the same words in several ways
        connection.expect(_HOLDERS, [word, most])
    return [dict(execute(connection, _HOLDERS, [word, most])) for word in words]


def _add_common(
    connection: StatementRunner,
    words: Sequence[str],
    held: Sequence[dict[int, bytes]],
    common: Sequence[int],
    memories: Collection[int],
) -> None:
    """Reads the places of common words, given by their numbers, in the memories that hold the rare ones."""
    numbers = {words[number]: number for number in common}
    if numbers and memories:
        for word, memory, places in execute(connection, _OF_MEMORIES, [Texts(numbers), Integers(memories)]):
            held[numbers[word]][memory] = places


def _phrases(expression: str) -> list[list[str]]:
    """The words of each phrase of an expression."""
    return [split(WRITTEN, text) for text in re.findall(r'"([^"]*)"', expression)]


def _holds(places: Sequence[set[int]], phrases: Sequence[Sequence[int]]) -> bool:
    """Whether the words of each phrase, given by their numbers, follow one another."""
    for first, *others in phrases:
        begins = set(places[first])
        for distance, word in enumerate(others, 1):
            begins &= {place - (distance << FIELD) for place in places[word]}
        if not begins:
            return False
    return True


def _vectors(connection: StatementRunner, sql: str, bindings: Bindings) -> Rows | None:
    if sql.startswith("CREATE VIRTUAL TABLE"):
        return ()
    if sql.startswith("DROP TABLE"):
        return execute(connection, "DELETE FROM chunk_vectors", [])
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
