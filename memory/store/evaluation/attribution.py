"""Attribution of a memory's use to the answer that contained it (feature T28).

It is the latest answer with the memory: of the same session within a day if the session is known, else of any session
within half an hour, from any process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from speckit_memory.memory.store.evaluation.packing import integers
from speckit_memory.memory.store.evaluation.records import UsageSignal, UseRecord
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
