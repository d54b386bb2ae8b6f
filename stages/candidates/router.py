"""Selects channels and their limits by the complexity of a query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pydantic import Field

from speckit_memory.pipeline.model.columns import Plan, Query
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import About, Params, PipelineContext

MINIMUM = 2
"""Minimum number of channels of any query (feature C10)."""

ALWAYS = ("constitutional", "identifier", "phrase", "surface", "trigger")
"""Channels used for every query: they follow fixed rules and return few hits, if any."""

ALL_FIVE = ("vector", "fts5", "bm25", "graph", "degree")


class Route(Params):
    """The channels and limit of one complexity."""

    channels: tuple[str, ...] = Field(default=ALL_FIVE, strict=False, description="Ids of the channels to use.")
    limit: int = Field(default=20, ge=1, le=1000, description="Hits per channel; at least the query's own limit.")


class RouterParams(Params):
    """The routes by complexity, and the channels outside of routing."""

    simple: Route = Field(default=Route(channels=("vector", "fts5"), limit=5), description="Route of simple queries.")
    moderate: Route = Field(
        default=Route(channels=("vector", "fts5", "bm25"), limit=10), description="Route of moderate queries."
    )
    complex: Route = Field(default=Route(), description="Route of complex queries.")
    always: tuple[str, ...] = Field(
        ALWAYS, strict=False, description="Channels used for every query, with their own limit."
    )


class Router:
    """Leaves out channels that a simple query does not need, and requests fewer hits from each.

    Every route has at least two declared channels in addition to those that are always used. Feature C10.
    """

    about = About(features=("C10",))
    Params = RouterParams

    def __init__(self, params: RouterParams) -> None:
        self._routes = {"simple": params.simple, "moderate": params.moderate, "complex": params.complex}
        self._always = params.always

    @classmethod
    def check(cls, params: RouterParams, context: PipelineContext) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """Every route has two declared channels, and the pipeline has a complexity step."""
        if "complexity" not in context.uses:
            yield (), "routes by complexity, which no step determines; add 'complexity' before it"
        for tier in ("simple", "moderate", "complex"):
            wanted = getattr(params, tier).channels
            declared = [c for c in context.channels if c in wanted and c not in params.always]
            if len(declared) < MINIMUM:
                found = f"of {', '.join(wanted)}, this pipeline has {', '.join(declared) or 'none'}"
                yield (tier,), f"{tier} queries keep fewer than {MINIMUM} channels: {found}"

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:  # noqa: ARG002 - only the plan is used
        """The plan with the channels and limits of its route."""
        route = self._routes[plan.complexity]
        channels = tuple(dict.fromkeys((*route.channels, *self._always)))
        # Never below the query's own limit: a single channel may have to fill the whole answer.
        limit = max(route.limit, query.limit)
        limits = {**plan.limits, **{channel: limit for channel in route.channels if channel not in self._always}}
        reason = f"router: {plan.complexity} queries ask {', '.join(route.channels)} for {limit} hits each"
        return replace(plan, channels=channels, limits=limits, reasons=plan.because(reason))
