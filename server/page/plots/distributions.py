"""How a figure is spread over the queries: overlap, latency of both pipelines, and what the variant adds."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor
from typing import Literal

import numpy as np

from speckit_memory.pipeline.ports import Column
from speckit_memory.server.page.plots.plot import Plot
from speckit_memory.server.page.svg import CONTROL, DOWN, INK, MUTED, UP, VARIANT, Canvas, drawn
from speckit_memory.server.wording import counted, milliseconds, percent

_TENTHS = 11
_BINS = 28
_OUTER = 99
"""Percentile at which the axis of latencies ends: one outlier must not press all others together."""
_LEAST_MS = 0.01


def overlap_distribution(name: str, overlaps: Sequence[float]) -> Plot:
    """How many queries have so much of their first ten rows in common."""
    tenths = np.rint(np.asarray(overlaps) * (_TENTHS - 1)).astype(int)
    counts = np.bincount(tenths, minlength=_TENTHS).tolist()

    def draw(canvas: Canvas) -> None:
        axes = canvas.axes
        bars = axes.bar(range(_TENTHS), counts, width=0.82, color=VARIANT, alpha=0.85)
        axes.bar_label(bars, [str(count) if count else "" for count in counts], padding=2, color=INK)
        axes.set_xticks(range(_TENTHS), [f"{tenth / 10:g}" for tenth in range(_TENTHS)])
        axes.set(xlabel="share of the first 10 rows that both return", ylabel="queries")
        axes.set_ylim(0, max(counts) * 1.15)
        axes.grid(visible=False, axis="x")

    caption = (
        f"Overlap of the first 10 rows, {counted(len(overlaps), 'query')}: {percent(counts[-1], len(overlaps))} return "
        "the same rows (not necessarily in the same order); the further left a query stands, the fewer they share."
    )
    rows = [["overlap@10", "queries"], *([f"{tenth / 10:.1f}", f"{count:,}"] for tenth, count in enumerate(counts))]
    return Plot("Overlap of the first 10", drawn(name, draw, height=220), caption, rows)


def latency_distribution(name: str, control: Column, variant: Column, names: tuple[str, str]) -> Plot:
    """The times of both pipelines, query by query, each as if it ran alone."""
    both = np.concatenate([control, variant])
    low = max(float(both.min()), _LEAST_MS)
    high = max(float(np.percentile(both, _OUTER)), low * 1.5)
    bins = np.geomspace(low, high, _BINS).tolist()

    def draw(canvas: Canvas) -> None:
        from matplotlib.lines import Line2D

        axes, outlines = canvas.axes, []
        lines: tuple[tuple[Column, str, Literal["--", "-"]], ...] = (
            (control, CONTROL, "--"), (variant, VARIANT, "-")
        )  # fmt: skip
        for times, colour, line in lines:
            seen = np.clip(times, low, high)
            axes.hist(seen, bins=bins, color=colour, alpha=0.22, histtype="stepfilled")
            axes.hist(seen, bins=bins, color=colour, histtype="step", linewidth=1.8, linestyle=line)
            outlines.append(Line2D([], [], color=colour, linewidth=1.8, linestyle=line))
        canvas.logarithmic(low, high)
        axes.set(xlabel="milliseconds per query (logarithmic)", ylabel="queries")
        axes.set_ylim(0, axes.get_ylim()[1] * (1.3 if canvas.narrow else 1.2))
        labels = [canvas.short(label, 16, 40) for label in names]
        axes.legend(outlines, labels, loc="upper right", ncols=1 if canvas.narrow else 2, labelcolor=INK)
        axes.grid(visible=False, axis="x")

    rows = [["pipeline", "p50 ms", "p90 ms", "p95 ms", "p99 ms"]]
    for label, times in zip(names, (control, variant), strict=True):
        rows.append([label, *(f"{value:.2f}" for value in np.percentile(times, (50, 90, 95, 99)))])
    caption = (
        f"Time of a whole query through either pipeline, {counted(len(control), 'query')}: {names[0]} (dashed) takes "
        f"{milliseconds(float(np.median(control)))} at the median, {names[1]} (solid) "
        f"{milliseconds(float(np.median(variant)))}. Steps that ran once for both count in both. The last bar holds "
        "all that took longer."
    )
    return Plot("Latency of both pipelines", drawn(name, draw, height=230), caption, rows)


def overhead_distribution(name: str, overhead: Column, names: tuple[str, str]) -> Plot:
    """The time of the variant minus that of the control on the same query."""
    bins = _around_zero(*(float(end) for end in np.percentile(overhead, (100 - _OUTER, _OUTER))))
    median, late = (float(value) for value in np.percentile(overhead, (50, 95)))

    def draw(canvas: Canvas) -> None:
        axes = canvas.axes
        seen = np.clip(overhead, bins[0], bins[-1])
        axes.hist(seen[seen < 0], bins=bins, color=UP, alpha=0.8)
        axes.hist(seen[seen >= 0], bins=bins, color=DOWN, alpha=0.8)
        axes.axvline(0, color=INK, linewidth=1.4)
        for value, label, align in ((median, "p50 ", "right"), (late, " p95", "left")):
            place = float(np.clip(value, bins[0], bins[-1]))
            axes.axvline(place, color=MUTED, linewidth=1.2, linestyle=(0, (3, 2)))
            axes.annotate(
                label, (place, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 2), textcoords="offset points",
                ha=align, va="bottom", color=INK,
            )  # fmt: skip
        axes.set(xlabel="added milliseconds, same query", ylabel="queries")
        axes.grid(visible=False, axis="x")

    slower = int((overhead > 0).sum())
    caption = (
        f"The time of {names[1]} minus that of {names[0]} on the very same query, {counted(len(overhead), 'query')}: "
        f"{milliseconds(median, signed=True)} at the median, {milliseconds(late, signed=True)} at the 95th percentile; "
        f"slower on {percent(slower, len(overhead))} (orange, right of the line), faster on the others (green, left)."
    )
    points = (5, 25, 50, 75, 95, 99)
    values = np.percentile(overhead, points)
    rows = [["percentile", "added ms"]]
    rows += [[f"p{point}", f"{value:+.2f}"] for point, value in zip(points, values, strict=True)]
    return Plot("Paired overhead", drawn(name, draw, height=220), caption, rows)


def _around_zero(low: float, high: float) -> list[float]:
    """Edges of bars of one width, one of them at 0, from `low` or below to `high` or above."""
    low, high = min(low, 0.0), max(high, 0.0)
    width = max(high - low, _LEAST_MS) / _BINS
    return [place * width for place in range(min(floor(low / width), -1), max(ceil(high / width), 1) + 1)]
