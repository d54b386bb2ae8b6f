"""Selections: questions whose answers contained memories that the reader then used (features E3 and M12).

Only questions with stored text are returned: see `evaluation.texts` in docs/shadows.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from speckit_memory.memory.store.evaluation.records import Use
from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import rows

_SELECTED = """
SELECT u."query", u.memory, u."use", u.rank, u.at, q.question ->> 'text'
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
    return [SelectionEvent(*row) for row in rows(connection, _SELECTED, (since, asked_since)) if row[-1]]
