"""Checks of what components return, before the runner uses it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import ContractError, StageInvariantError
from pipeline.model import Fused, Grouped, Hits, Notes, Plan, Pool, Query, Reranking, Rescored, Selected
from pipeline.ports import Column, Unavailable

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


def check_column(answer: Column | Unavailable, rows: int, step: str) -> Column | Unavailable:
    """Raises unless the column is finite and has one number per row."""
    if not isinstance(answer, Unavailable) and not _finite(answer, (rows,)):
        raise ContractError(step, f"must return {rows} finite numbers; found {_shape(answer)}")
    return answer


def check_fused(answer: Fused | Unavailable, rows: int, step: str) -> Fused | Unavailable:
    """Raises unless there is a finite addend per candidate and name."""
    if isinstance(answer, Fused) and not _finite(answer.parts, (rows, len(answer.names))):
        found = _shape(answer.parts)
        raise ContractError(step, f"must return finite addends of shape ({rows}, {len(answer.names)}); found {found}")
    return answer


def check_reranking(answer: Reranking | Unavailable, rows: int, step: str) -> Reranking | Unavailable:
    """Raises unless the answer fits the rows of the pool."""
    match answer:
        case Unavailable():
            pass
        case Rescored(scores) | Grouped(scores=scores) if not _finite(scores, (rows,)):
            raise ContractError(step, f"must return {rows} finite scores; found {_shape(scores)}")
        case Grouped(groups=groups) if groups.shape != (rows,):
            raise ContractError(step, f"must return {rows} groups; found {_shape(groups)}")
        case Selected(keep) if keep.shape != (rows,) or keep.dtype != np.bool_:
            raise ContractError(step, f"must return a mask of {rows} rows; found {keep.dtype} {_shape(keep)}")
        case Rescored() | Grouped() | Selected():
            pass
        case _:
            accepted = "Rescored, Selected, Grouped or Unavailable"
            raise ContractError(step, f"returned {type(answer).__name__}; accepted: {accepted}")
    return answer


def _finite(array: Column, shape: tuple[int, ...]) -> bool:
    return array.shape == shape and bool(np.all(np.isfinite(array)))


def _shape(array: NDArray[Any]) -> str:
    return f"shape {array.shape}" if np.all(np.isfinite(array)) else f"shape {array.shape} with NaN or infinity"


def check_notes(answer: Notes | Unavailable, pool: Pool, step: str) -> Notes | Unavailable:
    """Raises unless the notes speak of ranked ids only, mention no score or position, and the mask fits."""
    if isinstance(answer, Unavailable):
        return answer
    if not isinstance(answer, Notes):
        raise StageInvariantError(step, f"returned {type(answer).__name__}; accepted: Notes or Unavailable")
    foreign = sorted(answer.by_id.keys() - pool.ids.tolist())
    if foreign:
        raise StageInvariantError(step, f"returned ids that are not in the ranking: {foreign[:5]}")
    keys = set(answer.overall).union(*answer.by_id.values())
    if keys & RANKING_WORDS:
        raise StageInvariantError(step, f"mentions the ranking in its notes: {sorted(keys & RANKING_WORDS)}")
    keep = answer.keep
    if keep is not None and (getattr(keep, "dtype", None) != np.bool_ or keep.shape != pool.ids.shape):
        raise StageInvariantError(step, f"returned a mask that does not fit the {len(pool)} rows of the ranking")
    return answer
