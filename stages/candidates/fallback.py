"""What to try when no channel found anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pydantic import Field

from speckit_memory.pipeline.model.columns import Plan, Query
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import About, Params, PipelineContext
from speckit_memory.stages.candidates.router import ALWAYS


class FallbackParams(Params):
    """Parameters of the fallback; the defaults are the catalogue's."""

    min_similarity: float = Field(0.17, ge=0, le=1, description="The similarity that is never gone below.")
    limit_factor: float = Field(2.0, ge=1, le=10, description="Factor of every channel's limit in the second try.")
    lexical: tuple[str, ...] = Field(
        ("fts5", "bm25"), strict=False, description="Channels of the last try, at full length, without a router."
    )
    always: tuple[str, ...] = Field(ALWAYS, strict=False, description="Channels that the last try asks as well.")


class Fallback:
    """Searches again: first with half the similarity and double limits in all folders, then with words alone.

    The second try asks for max(floor, half of what the channels ask for). It is left out where that would be no
    relaxation, because they ask for no more than the floor, and no folders were chosen that could be opened. The last
    one asks the full-text channels, also where the router had left them out, and those that every query asks. Feature
    C14.
    """

    about = About(features=("C14",), costly=True)
    Params = FallbackParams

    def __init__(self, params: FallbackParams) -> None:
        self._params = params

    @classmethod
    def check(cls, params: FallbackParams, context: PipelineContext) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """The last try has a channel to ask."""
        if not set(params.lexical) & set(context.channels):
            declared = ", ".join(context.channels)
            named = f"none of {', '.join(params.lexical)}" if params.lexical else "no channel is named, so that none"
            yield ("lexical",), f"{named} is a declared channel to ask at last; declared: {declared}"

    def recover(self, query: Query, plan: Plan, store: Store) -> Plan:  # noqa: ARG002 - the plan says how far we are
        """The plan of the next try; the plan as it is when there is none."""
        params = self._params
        relaxed = max(params.min_similarity, plan.asked_similarity / 2)
        gentler = relaxed < plan.asked_similarity
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
