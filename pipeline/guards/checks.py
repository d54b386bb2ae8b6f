"""The one check of each component result, before the runner uses it: type, shape, dtype, finiteness, order, ids.

Each check takes any object and returns it if it is of the expected type; otherwise it raises a ContractError (for an
annotator: StageInvariantError) with the violation and the accepted values. Plans and notes, which hold more than
columns, are checked in separate modules.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from speckit_memory.errors.echo import list_names
from speckit_memory.pipeline.guards.note_checks import check_notes
from speckit_memory.pipeline.guards.plan_checks import check_asked, check_plan
from speckit_memory.pipeline.model.columns import Fused, Grouped, Hits, Pool, Reranking, Rescored, Selected
from speckit_memory.pipeline.model.describing import shape_of
from speckit_memory.pipeline.model.errors import ContractError, InvalidComponentOutput
from speckit_memory.pipeline.model.field_checks import LARGEST, absence, absent, array, number, texts
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.model.workings import Workings
from speckit_memory.pipeline.ports import Attributes, Column, Ids, Scope, Unavailable
from speckit_memory.pipeline.roles.composition import BoundStep
from speckit_memory.pipeline.roles.contracts import Channel

__all__ = [
    "check_asked",
    "check_column",
    "check_fused",
    "check_hits",
    "check_memories",
    "check_notes",
    "check_plan",
    "check_reranking",
    "check_score",
    "check_source",
]

NAMED = 3
"""Maximum number of ids named in a message; the others are only counted."""
ROUNDING = 1e-6
"""Tolerance for scores outside the bounds of their scale."""

MOST_PARTS = 1000
"""Maximum number of addends of a score: one for each search of each variant."""
MOST_FORMULAS = 8
"""Maximum number of formulas by which one step computes scores."""


def check_hits(answer: object, limit: int, step: str) -> Hits | Unavailable:
    """Raises unless there are at most `limit` hits; order, uniqueness and finiteness are those of the constructor."""
    try:
        if none := absent(answer, Hits):
            return none
        assert isinstance(answer, Hits)
        if len(answer) > limit:
            raise InvalidComponentOutput(f"returned {len(answer)} hits; its limit is {limit}")
        array(answer.ids, np.int64, (len(answer),), "ids")
        array(answer.scores, np.float64, (len(answer),), "finite scores")
        if answer.passages is not None:
            array(answer.passages, np.int64, (len(answer),), "passages")
        if len(answer) and not -LARGEST <= answer.scores[-1] <= answer.scores[0] <= LARGEST:
            raise InvalidComponentOutput(f"returned numbers of more than {LARGEST:g}; accepted: finite scores")
        if not math.isnan(answer.rest):  # NaN: the channel knows no bound for the rest
            number(answer.rest, "rest", -LARGEST, LARGEST)
    except InvalidComponentOutput as unfit:
        raise ContractError(step, unfit.violation) from None
    return answer


def check_source(hits: Hits, step: BoundStep[Channel], scope: Scope, attributes: Attributes) -> Hits:
    """Raises ContractError unless the hits match the channel's declaration and the query's filter admits all of them.

    Args:
        hits: The checked hits of the channel.
        step: The channel's step, with its declared scale and level.
        scope: The memories that the query's filter admits.
        attributes: Maps passages to their memories.
    """
    level = getattr(step.params, "level", "memory")
    level = level if level in ("memory", "chunk") else "memory"  # an extension may use `level` otherwise
    if (hits.scale, hits.level) != (step.gives, level):
        found = f"hits of level {hits.level} on the scale {hits.scale}"
        raise ContractError(step.id, f"returned {found}; it declares {level} on the scale {step.gives}")
    if not math.isnan(hits.rest):
        _check_bounds(hits.rest, hits.rest, hits.scale, step.id)
    if not len(hits):
        return hits
    _check_bounds(hits.scores[-1], hits.scores[0], hits.scale, step.id)  # they are in order
    admitted = scope.admits(hits.ids)
    if not admitted.all():
        outside = hits.ids[~admitted]
        found = f"{len(outside)} hits that the query's filter does not admit ({_some(outside.tolist())})"
        raise ContractError(step.id, f"returned {found}")
    # One look-up for hits and passages: parents is (2n,) int64, cut in half below.
    parents = attributes.parents(np.concatenate([hits.ids, hits.matched]))
    memories, sources = parents[: len(hits)], parents[len(hits) :]
    if level == "memory" and (memories != hits.ids).any():
        raise ContractError(
            step.id, f"returned passages ({_some(hits.ids[memories != hits.ids].tolist())}) as memories"
        )
    if (memories != sources).any():
        raise ContractError(step.id, "returned passages of memories that are not the hits")
    return hits


def check_memories(answer: object, scope: Scope, attributes: Attributes, step: str) -> Ids | Unavailable:
    """Raises ContractError unless these are memories that the scope admits, at most as many as it holds.

    Args:
        answer: The ids returned by the component, or Unavailable.
        scope: The memories that the query's filter admits.
        attributes: Maps passages to their memories.
        step: Id of the step, for the message.
    """
    try:
        if isinstance(answer, Unavailable):
            return absence(answer)
        few = isinstance(answer, np.ndarray) and answer.ndim == 1 and len(answer) <= scope.size
        memories = array(answer, np.int64, answer.shape if few else (scope.size,), "memories")  # type: ignore[attr-defined]
    except InvalidComponentOutput as unfit:
        raise ContractError(step, unfit.violation) from None
    outside = memories[~scope.admits(memories) | (attributes.parents(memories) != memories)]
    if len(outside):
        found = f"{len(outside)} ids that are not memories admitted by the query's filter ({_some(outside.tolist())})"
        raise ContractError(step, f"returned {found}")
    return memories


def check_column(answer: object, rows: int, step: str) -> Column | Unavailable:
    """Raises ContractError unless the column is finite and has one number per row."""
    try:
        return absence(answer) if isinstance(answer, Unavailable) else _numbers(answer, (rows,), "finite numbers")
    except InvalidComponentOutput as unfit:
        raise ContractError(step, unfit.violation) from None


def check_score(score: Column, step: str) -> Column:
    """Raises ContractError if a score that the frame computed from a step's result is too large to continue with."""
    # `not max <= LARGEST` rather than `max > LARGEST`: NaN fails the comparison and is refused too.
    if score.size and not np.abs(score).max() <= LARGEST:
        raise ContractError(step, f"led to scores above {LARGEST:g}; accepted: values that keep scores below that")
    return score


def check_fused(answer: object, rows: int, scale: Scale, step: str) -> Fused | Unavailable:
    """Raises ContractError unless there is a finite addend per candidate and name, with sums on the declared scale.

    Args:
        answer: The result of the fuser, or Unavailable.
        rows: Number of candidates.
        scale: The scale that the fuser declares.
        step: Id of the step, for the message.
    """
    try:
        fused = absent(answer, Fused) or _fused(answer, rows)
    except InvalidComponentOutput as unfit:
        raise ContractError(step, unfit.violation) from None
    if isinstance(fused, Fused) and rows:
        # sums: (rows,) float64, the score of each candidate.
        sums = fused.parts.sum(axis=1)
        _check_bounds(sums.min(), sums.max(), scale, step)
    return fused


def _fused(answer: object, rows: int) -> Fused:
    assert isinstance(answer, Fused)
    names = texts(answer.names, "names", MOST_PARTS)
    return Fused(names, _numbers(answer.parts, (rows, len(names)), "finite addends"))


def check_reranking(answer: object, pool: Pool, scale: Scale, step: str) -> Reranking | Unavailable:
    """Raises ContractError unless the answer fits the pool and its scores fit the scale.

    Args:
        answer: The result of the reranker, or Unavailable.
        pool: The pool that the reranker was given.
        scale: The scale of the new scores; only the unit interval is checked.
        step: Id of the step, for the message.
    """
    try:
        reranking = absent(answer, Rescored, Selected, Grouped) or _reranking(answer, pool.ids.shape)
    except InvalidComponentOutput as unfit:
        raise ContractError(step, unfit.violation) from None
    if isinstance(reranking, Rescored | Grouped) and scale is Scale.UNIT and len(pool):
        # the only bounds on which later steps rely
        _check_bounds(reranking.scores.min(), reranking.scores.max(), scale, step)
    if isinstance(reranking, Grouped):
        _check_groups(reranking, pool, step)
    return reranking


def _reranking(answer: object, rows: tuple[int, ...]) -> Reranking:
    match answer:
        case Selected(keep=keep):
            return Selected(array(keep, np.bool_, rows, "mask"))
        case Grouped(groups=groups, scores=scores, workings=workings):
            groups = array(groups, np.int64, rows, "groups")
            return Grouped(groups, _numbers(scores, rows, "finite scores"), _workings(workings, rows[0]))
        case Rescored(scores=scores, workings=workings):
            return Rescored(_numbers(scores, rows, "finite scores"), _workings(workings, rows[0]))
    raise AssertionError  # the type has been checked


def _workings(found: object, rows: int) -> Workings | None:
    if found is None:
        return None
    if not isinstance(found, Workings):
        raise InvalidComponentOutput(f"returned {shape_of(found)} as workings; accepted: Workings or None")
    texts(found.formulas, "formulas", MOST_FORMULAS)
    names = texts(found.names, "names of workings", MOST_PARTS)
    if len(set(names)) < len(names):
        raise InvalidComponentOutput("returned workings with two parts of the same name; accepted: distinct names")
    numbers = array(found.parts, np.float64, (rows, len(names)), "parts of workings")
    if (np.abs(numbers) > LARGEST).any():  # false for NaN
        raise InvalidComponentOutput(
            f"returned workings with numbers of more than {LARGEST:g}; accepted: finite numbers, or NaN"
        )
    return Workings(found.formulas, found.names, numbers)


def _check_groups(answer: Grouped, pool: Pool, step: str) -> None:
    """Checks that a group holds passages of one memory, has the id of that memory, and has one score."""
    invented = answer.groups[answer.groups != pool.candidates.parents]
    if len(invented):
        raise ContractError(
            step,
            f"put rows into groups ({_some(invented.tolist())}) that are not their memories",
        )
    # Sorted by group, rows of a group are adjacent, so one difference compares their scores.
    order = np.argsort(answer.groups, kind="stable")
    same = np.diff(answer.groups[order]) == 0
    unequal = same & (np.diff(answer.scores[order]) != 0)
    if unequal.any():
        torn = _some(answer.groups[order][1:][unequal].tolist())
        raise ContractError(step, f"returned unequal scores within a group ({torn}); accepted: one score per group")


def _numbers(found: object, shape: tuple[int, ...], what: str) -> Column:
    column = array(found, np.float64, shape, what)
    if column.size and not np.abs(column).max() <= LARGEST:
        beyond = f"numbers of more than {LARGEST:g}" if np.isfinite(column).all() else "NaN or infinity"
        raise InvalidComponentOutput(f"returned {beyond}; accepted: {what}")
    return column


def _check_bounds(lowest: float, highest: float, scale: Scale, step: str) -> None:
    low, high = scale.bounds
    # Written with `not`, so that NaN is out of bounds.
    if not (lowest >= low - ROUNDING and highest <= high + ROUNDING):
        found = f"scores from {lowest:g} to {highest:g}"
        raise ContractError(step, f"returned {found}; accepted on the scale {scale}: {low:g} to {high:g}")


def _some(ids: Sequence[Any]) -> str:
    return list_names([str(i) for i in ids], NAMED)
