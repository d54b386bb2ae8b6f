"""Which question a reader asked who then used what its answer had brought (features E3 and M12).

Only questions whose texts are kept are told: see `evaluation.texts` in docs/shadows.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from speckit_memory.memory.store.evaluation.records import Use
from speckit_memory.memory.store.file.guarding.queries import rows

_SELECTED = """
SELECT u."query", u.memory, u."use", u.rank, u.at, q.question ->> 'text'
FROM uses u JOIN queries q ON q.id = u."query"
WHERE u.at >= ? AND q.at >= ? AND q.question IS NOT NULL ORDER BY u.at, u."query", u.memory, u."use"
"""


@dataclass(frozen=True, slots=True)
class Selected:
    """Somebody used a memory at `at` (epoch seconds) that the answer to `text` had brought at `rank`, from 1."""

    query: str
    memory: int
    use: Use
    rank: int
    at: float
    text: str


def selections(connection: apsw.Connection, since: float, asked_since: float) -> list[Selected]:
    """What was used since a time, of answers to questions that were asked since another one; by time."""
    return [Selected(*row) for row in rows(connection, _SELECTED, (since, asked_since)) if row[-1]]
