"""No fusion: the unchanged scores of the only channel."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Candidates, Fused, Query
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.roles.contracts import About, Params, PipelineContext
from speckit_memory.stages.fusion._addends import normalise, search_names


class SingleParams(Params):
    """Parameters of a pipeline with a single channel."""

    scale: Literal["bm25", "cosine", "unit"] = Field(description="The scale of the channel's scores.")
    normalise: Literal["none", "min_max"] = Field("none", description="Whether scores are mapped to [0, 1].")


class Single:
    """Passes the scores of a pipeline's only channel through, the best over query variants. Feature F4."""

    about = About(features=("F4",))
    Params = SingleParams

    def __init__(self, params: SingleParams) -> None:
        self._params = params

    @classmethod
    def scale(cls, params: SingleParams) -> Scale:
        """[0, 1] after normalisation, else the channel's."""
        return Scale.UNIT if params.normalise == "min_max" else Scale(params.scale)

    @classmethod
    def check(cls, params: SingleParams, context: PipelineContext) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """There is one channel, and its scale is the declared one."""
        if len(context.channels) != 1:
            found = f"{len(context.channels)} ({', '.join(context.channels)})"
            yield (), f"passes one channel through, but the pipeline has {found}; use rrf or z_score"
        elif context.scales[0] is not Scale(params.scale):
            scale = context.scales[0]
            yield ("scale",), f"'{context.channels[0]}' scores on the scale {scale}, not {params.scale}"

    def fuse(self, query: Query, candidates: Candidates) -> Fused:  # noqa: ARG002 - nothing depends on the query
        """One addend per search, of which only the best is not 0; then the effect of normalisation."""
        raw = np.where(np.isnan(candidates.raw), -np.inf, candidates.raw)
        parts = np.zeros(raw.shape)
        if raw.size:
            # Every row has at least one hit, so the best is never -inf.
            best = np.argmax(raw, axis=1)
            parts[np.arange(len(raw)), best] = raw[np.arange(len(raw)), best]
        return normalise(search_names(candidates), parts, self._params.normalise)
