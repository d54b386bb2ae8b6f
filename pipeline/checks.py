"""Checks of what components return, before the runner uses it."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from pipeline.errors import ContractError, StageInvariantError
from pipeline.model import Hits, Notes, Plan, Pool, Query
from pipeline.ports import Unavailable

T = TypeVar("T")

RANKING_WORDS = frozenset({"score", "scores", "rank", "ranks", "position", "order"})
"""Keys that a note may not use: they would let stage 4 contradict the ranking."""


def check_plan(answer: Plan | Unavailable, query: Query, step: str) -> Plan | Unavailable:
    """Raises unless the query itself is still the first variant."""
    if isinstance(answer, Plan) and answer.variants[:1] != (query.text,):
        raise ContractError(step, "must keep the query itself as the first variant")
    return answer


def check_hits(answer: Hits | Unavailable, limit: int, step: str) -> Hits | Unavailable:
    """Raises unless the channel kept to its limit."""
    if isinstance(answer, Hits) and len(answer) > limit:
        raise ContractError(step, f"returned {len(answer)} hits; its limit is {limit}")
    return answer


def check_notes(answer: Notes | Unavailable, pool: Pool, step: str) -> Notes | Unavailable:
    """Raises unless the notes speak of ranked ids only, mention no score or position, and the mask fits."""
    if isinstance(answer, Unavailable):
        return answer
    if not isinstance(answer, Notes):
        raise StageInvariantError(step, f"returned {type(answer).__name__}; accepted: Notes or Unavailable")
    foreign = sorted(set(answer.by_id) - set(pool.ids.tolist()))
    if foreign:
        raise StageInvariantError(step, f"returned ids that are not in the ranking: {foreign[:5]}")
    keys = set(answer.overall).union(*(note.keys() for note in answer.by_id.values()))
    if keys & RANKING_WORDS:
        raise StageInvariantError(step, f"mentions the ranking in its notes: {sorted(keys & RANKING_WORDS)}")
    keep = answer.keep
    if keep is not None and (getattr(keep, "dtype", None) != np.bool_ or keep.shape != pool.ids.shape):
        raise StageInvariantError(step, f"returned a mask that does not fit the {len(pool)} rows of the ranking")
    return answer
