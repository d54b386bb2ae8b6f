"""What each step of both pipelines takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from speckit_memory.evaluation.experiment_report import StepFigures
from speckit_memory.evaluation.report import Latency
from speckit_memory.server.page.plots.plot import Plot
from speckit_memory.server.page.svg import CONTROL, DOWN, INK, UP, VARIANT, Canvas, drawn

_LINE = 25
"""Pixels of a line."""
_SHOWN = 16
"""Steps with a line of their own, the costliest; the table has all of them."""
_LEAST_MS = 0.001
_ROOM = 1.25
"""Beside the outermost marks, as a factor of the logarithmic axis."""
_CIRCLE: dict[str, Any] = {
    "marker": "o", "linestyle": "none", "color": CONTROL, "markersize": 8, "markerfacecolor": "none",
    "markeredgewidth": 2,
}  # fmt: skip
_DIAMOND: dict[str, Any] = {"marker": "D", "linestyle": "none", "color": VARIANT, "markersize": 6}


def step_costs(name: str, steps: Sequence[StepFigures], names: tuple[str, str]) -> Plot:
    """The median time of each step in either pipeline, in the order in which they run."""
    costliest = sorted(steps, key=_cost, reverse=True)[:_SHOWN]
    lines = [step for step in steps if step in costliest]

    def draw(canvas: Canvas) -> None:
        from matplotlib.lines import Line2D

        axes, times = canvas.axes, []
        for place, step in enumerate(lines):
            control, variant = _median(step.control), _median(step.variant)
            if control is not None and variant is not None:
                axes.hlines(place, control, variant, color=DOWN if variant > control else UP, linewidth=3, alpha=0.5)
            for value, mark in ((control, _CIRCLE), (variant, _DIAMOND)):
                if value is not None:
                    axes.plot([value], [place], **mark)
                    times.append(value)
        canvas.logarithmic(min(times) / _ROOM, max(times) * _ROOM)
        axes.set_yticks(range(len(lines)), [canvas.short(step.step, 16, 34) for step in lines])
        axes.tick_params(axis="y", labelcolor=INK)
        axes.set(ylim=(len(lines) - 0.4, -0.6), xlabel="median milliseconds (logarithmic)")
        axes.legend(
            [Line2D([], [], **_CIRCLE), Line2D([], [], **_DIAMOND)], [canvas.short(label, 14, 34) for label in names],
            loc="lower left", bbox_to_anchor=(0, 1), ncols=2, labelcolor=INK, borderpad=0, handletextpad=0.4,
        )  # fmt: skip
        axes.grid(visible=False, axis="y")

    rows = [["step", "stage", f"{names[0]} p50 ms", "p95 ms", f"{names[1]} p50 ms", "p95 ms", "ran once for both"]]
    for step in steps:
        times = [f"{value:.3f}" if value is not None else "–" for value in _times(step)]
        rows.append([step.step, step.stage, *times, f"{step.shared:,}" if step.shared else "–"])
    more = f" The {_SHOWN} costliest of {len(steps)} steps; the table has all." if len(steps) > len(lines) else ""
    caption = (
        f"Median time of each step, in the order in which they run: circle {names[0]}, diamond {names[1]}; one mark "
        f"alone is a step that the other pipeline lacks.{more}"
    )
    return Plot("What each step costs", drawn(name, draw, height=80 + _LINE * len(lines)), caption, rows)


def _median(latency: Latency | None) -> float | None:
    return None if latency is None else max(latency.p50, _LEAST_MS)


def _times(step: StepFigures) -> list[float | None]:
    both = (step.control, step.variant)
    return [time for latency in both for time in ((latency.p50, latency.p95) if latency else (None, None))]


def _cost(step: StepFigures) -> float:
    return max(_median(step.control) or 0.0, _median(step.variant) or 0.0)
