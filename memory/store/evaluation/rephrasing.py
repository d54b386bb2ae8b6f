"""Which queries were asked again in other words, as their answers did not help (feature P5).

It is found when the later one is recorded, while the words of both are kept, and stays known when they are forgotten.
"""

from __future__ import annotations

from collections.abc import Callable

from speckit_memory.memory.store.evaluation import packing
from speckit_memory.memory.store.evaluation.records import Observation
from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import rows

WITHIN_SECONDS = 60.0
"""A query that is asked again in other words within so long is taken to have failed."""
MOST_BEFORE = 20
"""Earlier queries of a session that are compared, the latest ones. Callers without a session share one: busy servers
would otherwise compare each query with thousands."""
_ASKED_BEFORE = """
SELECT q.number, q.question ->> 'text', c.memories FROM queries q JOIN answers c ON c.query = q.number
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
    asked = rows(connection, _ASKED_BEFORE, (later.at - WITHIN_SECONDS, later.at, later.session, later.id, MOST_BEFORE))
    rephrased = [
        (later.id, number)
        for number, words, memories in list(asked)
        if words and answer.isdisjoint(packing.integers(memories)) and are_similar(words, text)
    ]
    connection.executemany("UPDATE queries SET rephrased_by = ? WHERE number = ?", rephrased)
