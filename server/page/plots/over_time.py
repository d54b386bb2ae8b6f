"""Plots how the confidence interval of the quality difference narrows as queries arrive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from speckit_memory.evaluation.experiments.sequential_estimates import METRIC, SequentialEstimate
from speckit_memory.server.page.plots.plot import Plot
from speckit_memory.server.page.svg import INK, MUTED, VARIANT, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROWS = 12
_MARGIN = 0.06


def over_time(name: str, looks: Sequence[SequentialEstimate], control: str, variant: str) -> Plot:
    """The plot of the mean difference with its always-valid 95 % interval, over the number of queries.

    Args:
        name: Id prefix of the drawing, unique on the page.
        looks: The estimates in order of time; at least one.
        control: Name of the served pipeline.
        variant: Name of the shadow pipeline.
    """
    queries = [look.queries for look in looks]
    low, high = ([look.ci95[end] for look in looks] for end in (0, 1))

    def draw(axes: Axes) -> None:
        axes.fill_between(queries, low, high, color=VARIANT, alpha=0.18, linewidth=0)
        for edge in (low, high):
            axes.plot(queries, edge, color=VARIANT, linewidth=1, alpha=0.7)
        axes.plot(queries, [look.delta for look in looks], color=VARIANT, linewidth=2.4)
        axes.axhline(0, color=INK, linewidth=1.4)
        # symmetric around 0, so that "better" and "worse" have equal space
        reach = max(abs(end) for end in (*low, *high, 0.01)) * (1 + _MARGIN)
        axes.set(ylim=(-reach, reach), xlabel="queries", ylabel=f"difference in {METRIC}")
        for at, words, align in ((0.97, "variant better", "top"), (0.03, "variant worse", "bottom")):
            axes.text(0.99, at, words, transform=axes.transAxes, ha="right", va=align, color=MUTED)

    rows = [["queries", "differing and judged", f"{METRIC} difference", "95 % interval"]]
    for look in _thinned(looks):
        interval = f"{look.ci95[0]:+.3f} to {look.ci95[1]:+.3f}"
        rows.append([f"{look.queries:,}", f"{look.judged:,}", f"{look.delta:+.3f}", interval])
    last = looks[-1]
    outside = last.ci95[0] > 0 or last.ci95[1] < 0
    caption = (
        f"{METRIC} of {variant} minus that of {control}, over {last.judged:,} differing queries with judgements of "
        f"{last.queries:,}. The band is valid at all times at once: you may look as often as you like. It "
        + ("excludes 0: the difference is real." if outside else "still includes 0: nothing is decided.")
    )
    return Plot("What is known, query by query", drawn(name, draw, height=260), caption, rows)


def _thinned(looks: Sequence[SequentialEstimate]) -> list[SequentialEstimate]:
    """About `_ROWS` looks for the table, always with the last one."""
    # ceiling division
    every = max(1, -(-len(looks) // _ROWS))
    return [*looks[:-1:every], looks[-1]]
