"""Selects a mode with shorter answers when the caller's context window fills up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pydantic import Field

from speckit_memory.pipeline.model.columns import Mode, Plan, Query
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import About, Params, PipelineContext


class PressureParams(Params):
    """The thresholds of the modes."""

    focused: float = Field(0.6, ge=0, le=1, description="Share of used context from which on the mode is focused.")
    quick: float = Field(0.8, ge=0, le=1, description="Share of used context above which the mode is quick.")


class Pressure:
    """Changes the mode `auto` to `focused` or `quick` as the caller's context fills up.

    Below 60 % of used context nothing changes, up to 80 % the mode is focused, above it quick. A mode chosen by the
    caller is kept, and nothing changes if the usage is unknown. Feature C17.
    """

    about = About(features=("C17",))
    Params = PressureParams

    def __init__(self, params: PressureParams) -> None:
        self._params = params

    @classmethod
    def check(cls, params: PressureParams, _: PipelineContext) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """The thresholds are in order."""
        if params.quick < params.focused:
            yield ("quick",), f"must not be below 'focused' ({params.focused:g}); found {params.quick:g}"

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:  # noqa: ARG002 - only the usage matters
        """The plan with the selected mode."""
        if query.token_usage is None or query.mode != "auto":
            return plan
        usage = min(max(query.token_usage, 0.0), 1.0)
        if usage < self._params.focused:
            return plan
        mode: Mode = "quick" if usage > self._params.quick else "focused"
        return replace(plan, mode=mode, reasons=plan.because(f"pressure: {usage:.0%} of the context used, mode {mode}"))
