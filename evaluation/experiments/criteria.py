"""Tests whether a comparison meets the criterion of a flag, and says what is missing (feature P11). Reads no files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import ceil, isfinite
from typing import Protocol

from speckit_memory.config.flags.criterion import QUALITY, SMALLER_IS_BETTER, Condition
from speckit_memory.config.flags.flag import Flag

TESTED = ("nDCG@10", "MRR@5")
"""The metrics on which every comparison has a verdict."""
ALPHA = 0.05
MOST = 256.0
"""Upper bound on the factor by which more queries are extrapolated."""
_STEPS = 8


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure over a number of queries, with its 95 % interval, and the p of a difference after all corrections.

    `verdict` is the report's verdict on a difference, "" where it has none. `with_more` maps a factor to the interval
    expected from that many times as many similar queries.
    """

    value: float
    queries: int
    interval: tuple[float, float] | None = None
    p: float | None = None
    with_more: Callable[[float], tuple[float, float]] | None = field(default=None, compare=False, repr=False)
    verdict: str = ""


class Figures(Protocol):
    """The figures of a comparison of a variant with its control, from any source."""

    def difference(self, metric: str) -> Figure | None:
        """The variant minus the control, None where it was not measured."""
        ...

    def own(self, metric: str) -> Figure | None:
        """The variant's own figure, or the agreement of both; None where it was not measured."""
        ...


def unmet(criterion: Iterable[Condition], figures: Figures) -> list[str]:
    """Lists what the comparison lacks per condition, and every metric on which the variant is worse; empty when it
    passes.

    A loss fails the criterion regardless of its margin.
    """
    conditions = list(criterion)
    lacks = [f"{one}: {', '.join(found)}" for one in conditions if (found := list(_lacks(one, figures)))]
    preferences = (*QUALITY, "interleaving")
    metrics = dict.fromkeys((*TESTED, *(one.metric for one in conditions if one.metric in preferences)))
    return [*lacks, *_losses(metrics, figures)]


def promotion_lacks(flag: Flag, figures: Figures) -> list[str]:
    """Lists what a comparison lacks to justify an enabled flag: its criterion, and a gain if that only rules out a
    loss."""
    return [*unmet(flag.criterion, figures), *_no_gain(flag, figures)]


def _losses(metrics: Iterable[str], figures: Figures) -> Iterator[str]:
    for metric in metrics:
        figure = figures.difference(metric)
        if figure is not None and _is_worse(figure):
            yield f"it shows {metric} to be worse ({figure.value:+.4f}), which no margin excuses"


def _is_worse(figure: Figure) -> bool:
    """Whether a difference in quality is a loss beyond chance. Intervals from uses have no lower end and show no
    loss."""
    if figure.verdict or figure.interval is None:
        return figure.verdict == "worse"
    low, high = figure.interval
    return isfinite(low) and high < 0 and (figure.p is None or figure.p < ALPHA)


def _no_gain(flag: Flag, figures: Figures) -> Iterator[str]:
    """Reports a flag whose criterion asks for no gain when neither a gain nor a stated reason speaks for it."""
    directions = {condition.direction for condition in flag.criterion}
    if "not_worse" not in directions or "better" in directions or flag.reason:
        return
    metrics = (*QUALITY, "interleaving", *SMALLER_IS_BETTER)
    shown = ((metric, figures.difference(metric)) for metric in metrics)
    if all(figure is None or list(_difference(Condition(metric, "better"), figure)) for metric, figure in shown):
        yield (
            "its criterion only rules out a loss, and the comparison shows no gain in quality or time; "
            "`--reason TEXT` says what the flag is for"
        )


def figure_of(condition: Condition, figures: Figures) -> Figure | None:
    """The figure that a condition tests, None where it was not measured."""
    # "better" and "not_worse" compare both pipelines, "at_least" and "at_most" read a single figure
    of_both = condition.direction in ("better", "not_worse")
    return figures.difference(condition.metric) if of_both else figures.own(condition.metric)


def _lacks(condition: Condition, figures: Figures) -> Iterator[str]:
    figure = figure_of(condition, figures)
    if figure is None:
        yield f"it has no figure for {condition.metric}"
        return
    lacks = list(_shortcomings(condition, figure))
    if figure.queries < condition.queries:
        yield f"needs {condition.queries:,} queries, has {figure.queries:,}"
    yield from lacks
    if lacks and figure.with_more is not None:
        more = _further(condition, figure, figure.with_more)
        if more is None:
            yield "more queries like these would not be enough"
        elif more:  # else the interval suffices, and only chance is not ruled out
            yield f"about {more:,} more queries like these would be enough"


def _further(condition: Condition, figure: Figure, with_more: Callable[[float], tuple[float, float]]) -> int | None:
    """About how many further similar queries would narrow the interval enough; None if `MOST` times as many would
    not."""

    def enough(times: float) -> bool:
        # p = 0 leaves chance out: only the width of the interval is extrapolated
        return not list(_shortcomings(condition, replace(figure, interval=with_more(times), p=0.0)))

    # double the factor until it suffices, then bisect
    high = 1.0
    while not enough(high):
        high *= 2
        if high > MOST:
            return None
    low = max(1.0, high / 2)
    for _ in range(_STEPS):
        between = (low + high) / 2
        low, high = (low, between) if enough(between) else (between, high)
    # further queries: the total needed minus those there are
    return max(ceil(high * figure.queries), condition.queries) - figure.queries


def _shortcomings(condition: Condition, figure: Figure) -> Iterator[str]:
    """The shortcomings of a figure, apart from the number of queries."""
    of_both = condition.direction in ("better", "not_worse")
    return _difference(condition, figure) if of_both else _own(condition, figure)


def _own(condition: Condition, figure: Figure) -> Iterator[str]:
    """The shortcomings of a figure. The worse end of its interval decides; a count has no interval and decides by
    itself."""
    low, high = figure.interval or (figure.value, figure.value)
    what = f"{condition.metric} {'interval reaches' if figure.interval else 'is'}"
    # `not >=` instead of `<`: NaN does not meet a condition
    if condition.direction == "at_least" and not low >= condition.margin:
        yield f"{what} {low:.4g}, at least {condition.margin:g} is needed"
    elif condition.direction == "at_most" and not high <= condition.margin:
        yield f"{what} {high:.4g}, at most {condition.margin:g} is accepted"


def _difference(condition: Condition, figure: Figure) -> Iterator[str]:
    """The shortcomings of a difference. The end of its interval nearest to "worse" decides, or the value without
    one."""
    low, high = figure.interval or (figure.value, figure.value)
    # `worst` is the end of the interval that is less favourable to the variant
    sign, worst = (-1, high) if condition.metric in SMALLER_IS_BETTER else (1, low)
    what = f"{condition.metric} interval reaches" if figure.interval else f"{condition.metric} differs by"
    bound = condition.margin if condition.direction == "better" else -condition.margin
    if condition.direction == "better" and not sign * worst > bound:
        yield f"{what} {worst:+.4g}, it must lie beyond {sign * bound:+g}"
    elif condition.direction == "not_worse" and not sign * worst >= bound:
        yield f"{what} {worst:+.4g}, margin is {condition.margin:g}"
    if condition.direction != "better" or condition.metric in SMALLER_IS_BETTER:
        return  # times have no test apart from the interval
    if figure.p is None:
        yield f"it has no p for {condition.metric}"
    elif figure.p >= ALPHA:
        yield f"p after correction is {figure.p:.3g}, below {ALPHA:g} is needed"
