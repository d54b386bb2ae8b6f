"""FTS5's BM25 over the words in PostgreSQL, with the same arithmetic (SQLite, FTS5, "The bm25() function")."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from math import log
from typing import Any, Protocol

from speckit_memory.memory.store.file.splitting import ANALYSED, split
from speckit_memory.memory.store.postgres.adapters import Bindings, Texts, listed_parameters
from speckit_memory.memory.store.postgres.postings import FIELD, PostingChanges, field_and_offset, unpack
from speckit_memory.memory.store.postgres.session import FetchedRows

Rows = Sequence[tuple[Any, ...]]
K1, B = 1.2, 0.75
LEAST_IDF = 1e-6
"""The weight of a phrase that half of the memories hold or more."""
_BODY_FIRST = (3, 0, 1, 2)
"""The fields of a row in the order of FTS5's columns: body, title, triggers, path."""
_RANKED = """
SELECT p.term, p.memory_id, p.analysed, l.words,
    (SELECT count(*) FROM postings WHERE term = '' AND analysed IS NOT NULL),
    (SELECT sum(words) FROM postings WHERE term = '')
FROM postings p JOIN postings l ON l.memory_id = p.memory_id AND l.term = '' AND l.words IS NOT NULL
WHERE p.term = ANY ($1) AND p.analysed IS NOT NULL
"""


class StatementRunner(Protocol):
    """The connection, as far as statements about the tables of words and vectors need it."""

    anew: dict[int, list[tuple[Any, ...]]]
    words: PostingChanges

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""

    def execute(self, sql: str, bindings: Bindings | None = ()) -> Any:
        """Runs statements of SQLite, translated."""

    def send_many(self, sql: str, many: list[list[Any]]) -> None:
        """Runs a statement of PostgreSQL with each of these values."""

    def expect(self, sql: str, values: list[Any]) -> None:
        """Has a statement of PostgreSQL run along with the next one of a read transaction."""

    def fetch(self, sql: str, values: list[Any]) -> FetchedRows:
        """Runs a statement of PostgreSQL."""


def execute(connection: StatementRunner, sql: str, values: list[Any]) -> Rows:
    """The rows of a statement of PostgreSQL."""
    return connection.fetch(sql, values).rows


def ranked(connection: StatementRunner, restricted: bool, bindings: list[Any]) -> list[tuple[int, float]]:
    """The memories that hold any phrase of an expression and their scores, best first, then by id.

    Args:
        connection: The connection.
        restricted: Whether the bindings hold ids that the search is restricted to.
        bindings: Weights of body, title, triggers and path, the expression, the ids, and the limit.
    """

    body, title, triggers, path, expression, *rest = listed_parameters(bindings)
    weights = (title, triggers, path, body)
    limit = rest[-1]
    allowed = set(rest[0] or ()) if restricted else None
    # a doubled quotation mark is one within a string
    phrases = [split(ANALYSED, text.replace('""', '"')) for text in re.findall(r'"((?:[^"]|"")*)"', expression)]
    phrases = [phrase for phrase in phrases if phrase]
    wanted = sorted({word for phrase in phrases for word in phrase})
    if not wanted:
        return []
    rows = execute(connection, _RANKED, [Texts(wanted)])
    held: dict[str, dict[int, list[int]]] = {}
    lengths: dict[int, int] = {}
    count, words = rows[0][4:] if rows else (0, 0)
    for (word, memory, _, length, *_), places in zip(rows, unpack([row[2] for row in rows]), strict=True):
        held.setdefault(word, {})[memory] = places
        lengths[memory] = length
    uses = [_uses(phrase, held) for phrase in phrases]
    scores: dict[int, float] = {}
    for of_phrase in uses:
        idf = log((count - len(of_phrase) + 0.5) / (len(of_phrase) + 0.5)) if of_phrase else 0.0
        idf = idf if idf > 0 else LEAST_IDF
        for memory, places in of_phrase.items():
            frequency = 0.0
            for place in places:
                frequency += weights[field_and_offset(place)[0]]
            length = lengths[memory] / (words / count)
            scores[memory] = scores.get(memory, 0.0) + idf * (
                frequency * (K1 + 1.0) / (frequency + K1 * (1.0 - B + B * length))
            )
    best = sorted(scores.items(), key=lambda found: (-found[1], found[0]))
    return [found for found in best if allowed is None or found[0] in allowed][: limit if limit >= 0 else None]


def column_sizes(connection: StatementRunner) -> list[tuple[int, bytes]]:
    """The ids of all rows with the numbers of words in each column, as FTS5 stores them: varints, big-endian."""
    rows = execute(connection, "SELECT memory_id, analysed FROM postings WHERE term = '' AND analysed IS NOT NULL", [])
    found = []
    for (memory, _), ends in zip(rows, unpack([row[1] for row in rows]), strict=True):
        lengths = [end - start for start, end in pairwise((0, *ends))]
        found.append((memory, b"".join(_varint(lengths[field]) for field in _BODY_FIRST)))
    return found


def _uses(phrase: Sequence[str], held: dict[str, dict[int, list[int]]]) -> dict[int, list[int]]:
    """The places where a phrase begins, by memory, in the order of FTS5's columns."""
    first, *others = (held.get(word, {}) for word in phrase)
    uses: dict[int, list[int]] = {}
    for memory, places in first.items():
        if all(memory in other for other in others):
            begins = set(places).intersection(
                *({p - (n << FIELD) for p in other[memory]} for n, other in enumerate(others, 1))
            )
            if begins:
                uses[memory] = sorted(begins, key=field_and_offset)
    return uses


def _varint(number: int) -> bytes:
    groups = [number & 0x7F]
    while number := number >> 7:
        groups.append(number & 0x7F | 0x80)
    return bytes(reversed(groups))
