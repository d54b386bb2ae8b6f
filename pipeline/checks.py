"""Checks of what components return, before the runner uses it. Nothing that a component answers is taken on trust.

Each check takes any object and returns it as what it has to be; else it raises a ContractError (of an annotator:
StageInvariantError) that says what was found and what is accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, get_args

import numpy as np

from pipeline.composition import BoundStep
from pipeline.contracts import Channel
from pipeline.errors import ContractError, StageInvariantError
from pipeline.model import (
    Complexity,
    Fused,
    Grouped,
    Hits,
    Mode,
    Notes,
    Plan,
    Pool,
    Query,
    Reranking,
    Rescored,
    Selected,
)
from pipeline.ports import Attributes, Column, Scope, Unavailable
from pipeline.scales import Scale

T = TypeVar("T")

RANKING_WORDS = frozenset({"score", "scores", "rank", "ranks", "position", "order"})
"""Keys that a note may not use: they would let stage 4 contradict the ranking."""

ROUNDING = 1e-6
"""How far a score may lie outside the bounds of its scale."""


def check_plan(answer: object, query: Query, step: str) -> Plan | Unavailable:
    """Raises unless the query itself is still the first variant and the frame can follow the plan."""
    plan = _one_of(answer, step, Plan)
    if isinstance(plan, Unavailable):
        return plan
    if tuple(plan.variants[:1]) != (query.text,):
        raise ContractError(step, "must keep the query itself as the first variant")
    if plan.complexity not in get_args(Complexity):
        accepted = ", ".join(get_args(Complexity))
        raise ContractError(step, f"planned the complexity {plan.complexity!r}; accepted: {accepted}")
    if plan.mode is not None and plan.mode not in get_args(Mode):
        raise ContractError(step, f"planned the mode {plan.mode!r}; accepted: {', '.join(get_args(Mode))}")
    if not plan.limit_factor >= 1 or any(limit < 1 for limit in plan.limits.values()):
        found = f"limits {dict(plan.limits)} and the factor {plan.limit_factor}"
        raise ContractError(step, f"planned {found}; accepted: both at least 1")
    return plan


def check_asked(plan: Plan | Unavailable, channels: Sequence[str], step: str) -> Plan | Unavailable:
    """Raises unless the plan leaves a declared channel to ask."""
    if isinstance(plan, Plan) and plan.channels is not None and not set(plan.channels) & set(channels):
        found = ", ".join(plan.channels) or "no channel"
        raise ContractError(step, f"planned to ask {found}; accepted: at least one of {', '.join(channels)}")
    return plan


def check_hits(answer: object, limit: int, step: str) -> Hits | Unavailable:
    """Raises unless there are at most `limit` hits."""
    hits = _one_of(answer, step, Hits)
    if isinstance(hits, Hits) and len(hits) > limit:
        raise ContractError(step, f"returned {len(hits)} hits; its limit is {limit}")
    return hits


def check_source(hits: Hits, step: BoundStep[Channel], scope: Scope, attributes: Attributes) -> Hits:
    """Raises unless the hits are what the channel declares, and none of them is outside the scope of the query."""
    level = getattr(step.params, "level", "memory")
    if (hits.scale, hits.level) != (step.gives, level):
        found = f"hits of level {hits.level} on the scale {hits.scale}"
        raise ContractError(step.id, f"returned {found}; it declares {level} on the scale {step.gives}")
    if not len(hits):
        return hits
    _check_bounds(hits.scores[-1], hits.scores[0], hits.scale, step.id)  # they are in order
    admitted = scope.admits(hits.ids)
    if not admitted.all():
        outside = hits.ids[~admitted]
        found = f"{len(outside)} hits that the query's filter does not admit ({_few(outside.tolist())})"
        raise ContractError(step.id, f"returned {found}")
    passages = hits.ids if hits.passages is None else np.where(hits.passages < 0, hits.ids, hits.passages)
    parents = attributes.parents(np.concatenate([hits.ids, passages]))
    memories, sources = parents[: len(hits)], parents[len(hits) :]
    if level == "memory" and (memories != hits.ids).any():
        raise ContractError(step.id, f"returned passages ({_few(hits.ids[memories != hits.ids].tolist())}) as memories")
    if (memories != sources).any():
        raise ContractError(step.id, "returned passages of other memories than its hits")
    return hits


def check_column(answer: object, rows: int, step: str) -> Column | Unavailable:
    """Raises unless the column is finite and has one number per row."""
    if isinstance(answer, Unavailable):
        return answer
    return _numbers(answer, (rows,), "finite numbers", step)


def check_fused(answer: object, rows: int, scale: Scale, step: str) -> Fused | Unavailable:
    """Raises unless there is a finite addend per candidate and name, and their sums lie on the declared scale."""
    fused = _one_of(answer, step, Fused)
    if isinstance(fused, Fused):
        parts = _numbers(fused.parts, (rows, len(fused.names)), "finite addends", step)
        if rows:
            sums = parts.sum(axis=1)
            _check_bounds(sums.min(), sums.max(), scale, step)
    return fused


def check_reranking(answer: object, pool: Pool, scale: Scale, step: str) -> Reranking | Unavailable:
    """Raises unless the answer fits the rows of the pool, and its scores the unit interval where that is the scale."""
    reranking = _one_of(answer, step, Rescored, Selected, Grouped)
    rows = pool.ids.shape
    match reranking:
        case Rescored(scores) | Grouped(scores=scores):
            _numbers(scores, rows, "finite scores", step)
            if scale is Scale.UNIT and len(pool):  # the only bounds that a later step builds on
                _check_bounds(scores.min(), scores.max(), scale, step)
        case Selected(keep) if not _is(keep, np.bool_, rows):
            raise ContractError(step, f"returned {_shape(keep)} as mask; accepted: bool{list(rows)}")
    if isinstance(reranking, Grouped):
        _check_groups(reranking, pool, step)
    return reranking


def _check_groups(answer: Grouped, pool: Pool, step: str) -> None:
    """A group holds the passages of one memory, bears its id and has one score."""
    if not _is(answer.groups, np.int64, pool.ids.shape):
        raise ContractError(step, f"returned {_shape(answer.groups)} as groups; accepted: int64{list(pool.ids.shape)}")
    invented = answer.groups[answer.groups != pool.candidates.parents]
    if len(invented):
        raise ContractError(
            step,
            f"put rows into groups ({_few(invented.tolist())}) that are not their memories",
        )
    order = np.argsort(answer.groups, kind="stable")
    same = np.diff(answer.groups[order]) == 0
    unequal = same & (np.diff(answer.scores[order]) != 0)
    if unequal.any():
        torn = _few(answer.groups[order][1:][unequal].tolist())
        raise ContractError(step, f"returned unequal scores within a group ({torn}); accepted: one score per group")


def check_notes(answer: object, pool: Pool, step: str) -> Notes | Unavailable:
    """Raises unless the notes speak of ranked ids only, mention no score or position, and the mask fits."""
    if isinstance(answer, Unavailable):
        return answer
    if not isinstance(answer, Notes):
        raise StageInvariantError(step, f"returned {_name(answer)}; accepted: Notes or Unavailable")
    foreign = sorted(answer.by_id.keys() - pool.ids.tolist())
    if foreign:
        raise StageInvariantError(step, f"returned ids that are not in the ranking: {foreign[:5]}")
    keys = set(answer.overall).union(*answer.by_id.values())
    if keys & RANKING_WORDS:
        raise StageInvariantError(step, f"mentions the ranking in its notes: {sorted(keys & RANKING_WORDS)}")
    if answer.keep is not None and not _is(answer.keep, np.bool_, pool.ids.shape):
        found = _shape(answer.keep)
        raise StageInvariantError(step, f"returned {found} as mask; accepted: bool{list(pool.ids.shape)}")
    return answer


def _one_of(answer: object, step: str, *accepted: type[T]) -> T | Unavailable:
    if isinstance(answer, Unavailable):
        return answer
    for kind in accepted:
        if isinstance(answer, kind):
            return answer
    names = ", ".join(kind.__name__ for kind in accepted)
    raise ContractError(step, f"returned {_name(answer)}; accepted: {names} or Unavailable")


def _numbers(found: object, shape: tuple[int, ...], what: str, step: str) -> Column:
    if not _is(found, np.float64, shape):
        raise ContractError(step, f"returned {_shape(found)} as {what}; accepted: float64{list(shape)}")
    column: Column = found  # type: ignore[assignment]  # `_is` has looked
    if not np.isfinite(column).all():
        raise ContractError(step, f"returned NaN or infinity; accepted: {what}")
    return column


def _check_bounds(lowest: float, highest: float, scale: Scale, step: str) -> None:
    low, high = scale.bounds
    if not (lowest >= low - ROUNDING and highest <= high + ROUNDING):
        found = f"scores from {lowest:g} to {highest:g}"
        raise ContractError(step, f"returned {found}; accepted on the scale {scale}: {low:g} to {high:g}")


def _is(found: object, dtype: type[np.generic], shape: tuple[int, ...]) -> bool:
    return isinstance(found, np.ndarray) and found.dtype == dtype and found.shape == shape


def _shape(found: object) -> str:
    return f"{found.dtype}{list(found.shape)}" if isinstance(found, np.ndarray) else _name(found)


def _name(found: object) -> str:
    return "None" if found is None else type(found).__name__


def _few(ids: Sequence[Any]) -> str:
    return ", ".join(str(i) for i in ids[:3]) + (", …" if len(ids) > 3 else "")
