"""Fusion by rank: rows that rank high in several lists rank high."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import NO_RANK, Candidates, Fused, Query
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Column
from speckit_memory.pipeline.roles.contracts import About, Params, PipelineContext
from speckit_memory.stages.fusion._addends import normalise, search_names
from speckit_memory.stages.fusion._weighting import (
    ChannelWeights,
    check_channel_weights,
    knows_age,
    recency_bonus,
    search_weights,
    settled_weights,
)

DEFAULTS = {"graph": 1.5}
"""Weights of channels that the parameters do not name (feature F1); 1.0 for the others."""


class RrfParams(Params):
    """Parameters of reciprocal rank fusion; the defaults are the catalogue's."""

    k: float = Field(
        60.0,
        gt=0,
        le=1000,
        description="Added to each rank; higher values reduce the lead of the first ranks.",
        json_schema_extra={"tunable": [10.0, 100.0]},
    )
    weights: ChannelWeights = Field(
        default={},
        description="Weight by channel id, 1.0 for the others (graph 1.5); or by_intent, which includes recency, or "
        "by_intent_ageless.",
    )
    convergence_bonus: float = Field(
        0.10, ge=0, le=1, description="Added for each further channel that found the candidate."
    )
    normalise: Literal["none", "min_max"] = Field("none", description="Whether scores are mapped to [0, 1].")


class Rrf:
    """Reciprocal rank fusion: Σ weight / (k + rank) over the searches, plus a bonus per further channel.

    Ranks count from 1, and hits with equal scores share a rank. Candidates found by several query variants also get the
    bonus per further variant. Scores are small positive numbers, or [0, 1] with `normalise: min_max`. Features F1, F3,
    F4. Cormack, Clarke and Büttcher (SIGIR 2009).
    """

    about = About(features=("F1", "F3", "F4"), gives=Scale.RANK_TERM)
    Params = RrfParams

    def __init__(self, params: RrfParams) -> None:
        self._params = params

    @classmethod
    def scale(cls, params: RrfParams) -> Scale:
        """[0, 1] after normalisation, else sums of rank terms."""
        return Scale.UNIT if params.normalise == "min_max" else Scale.RANK_TERM

    @classmethod
    def weighs_intent(cls, params: RrfParams) -> Literal["channels"] | None:
        """Channels are weighted by intent if the parameters say so (feature P6)."""
        return "channels" if isinstance(params.weights, str) else None

    @classmethod
    def check(cls, params: RrfParams, context: PipelineContext) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """Weights name declared channels."""
        return check_channel_weights(params.weights, context)

    @classmethod
    def settled(cls, params: RrfParams, context: PipelineContext) -> RrfParams:
        """The parameters with the weight of every channel."""
        return params.model_copy(update={"weights": settled_weights(params.weights, context, DEFAULTS)})

    def fuse(self, query: Query, candidates: Candidates) -> Fused:
        """One addend per search, then the bonuses, then the effect of normalisation."""
        params = self._params
        weights = search_weights(params.weights, query, candidates, DEFAULTS)
        # terms: (rows, searches), weight / (k + rank)
        found = candidates.rank != NO_RANK
        terms = np.where(found, weights / (params.k + candidates.rank), 0.0)
        names = [*search_names(candidates), "convergence", "variants"]
        parts = [terms, *(params.convergence_bonus * _further(found, labels) for labels in _labels(candidates))]
        if knows_age(params.weights):
            names.append("recency")
            parts.append(recency_bonus(query, candidates))
        return normalise(names, np.column_stack(parts), params.normalise)


def _labels(candidates: Candidates) -> tuple[tuple[str | int, ...], tuple[str | int, ...]]:
    return candidates.channels, candidates.variants


def _further(found: np.ndarray[tuple[int, int], np.dtype[np.bool_]], labels: tuple[str | int, ...]) -> Column:
    """The number of distinct labels, minus one, among the searches that found each row, float64[rows]."""
    distinct = [found[:, [name == label for name in labels]].any(axis=1) for label in dict.fromkeys(labels)]
    count = np.sum(distinct, axis=0) if distinct else np.zeros(len(found))
    return np.maximum(count - 1, 0).astype(np.float64)
