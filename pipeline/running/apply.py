"""Applies the results of components. The only place where a score is computed from a component's delta."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.arithmetic import distinct, row_sums
from speckit_memory.pipeline.model.columns import (
    NO_RANK,
    Candidates,
    Fused,
    Grouped,
    Hits,
    Pool,
    Reranking,
    Rescored,
    Selected,
    StepScore,
)
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.model.workings import Workings
from speckit_memory.pipeline.ports import Attributes, Column, Ids
from speckit_memory.pipeline.roles.contracts import Combine, SignalParams


@dataclass(frozen=True, slots=True)
class ChannelSearch:
    """The hits of one channel for one query variant; the channel was asked for at most `limit`."""

    channel: str
    variant: int
    hits: Hits
    limit: int

    @property
    def rest(self) -> float:
        """The score of rows that are not hits, never above the hits' scores; NaN if the limit cut such rows off."""
        if len(self.hits) >= self.limit:
            return np.nan
        return float(np.min(self.hits.scores, initial=self.hits.rest))


def union(searches: Sequence[ChannelSearch], attributes: Attributes) -> Candidates:
    """The union of all hits as one table.

    Evidence about a memory is evidence about each of its matching passages: if some channel returned chunks of a
    memory, another channel's hit on the whole memory counts for those chunks, and the memory itself is not a row.

    Hits with equal scores share a rank, so that fusion by rank does not depend on ids, which reflect insertion order.
    """
    ids = distinct(np.concatenate([s.hits.ids for s in searches])) if searches else np.empty(0, np.int64)
    # ids: (rows,) int64, ascending, of memories and passages; a memory is its own parent
    parents = attributes.parents(ids)
    memories_only = np.array_equal(parents, ids)
    # Memories with passages among the hits are represented by those passages alone.
    if not memories_only:
        has_chunks = np.isin(ids, parents[parents != ids])
        ids, parents = ids[~has_chunks], parents[~has_chunks]
    shape = (len(ids), len(searches))
    # raw: (rows, searches) float64, NaN = not returned; rank: the same shape, NO_RANK = not returned
    raw, rank = np.full(shape, np.nan), np.full(shape, NO_RANK, np.int32)
    passages = np.full(len(ids), -1, np.int64)
    for column, search in enumerate(searches):
        hits = search.hits
        if not len(hits):
            continue
        if memories_only:
            # `ids` is sorted and holds every hit, so searchsorted finds the exact row.
            rows, places = np.searchsorted(ids, hits.ids), np.arange(len(hits))
        else:
            rows, places = _inherited(hits.ids, ids, parents)
        raw[rows, column] = hits.scores[places]
        rank[rows, column] = _ranks(hits.scores)[places]
        # The first channel that names a passage determines it.
        if hits.passages is not None:
            unknown = passages[rows] < 0
            passages[rows[unknown]] = hits.passages[places[unknown]]
    is_chunk = parents != ids
    passages[is_chunk] = ids[is_chunk]
    return Candidates(
        ids,
        parents,
        passages,
        attributes.number("updated_at", ids),
        tuple(s.channel for s in searches),
        tuple(s.variant for s in searches),
        tuple(s.hits.scale for s in searches),
        np.array([s.rest for s in searches], np.float64),
        raw,
        rank,
    )


def _ranks(scores: Column) -> NDArray[np.intp]:
    """Competition ranks of descending scores: 1 + the number of strictly higher scores, as in 1, 1, 3."""
    # -scores ascends; the first of equal scores gives the rank of all of them
    return np.searchsorted(-scores, -scores, side="left") + 1


def _inherited(hit_ids: Ids, ids: Ids, parents: Ids) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The rows that inherit from a hit, by their own id or that of their memory, and the index of that hit for each."""
    # A hit on the chunk itself takes precedence over a hit on its memory.
    of_hit = _rows_of(hit_ids, ids)
    source = np.where(of_hit >= 0, of_hit, _rows_of(hit_ids, parents))
    rows = np.flatnonzero(source >= 0)
    return rows, source[rows]


def _rows_of(hit_ids: Ids, wanted: Ids) -> Ids:
    """The index of each wanted id among the hits, -1 if it is not a hit."""
    order = np.argsort(hit_ids)
    at = np.minimum(np.searchsorted(hit_ids, wanted, sorter=order), len(hit_ids) - 1)
    position = order[at]
    return np.where(hit_ids[position] == wanted, position, -1)


def _clip(scores: Column, scale: Scale) -> Column:
    return np.clip(scores, 0.0, 1.0) if scale is Scale.UNIT else scores


def apply_fusion(step: str, scale: Scale, candidates: Candidates, answer: Fused) -> Pool:
    """The first pool: candidates with the fused score.

    Args:
        step: Id of the fusion step.
        scale: The scale that the fuser declares; unit scores are clipped to [0, 1].
        candidates: The union of all hits.
        answer: The fuser's addends, one column per name.
    """
    after = _clip(row_sums(answer.parts), scale)
    score = StepScore(step, "sum", scale, answer.names, answer.parts, after)
    return _sorted(Pool(candidates, (score,), np.ones(len(candidates), np.int32)))


def apply_signal(
    step: str, combine: Combine, params: SignalParams, pool: Pool, column: Column, used: Column
) -> tuple[Pool, Column]:
    """The pool with one more signal, and the column that the signal added.

    Args:
        step: Id of the signal.
        combine: Whether the column is added to the score or multiplied with it.
        params: The signal's `cap` and `ceiling`, which limit additive signals.
        pool: The pool before the signal.
        column: The signal's answer, float64[rows].
        used: Sum of the earlier signals of the same cap group, float64[rows].
    """
    column = column.astype(np.float64)
    if combine == "add":
        if params.cap is not None:
            # The cap limits the group's sum, so earlier signals use it up first.
            column = np.minimum(column, np.maximum(params.cap - used, 0.0))
        if params.ceiling is not None:
            column = np.minimum(column, np.maximum(params.ceiling - pool.score, 0.0))
    after = pool.score + column if combine == "add" else pool.score * column
    score = StepScore(step, combine, pool.scale.widened, (step,), column[:, None], after)
    return Pool(pool.candidates, (*pool.steps, score), pool.chunk_hits), column


def apply_rerank(step: str, scale: Scale, pool: Pool, answer: Reranking) -> Pool:
    """The pool after a rerank step, in total order again.

    Args:
        step: Id of the rerank step.
        scale: Scale of the new scores; unit scores are clipped to [0, 1].
        pool: The pool before the step.
        answer: New scores, a selection, or groups with scores; already checked.

    Raises:
        TypeError: For any other kind of answer.
    """
    match answer:
        case Rescored(scores, workings):
            return _sorted(_rescored(step, scale, pool, scores, workings))
        case Selected(keep):
            return pool.take(np.flatnonzero(keep))
        case Grouped(groups, scores, workings):
            return _sorted(_grouped(_rescored(step, scale, pool, scores, workings), groups))
        case _:  # the checks reject everything else
            raise TypeError(type(answer).__name__)


def _rescored(step: str, scale: Scale, pool: Pool, scores: Column, workings: Workings | None) -> Pool:
    after = _clip(scores.astype(np.float64), scale)
    if workings is None:
        score = StepScore(step, "replace", scale, (step,), after[:, None], after)
    else:
        score = StepScore(step, "formula", scale, workings.names, workings.parts, after, workings.formulas)
    return Pool(pool.candidates, (*pool.steps, score), pool.chunk_hits)


def _grouped(pool: Pool, groups: Ids) -> Pool:
    """One row per group: its best row before grouping (the pool is in total order), with the id of the group."""
    # `first` is the first row of each group, which is its best in total order.
    ids, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    collapsed = pool.take(first)
    candidates = pool.candidates
    raw = np.full((len(ids), len(candidates.channels)), -np.inf)
    rank = np.full(raw.shape, np.iinfo(np.int32).max, np.int32)
    # Per group and search: the highest raw score and the best rank of its rows.
    # unbuffered: several rows of a group write to the same element. -inf and the largest int32 mean "not returned"
    # until the end.
    np.maximum.at(raw, inverse, np.where(np.isnan(candidates.raw), -np.inf, candidates.raw))
    np.minimum.at(rank, inverse, np.where(candidates.rank == NO_RANK, np.iinfo(np.int32).max, candidates.rank))
    merged = replace(
        candidates.take(first, ids),
        raw=np.where(np.isneginf(raw), np.nan, raw),
        rank=np.where(rank == np.iinfo(np.int32).max, NO_RANK, rank).astype(np.int32),
    )
    hits = np.bincount(inverse, weights=pool.chunk_hits, minlength=len(ids)).astype(np.int32)
    return Pool(merged, collapsed.steps, hits)


def _sorted(pool: Pool) -> Pool:
    score = pool.score
    # strictly descending scores have no ties for ids to resolve
    if np.all(score[:-1] > score[1:]):
        return pool
    return in_total_order(pool)


def in_total_order(pool: Pool) -> Pool:
    """The pool in total order; the same object if it is already in order, which saves a copy."""
    rows = pool.order()
    return pool if (rows[1:] > rows[:-1]).all() else pool.take(rows)
