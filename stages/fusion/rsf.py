"""Fusion by relative score: the mean of scores that are mapped to [0, 1] per search."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.arithmetic import min_max, row_sums
from speckit_memory.pipeline.model.columns import NO_RANK, Candidates, Fused, Query
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Column
from speckit_memory.pipeline.roles.contracts import About, Params, PipelineContext
from speckit_memory.stages.fusion._addends import search_names, summing_to


class RsfParams(Params):
    """Parameters of relative score fusion; the defaults are the catalogue's."""

    form: Literal["pair", "multi", "cross_variant"] = Field(
        "multi", description="Two channels, any number of lists, or lists grouped by query variant."
    )
    variant_bonus: float = Field(
        0.10, ge=0, le=1, description="Added for each further query variant that found the candidate (cross_variant)."
    )


class Rsf:
    """Relative score fusion in three forms; min-max per search, scores in [0, 1].

    If a search did not reach its limit, its `rest` is the lower end, so that its last hit is still above the rows it
    did not return; for a search cut off by its limit the lower end is its last hit.

    pair: the mean of two channels' scores; a row found by one channel only keeps half of its score. multi: the mean of
    the scores present, times the share of lists that returned the candidate, which is the sum divided by the number of
    lists. cross_variant: multi within each query variant, the mean over the variants that found the candidate, and a
    bonus for each further one. An addend `clamp` limits the sum to 1. Features F2, F4.
    """

    about = About(features=("F2", "F4"), gives=Scale.UNIT)
    Params = RsfParams

    def __init__(self, params: RsfParams) -> None:
        self._params = params

    @classmethod
    def check(cls, params: RsfParams, context: PipelineContext) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """The form `pair` fuses two channels."""
        if params.form == "pair" and len(context.channels) != 2:
            yield ("form",), f"form pair fuses two channels, but the pipeline has {len(context.channels)}; use multi"

    def fuse(self, query: Query, candidates: Candidates) -> Fused:  # noqa: ARG002 - relative scores ignore the query
        """One addend per search, the bonus, the clamp."""
        searches = len(candidates.channels)
        variants = np.array(candidates.variants)
        found = candidates.rank != NO_RANK
        # told: (rows, searches), the score or `rest`; NaN where the limit cut the search off
        told = np.where(found, candidates.raw, candidates.rest)
        # shares: (rows, searches) in [0, 1], 0 for rows that a search did not return
        shares = np.array([min_max(told[:, column]) for column in range(searches)])
        # the reshape keeps both axes where there is no search
        shares = np.where(found, shares.reshape(searches, len(candidates)).T, 0.0)
        bonus = np.zeros(len(candidates))
        match self._params.form:
            case "pair":
                divisors: Column = np.full(shares.shape, 2.0 * len(set(candidates.variants)))
            case "multi":
                divisors = np.full(shares.shape, float(searches))
            case "cross_variant":
                lists = np.array([np.sum(variants == variant) for variant in candidates.variants])
                by_variant = [found[:, variants == variant].any(axis=1) for variant in np.unique(variants)]
                seen = np.maximum(np.sum(by_variant, axis=0), 1) if by_variant else np.ones(len(candidates))
                # (rows, searches): mean within each variant, then mean over the variants that found the row
                divisors = np.outer(seen, lists)
                bonus = self._params.variant_bonus * (seen - 1.0)
        parts = np.column_stack([shares / divisors, bonus])
        names = (*search_names(candidates), "variants")
        return summing_to(names, parts, "clamp", np.minimum(row_sums(parts), 1.0))
