"""Channel weights for fusion: fixed, or by the query's intent. Used by the fusers; not a step.

Adaptive weights (feature F3) come from seven profiles over four dimensions. The vector channel follows `semantic`,
full-text channels follow `keyword`, graph channels follow `graph` plus the profile's causal bias, and `recency` is a
bonus for recent updates. A filter on decisions, implementations or research shifts 0.1 between dimensions. Below a
confidence of 0.3 the static weights apply.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from speckit_memory.errors import closest
from speckit_memory.pipeline.model.columns import Candidates, Query
from speckit_memory.pipeline.ports import Column
from speckit_memory.pipeline.roles.contracts import PipelineContext

ChannelWeights = (
    Literal["by_intent", "by_intent_ageless"]
    | dict[str, Annotated[float, Field(ge=0, le=10, json_schema_extra={"tunable": [0.0, 2.0]})]]
)
"""A weight by channel id, or `by_intent`, with or without the bonus for recent updates."""

STATIC = {"vector": 1.0, "fts5": 0.8, "bm25": 0.6, "graph": 0.5, "degree": 0.4}
"""Weights while the intent is uncertain."""

UNSAID = 1.0
"""The weight of a channel that no parameter names."""

MIN_CONFIDENCE = 0.3
SHIFT = 0.1
RECENCY_SCALE = 0.1
RECENCY_DAYS = 365.0
SECONDS_PER_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Profile:
    """The weight of each dimension for an intent."""

    semantic: float
    keyword: float
    recency: float
    graph: float
    causal_bias: float


PROFILES = {
    "add_feature": Profile(0.5, 0.3, 0.2, 0.20, 0.15),
    "fix_bug": Profile(0.4, 0.4, 0.2, 0.10, 0.15),
    "refactor": Profile(0.6, 0.3, 0.1, 0.15, 0.10),
    "security_audit": Profile(0.3, 0.5, 0.2, 0.15, 0.10),
    "understand": Profile(0.7, 0.2, 0.1, 0.15, 0.10),
    "find_spec": Profile(0.7, 0.2, 0.1, 0.30, 0.10),
    "find_decision": Profile(0.3, 0.2, 0.1, 0.50, 0.15),
}


def profile(query: Query) -> Profile | None:
    """The profile of the query's intent, shifted by its context type filter; None if the intent is uncertain."""
    chosen = PROFILES.get(query.plan.intent)
    if chosen is None or query.plan.intent_confidence < MIN_CONFIDENCE:
        return None
    match query.wanted.context_type:
        case "decision":
            return replace(chosen, keyword=chosen.keyword + SHIFT, semantic=chosen.semantic - SHIFT)
        case "implementation":
            return replace(chosen, recency=chosen.recency + SHIFT, semantic=chosen.semantic - SHIFT)
        case "research":
            return replace(chosen, semantic=chosen.semantic + SHIFT, keyword=chosen.keyword - SHIFT)
    return chosen


def search_weights(
    weights: ChannelWeights, query: Query, candidates: Candidates, defaults: Mapping[str, float]
) -> Column:
    """The weight of each search, float64[searches].

    Args:
        weights: Weights by channel id, or `by_intent`.
        query: The query with its intent.
        candidates: The candidates with their searches.
        defaults: Weights of channels that `weights` does not name; `UNSAID` for others.
    """
    if not isinstance(weights, str):
        return _of({**defaults, **weights}, candidates)
    chosen = profile(query)
    if chosen is None:
        return _of(STATIC, candidates)
    causal = chosen.graph + chosen.causal_bias
    adapted = {"vector": chosen.semantic, "fts5": chosen.keyword, "bm25": chosen.keyword, "graph": causal}
    return _of({**STATIC, **adapted}, candidates)


def _of(weights: Mapping[str, float], candidates: Candidates) -> Column:
    return np.array([weights.get(channel, UNSAID) for channel in candidates.channels], np.float64)


def knows_age(weights: ChannelWeights) -> bool:
    """Whether candidates get a bonus for recency in addition to these weights."""
    return weights == "by_intent"


def recency_bonus(query: Query, candidates: Candidates) -> Column:
    """e^(−age / 365 days) · recency weight · 0.1 per candidate; 0 if the age is unknown or the intent uncertain."""
    chosen = profile(query)
    if chosen is None:
        return np.zeros(len(candidates))
    # NaN for an unknown time, which gives no bonus below
    days = np.maximum(query.now - candidates.updated_at, 0.0) / SECONDS_PER_DAY
    return np.nan_to_num(np.exp(-days / RECENCY_DAYS)) * (chosen.recency * RECENCY_SCALE)


def check_channel_weights(
    weights: ChannelWeights, context: PipelineContext
) -> Iterable[tuple[tuple[str | int, ...], str]]:
    """A problem for each weight of a channel that the pipeline does not have, and one if no channel has a weight."""
    if isinstance(weights, str):
        return
    if context.channels and not any(weights.get(channel, UNSAID) for channel in context.channels):
        yield ("weights",), "every channel has the weight 0, so all memories would get the same score"
    for channel in weights:
        if channel not in context.channels:
            close = closest(channel, context.channels)
            meant = f"did you mean '{close}'? " if close else ""
            declared = ", ".join(context.channels) or "none"
            message = f"there is no channel '{channel}'; {meant}declared channels: {declared}"
            yield ("weights", channel), message


def settled_weights(weights: ChannelWeights, context: PipelineContext, defaults: Mapping[str, float]) -> ChannelWeights:
    """The effective weight of every channel of the pipeline, as used by `search_weights`."""
    if isinstance(weights, str):
        return weights
    said = {**defaults, **weights}
    return {channel: said.get(channel, UNSAID) for channel in context.channels}
