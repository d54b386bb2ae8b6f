"""A quick look: channels that cost much and say little more are not asked."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field, PrivateAttr

from speckit_memory.pipeline.model.columns import Mode, Plan, Query
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import About, Params, PipelineContext


class QuickLookParams(Params):
    """Which channels are left out, and when."""

    modes: tuple[Mode, ...] = Field(("quick",), strict=False, description="Modes in which channels are left out.")
    without: tuple[str, ...] = Field(
        ("vector", "graph", "degree", "community"), strict=False, description="Ids of the channels that are left out."
    )
    _asked: tuple[str, ...] = PrivateAttr(())
    """Ids of the channels of the pipeline that are left to ask."""


class QuickLook:
    """In the mode quick asks the channels that go by words and names, and no other.

    A plan that leaves out channels already keeps to that. Where nothing would be left to ask, all channels are asked.
    Features T1 and C17.
    """

    about = About(features=("C17", "T1"))
    Params = QuickLookParams

    def __init__(self, params: QuickLookParams) -> None:
        self._params = params

    @classmethod
    def settled(cls, params: QuickLookParams, context: PipelineContext) -> QuickLookParams:
        """The parameters, which know what the pipeline has to ask."""
        settled = params.model_copy()
        settled._asked = tuple(name for name in context.channels if name not in params.without)
        return settled

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:  # noqa: ARG002 - the plan says it all
        """The plan with the channels that are quick."""
        p = self._params
        channels = p._asked if plan.channels is None else tuple(name for name in p._asked if name in plan.channels)
        if query.running_mode not in p.modes or not channels:
            return plan
        return replace(plan, channels=channels, reasons=plan.because(f"quick look: asks {', '.join(channels)}"))
