"""Shorter answers when the caller's context window fills up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pydantic import Field

from speckit_memory.pipeline.model.columns import Mode, Plan, Query
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import About, Params, PipelineContext


class PressureParams(Params):
    """Parameters of the pressure policy; the defaults are the catalogue's."""

    focused: float = Field(0.6, ge=0, le=1, description="From this share of used context on, the mode is focused.")
    quick: float = Field(0.8, ge=0, le=1, description="Above this share of used context, the mode is quick.")


class Pressure:
    """Changes the mode `auto` to `focused` or `quick` as the caller's context fills up.

    Below 60 % of used context nothing changes, up to 80 % the mode is focused, above it quick. A mode that the caller
    chose stands, and without a figure nothing changes. Feature C17.
    """

    about = About(features=("C17",))
    Params = PressureParams

    def __init__(self, params: PressureParams) -> None:
        self._params = params

    @classmethod
    def check(cls, params: PressureParams, _: PipelineContext) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """The borders are in order."""
        if params.quick < params.focused:
            yield ("quick",), f"must not be below 'focused' ({params.focused:g}); found {params.quick:g}"

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:  # noqa: ARG002 - the figure says it all
        """The plan with the mode to run in."""
        if query.token_usage is None or query.mode != "auto":
            return plan
        usage = min(max(query.token_usage, 0.0), 1.0)
        if usage < self._params.focused:
            return plan
        mode: Mode = "quick" if usage > self._params.quick else "focused"
        return replace(plan, mode=mode, reasons=plan.because(f"pressure: {usage:.0%} of the context used, mode {mode}"))
