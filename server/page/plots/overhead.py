"""Plots the distribution of the time that a variant adds per query."""

from __future__ import annotations

from math import ceil, floor
from typing import TYPE_CHECKING

import numpy as np

from speckit_memory.pipeline.ports import Column
from speckit_memory.server.console.wording import milliseconds, percent, plural
from speckit_memory.server.page.plots.plot import Plot
from speckit_memory.server.page.svg import DOWN, INK, MUTED, UP, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BINS = 16
_OUTER = 99
"""The axis spans this percentile and its opposite, so that outliers do not compress the plot."""
_LEAST_MS = 0.01


def overhead_distribution(name: str, overhead: Column, names: tuple[str, str]) -> Plot:
    """The histogram of variant time minus control time per query; `overhead` has shape (queries,), in ms."""
    bins = _around_zero(*(float(end) for end in np.percentile(overhead, (100 - _OUTER, _OUTER))))
    median, late = (float(value) for value in np.percentile(overhead, (50, 95)))

    def draw(axes: Axes) -> None:
        # seen: (queries,); outliers go to the outermost bins
        seen = np.clip(overhead, bins[0], bins[-1])
        axes.hist(seen[seen < 0], bins=bins, color=UP, alpha=0.8)
        axes.hist(seen[seen >= 0], bins=bins, color=DOWN, alpha=0.8)
        axes.axvline(0, color=INK, linewidth=1.4)
        for value, label, align in ((median, "p50 ", "right"), (late, " p95", "left")):
            place = float(np.clip(value, bins[0], bins[-1]))
            axes.axvline(place, color=MUTED, linewidth=1.2, linestyle=(0, (3, 2)))
            axes.annotate(
                label,
                (place, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(0, 2),
                textcoords="offset points",
                ha=align,
                va="bottom",
                color=INK,
            )
        axes.set(xlabel="added milliseconds, same query", ylabel="queries")
        axes.grid(visible=False, axis="x")

    slower = int((overhead > 0).sum())
    caption = (
        f"The time of {names[1]} minus that of {names[0]} on the very same query, {plural(len(overhead), 'query')}: "
        f"{milliseconds(median, signed=True)} at the median, {milliseconds(late, signed=True)} at the 95th percentile; "
        f"slower on {percent(slower, len(overhead))} (orange, right of the line), faster on the others (green, left)."
    )
    points = (5, 25, 50, 75, 95, 99)
    values = np.percentile(overhead, points)
    rows = [["percentile", "added ms"]]
    rows += [[f"p{point}", f"{value:+.2f}"] for point, value in zip(points, values, strict=True)]
    return Plot("Paired overhead", drawn(name, draw, height=220), caption, rows)


def _around_zero(low: float, high: float) -> list[float]:
    """Bin edges of equal width that cover `low` to `high`, one of them at 0."""
    low, high = min(low, 0.0), max(high, 0.0)
    width = max(high - low, _LEAST_MS) / _BINS
    # at least one bin on each side of 0; a multiple of the width, so that 0 is an edge
    return [place * width for place in range(min(floor(low / width), -1), max(ceil(high / width), 1) + 1)]
