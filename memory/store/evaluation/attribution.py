"""What readers show of answers: memories that they used (feature T28), and questions that they asked again.

A use belongs to the latest answer with the memory: of the same session within a day if the session is known, else of
any session within half an hour, from any process. A query that is asked again in other words has failed (feature P5);
that is found when the later one is recorded, while the words of both are kept, and stays known when they are forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from speckit_memory.memory.store.evaluation import packing
from speckit_memory.memory.store.evaluation.packing import integers
from speckit_memory.memory.store.evaluation.records import Observation, UsageSignal, Use, UseRecord
from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import rows

WITHIN_SECONDS = 1_800.0
WITHIN_SESSION_SECONDS = 86_400.0
_MOST = 500
"""Maximum number of answers examined."""
_ANSWERS = """
SELECT q.id, q.at, q.session, c.memories FROM queries q JOIN answers c ON c.query = q.number AND c.mode = 'served'
WHERE q.at BETWEEN ? AND ? ORDER BY q.at DESC, q.number DESC LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class _Answer:
    query: str
    at: float
    session: str
    memories: tuple[int, ...]


def recently_served(connection: Connection, at: float) -> frozenset[int]:
    """Ids of the memories in all answers of the half hour before `at`."""
    return frozenset(memory for answer in _answers(connection, at - WITHIN_SECONDS, at) for memory in answer.memories)


def uses_of(connection: Connection, signs: Sequence[UsageSignal]) -> Iterator[UseRecord]:
    """Yields the use that each sign indicates; none for a memory that was in no answer."""
    if not signs:
        return
    # One query fetches the answers for all signs, latest first; each sign then takes the first that matches.
    reach = WITHIN_SESSION_SECONDS if any(sign.session for sign in signs) else WITHIN_SECONDS
    moments = [sign.at for sign in signs]
    answers = list(_answers(connection, min(moments) - reach, max(moments)))
    for sign in signs:
        found = next((answer for answer in answers if _is_told(sign, answer)), None)
        if found is not None:
            rank = found.memories.index(sign.memory) + 1
            yield UseRecord(found.query, sign.memory, sign.use, rank, sign.at, sign.session or found.session)


def _is_told(sign: UsageSignal, answer: _Answer) -> bool:
    if sign.memory not in answer.memories or answer.query == sign.asked or answer.at > sign.at:
        return False
    within = WITHIN_SECONDS
    if sign.session and answer.session:
        if sign.session != answer.session:
            return False
        within = WITHIN_SESSION_SECONDS
    return sign.at - answer.at <= within


def _answers(connection: Connection, first: float, last: float) -> Iterator[_Answer]:
    for query, at, session, memories in rows(connection, _ANSWERS, (first, last, _MOST)):
        yield _Answer(query, at, session, integers(memories))


_SELECTED = """
SELECT u."query", u.memory, u."use", u.rank, u.at, q.question
FROM uses u JOIN queries q ON q.id = u."query"
WHERE u.at >= ? AND q.at >= ? AND q.question IS NOT NULL ORDER BY u.at, u."query", u.memory, u."use"
"""


@dataclass(frozen=True, slots=True)
class SelectionEvent:
    """A use, at `at` (epoch seconds), of a memory that was at `rank` (from 1) in the answer to `text`."""

    query: str
    memory: int
    use: Use
    rank: int
    at: float
    text: str


def selections(connection: Connection, since: float, asked_since: float) -> list[SelectionEvent]:
    """Uses since `since` with the question, asked since `asked_since`, whose answer contained the memory. Only
    questions with stored text are returned."""
    found = rows(connection, _SELECTED, (since, asked_since))
    return [
        SelectionEvent(query, memory, use, rank, at, text)
        for query, memory, use, rank, at, question in found
        if (text := json.loads(question).get("text"))
    ]


REPHRASED_WITHIN_SECONDS = 60.0
"""A query that is asked again in other words within so long is taken to have failed."""
MOST_BEFORE = 20
"""Earlier queries of a session that are compared, the latest ones. Callers without a session share one: busy servers
would otherwise compare each query with thousands."""
_ASKED_BEFORE = """
SELECT q.number, q.question, c.memories FROM queries q JOIN answers c ON c.query = q.number
AND c.mode = 'served' WHERE q.at BETWEEN ? AND ? AND q.session = ? AND q.id <> ? AND q.rephrased_by = ''
AND q.question IS NOT NULL AND c.failure = '' ORDER BY q.number DESC LIMIT ?
"""


def mark_rephrased(connection: Connection, seen: Observation, are_similar: Callable[[str, str], bool]) -> None:
    """Marks the queries that this one rephrases: asked by its session up to a minute before in similar words, without a
    memory that is in both answers. Words that are not kept are similar to none."""
    later, answer = seen.query, {*seen.control.memories}
    text = (later.question or {}).get("text")
    if not text or seen.control.failure:
        return
    asked = rows(
        connection, _ASKED_BEFORE, (later.at - REPHRASED_WITHIN_SECONDS, later.at, later.session, later.id, MOST_BEFORE)
    )
    rephrased = [
        (later.id, number)
        for number, question, memories in asked
        if (words := json.loads(question).get("text"))
        and answer.isdisjoint(packing.integers(memories))
        and are_similar(words, text)
    ]
    connection.executemany("UPDATE queries SET rephrased_by = ? WHERE number = ?", rephrased)
