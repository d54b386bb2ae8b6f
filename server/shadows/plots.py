"""The plots of a shadow report: drawings, caption and table of each."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor

import numpy as np

from speckit_memory.errors.echo import plural
from speckit_memory.evaluation.experiments.experiment_quality import METRIC, SequentialEstimate
from speckit_memory.evaluation.statistics.report import Plot
from speckit_memory.pipeline.ports import Column
from speckit_memory.server.reports.svg import DOWN, UP, VARIANT, Axis, Chart
from speckit_memory.server.shadows.wording import milliseconds, percent

_ROWS = 12
_MARGIN = 0.06
_BINS = 16
_OUTER = 99
"""The axis spans this percentile and its opposite, so that outliers do not compress the plot."""
_LEAST_MS = 0.01


def over_time(looks: Sequence[SequentialEstimate], control: str, variant: str) -> Plot:
    """The plot of the mean difference with its always-valid 95 % interval, over the number of queries.

    Args:
        looks: The estimates in order of time; at least one.
        control: Name of the served pipeline.
        variant: Name of the shadow pipeline.
    """
    queries = [look.queries for look in looks]
    low, high = ([look.ci95[end] for look in looks] for end in (0, 1))
    # symmetric around 0, so that "better" and "worse" have equal space
    reach = max(abs(end) for end in (*low, *high, 0.01)) * (1 + _MARGIN)
    chart = Chart(Axis("queries", queries[0], queries[-1], whole=True), Axis(f"difference in {METRIC}", -reach, reach))
    chart.band(queries, low, high, VARIANT, label="95 % interval")
    chart.line(queries, [look.delta for look in looks], VARIANT, 2.4, label="mean difference")
    chart.horizontal(0)
    chart.note("variant better", top=True)
    chart.note("variant worse", top=False)

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
    return Plot("What is known, query by query", caption, rows, lambda: chart.both(280))


def _thinned(looks: Sequence[SequentialEstimate]) -> list[SequentialEstimate]:
    """About `_ROWS` looks for the table, always with the last one."""
    # ceiling division
    every = max(1, -(-len(looks) // _ROWS))
    return [*looks[:-1:every], looks[-1]]


def overhead_distribution(overhead: Column, names: tuple[str, str]) -> Plot:
    """The histogram of variant time minus control time per query; `overhead` has shape (queries,), in ms."""
    bins = _around_zero(*(float(end) for end in np.percentile(overhead, (100 - _OUTER, _OUTER))))
    median, late = (float(value) for value in np.percentile(overhead, (50, 95)))
    # seen: (queries,); outliers go to the outermost bins
    seen = np.clip(overhead, bins[0], bins[-1])
    faster, slower = (np.histogram(part, bins)[0].tolist() for part in (seen[seen < 0], seen[seen >= 0]))
    chart = Chart(
        Axis("added milliseconds, same query", bins[0], bins[-1]),
        Axis("queries", 0, max(*faster, *slower), whole=True),
        x_grid=False,
    )
    chart.bars(bins, faster, UP, label="variant faster")
    chart.bars(bins, slower, DOWN, label="variant slower")
    chart.vertical(0)
    for value, label, before in ((median, "p50", True), (late, "p95", False)):
        chart.vertical(float(np.clip(value, bins[0], bins[-1])), label, before=before)

    count = int((overhead > 0).sum())
    caption = (
        f"The time of {names[1]} minus that of {names[0]} on the very same query, {plural(len(overhead), 'query')}: "
        f"{milliseconds(median, signed=True)} at the median, {milliseconds(late, signed=True)} at the 95th percentile; "
        f"slower on {percent(count, len(overhead))} (orange, right of the line), faster on the others (green, left)."
    )
    points = (5, 25, 50, 75, 95, 99)
    values = np.percentile(overhead, points)
    rows = [["percentile", "added ms"]]
    rows += [[f"p{point}", f"{value:+.2f}"] for point, value in zip(points, values, strict=True)]
    return Plot("Paired overhead", caption, rows, lambda: chart.both(240))


def _around_zero(low: float, high: float) -> list[float]:
    """Bin edges of equal width that cover `low` to `high`, one of them at 0."""
    low, high = min(low, 0.0), max(high, 0.0)
    width = max(high - low, _LEAST_MS) / _BINS
    # at least one bin on each side of 0; a multiple of the width, so that 0 is an edge
    return [place * width for place in range(min(floor(low / width), -1), max(ceil(high / width), 1) + 1)]
