"""Skips expensive channels that add little, in quick mode."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field, PrivateAttr

from speckit_memory.pipeline.model.columns import Mode, Plan, Query
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import About, Params, PipelineContext


class QuickLookParams(Params):
    """The skipped channels, and the modes in which they are skipped."""

    modes: tuple[Mode, ...] = Field(("quick",), strict=False, description="Modes in which channels are skipped.")
    without: tuple[str, ...] = Field(
        ("vector", "graph", "degree", "community"), strict=False, description="Ids of the skipped channels."
    )
    _asked: tuple[str, ...] = PrivateAttr(())
    """Ids of the remaining channels of the pipeline."""


class QuickLook:
    """In quick mode only uses the channels that match words and names.

    A plan that already restricts channels is restricted further. If no channel would remain, all are used. Features T1
    and C17.
    """

    about = About(features=("C17", "T1"))
    Params = QuickLookParams

    def __init__(self, params: QuickLookParams) -> None:
        self._params = params

    @classmethod
    def settled(cls, params: QuickLookParams, context: PipelineContext) -> QuickLookParams:
        """The parameters with the remaining channels of this pipeline."""
        settled = params.model_copy()
        # A private attribute is no parameter: a pipeline file cannot set it.
        settled._asked = tuple(name for name in context.channels if name not in params.without)
        return settled

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:  # noqa: ARG002 - only the plan is used
        """The plan with the quick channels."""
        p = self._params
        channels = p._asked if plan.channels is None else tuple(name for name in p._asked if name in plan.channels)
        if query.running_mode not in p.modes or not channels:
            return plan
        return replace(plan, channels=channels, reasons=plan.because(f"quick look: asks {', '.join(channels)}"))
