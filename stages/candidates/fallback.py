"""Retries the search with a more generous plan if no channel found anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pydantic import Field

from speckit_memory.pipeline.model.columns import Plan, Query
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import About, Params, PipelineContext
from speckit_memory.stages.candidates.router import ALWAYS


class FallbackParams(Params):
    """The relaxations of the second and third attempt."""

    min_similarity: float = Field(0.17, ge=0, le=1, description="Lower bound of the relaxed similarity.")
    limit_factor: float = Field(2.0, ge=1, le=10, description="Factor of every channel's limit in the second attempt.")
    lexical: tuple[str, ...] = Field(
        ("fts5", "bm25"), strict=False, description="Channels of the last attempt, at full limits, without a router."
    )
    always: tuple[str, ...] = Field(ALWAYS, strict=False, description="Further channels of the last attempt.")


class Fallback:
    """Searches again: first with half the similarity and double limits in all folders, then with words alone.

    The second attempt uses max(lower bound, half of the channels' `min_similarity`). It is skipped if that is no
    relaxation, because the channels do not use more than the lower bound, and no folder restriction can be removed. The
    last attempt uses the full-text channels, even if the router had left them out, and the channels used for every
    query. Feature C14.
    """

    about = About(features=("C14",), costly=True)
    Params = FallbackParams

    def __init__(self, params: FallbackParams) -> None:
        self._params = params

    @classmethod
    def check(cls, params: FallbackParams, context: PipelineContext) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """The last attempt has a channel to use."""
        if not set(params.lexical) & set(context.channels):
            declared = ", ".join(context.channels)
            named = f"none of {', '.join(params.lexical)}" if params.lexical else "'lexical' is empty: no channel"
            yield ("lexical",), f"{named} is a declared channel for the last attempt; declared: {declared}"

    def recover(self, query: Query, plan: Plan, store: Store) -> Plan:  # noqa: ARG002 - the plan holds all state
        """The plan of the next attempt; the unchanged plan if there is none left."""
        params = self._params
        relaxed = max(params.min_similarity, plan.asked_similarity / 2)
        gentler = relaxed < plan.asked_similarity
        # Second attempt, unless it would be the same as the first.
        if not plan.attempt and (gentler or plan.folders):
            what = [f"similarity {relaxed:g}"] * gentler + ["all folders"] * bool(plan.folders)
            reason = f"fallback: nothing found; {', '.join(what)}, limits × {params.limit_factor:g}"
            return replace(
                plan,
                min_similarity=relaxed if gentler else None,
                limit_factor=params.limit_factor,
                folders=(),
                reasons=plan.because(reason),
            )
        words = (*params.lexical, *params.always)
        if plan.channels == words:
            return plan
        still = "still nothing" if plan.attempt else "nothing found"
        reason = f"fallback: {still}; words only ({', '.join(params.lexical)})"
        return replace(plan, channels=words, reasons=plan.because(reason))
