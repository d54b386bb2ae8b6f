"""Fusion by score: standard deviations above each search's mean, weighted and summed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.arithmetic import standardise
from speckit_memory.pipeline.model.columns import Candidates, Fused, Query
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Column
from speckit_memory.pipeline.roles.contracts import About, Params, PipelineContext
from speckit_memory.stages.fusion._addends import Normalise, normalise, search_names
from speckit_memory.stages.fusion._weighting import (
    ChannelWeights,
    check_channel_weights,
    knows_age,
    recency_bonus,
    search_weights,
    settled_weights,
)


class ZScoreParams(Params):
    """Parameters of z-score fusion."""

    weights: ChannelWeights = Field(
        default={},
        description="Weight by channel id, 1.0 for the others; or by_intent, which includes recency, or "
        "by_intent_ageless.",
    )
    missing: Literal["lowest", "mean"] = Field(
        "lowest",
        description="Value of a row cut off by a search's limit: the search's lowest score or its mean.",
    )
    normalise: Normalise = Field("none", description="Whether and how scores are mapped to [0, 1].")


class ZScore:
    """Σ weight · z over the searches, z the standardised score of that search.

    For a search that did not reach its limit, all candidates that it did not return have its `rest` as their score (0
    for BM25), and it is standardised over all candidates, so that the one document with a rare word is far above the
    others. A search cut off by its limit is standardised over its hits only, and its other rows get the value selected
    by `missing`. If all scores of a search are equal, they carry no information and give 0.

    Searches of several query variants share their channel's weight. Scores on the unit scale mean the same for every
    query: they are added unchanged, 0 for rows that were not found. Features F3, F4.
    """

    about = About(features=("F3", "F4"), gives=Scale.Z_SCORE)
    Params = ZScoreParams

    def __init__(self, params: ZScoreParams) -> None:
        self._params = params

    @classmethod
    def scale(cls, params: ZScoreParams) -> Scale:
        """[0, 1] after normalisation, else standard deviations."""
        return Scale.Z_SCORE if params.normalise == "none" else Scale.UNIT

    @classmethod
    def weighs_intent(cls, params: ZScoreParams) -> Literal["channels"] | None:
        """Channels are weighted by intent if the parameters say so (feature P6)."""
        return "channels" if isinstance(params.weights, str) else None

    @classmethod
    def check(cls, params: ZScoreParams, context: PipelineContext) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """Weights name declared channels."""
        return check_channel_weights(params.weights, context)

    @classmethod
    def settled(cls, params: ZScoreParams, context: PipelineContext) -> ZScoreParams:
        """The parameters with the weight of every channel."""
        return params.model_copy(update={"weights": settled_weights(params.weights, context, {})})

    def fuse(self, query: Query, candidates: Candidates) -> Fused:
        """One addend per search, then the effect of normalisation."""
        params = self._params
        weights = search_weights(params.weights, query, candidates, {}) / max(len(set(candidates.variants)), 1)
        names = list(search_names(candidates))
        parts = [weight * self._evidence(candidates, column) for column, weight in enumerate(weights)]
        if knows_age(params.weights):
            names.append("recency")
            parts.append(recency_bonus(query, candidates))
        table = np.column_stack(parts) if parts else np.empty((len(candidates), 0))
        return normalise(names, table, params.normalise)

    # parts: one (rows,) column of weight · z per search
    def _evidence(self, candidates: Candidates, column: int) -> Column:
        raw = candidates.raw[:, column]
        absent = np.isnan(raw)
        if candidates.scales[column] is Scale.UNIT:
            return np.where(absent, 0.0, raw)
        rest = candidates.rest[column]
        if not np.isnan(rest):
            return standardise(np.where(absent, rest, raw))
        # NaN stays NaN, so the mean and deviation are those of the hits alone.
        z = standardise(raw)
        if absent.all():
            return np.zeros(len(z))
        z[absent] = 0.0 if self._params.missing == "mean" else z[~absent].min()
        return z
