"""The HTML page of a shadow report: the figures of its JSON as plots and text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from speckit_memory.errors.names import sendable
from speckit_memory.evaluation.experiments.experiment_report import Estimate, ExperimentReport, QueryContrast
from speckit_memory.evaluation.experiments.sequential_estimates import METRIC, SequentialEstimate, course
from speckit_memory.evaluation.running.report import Latency
from speckit_memory.evaluation.statistics.tables import in_line
from speckit_memory.server.console.output import printable
from speckit_memory.server.console.wording import (
    figure,
    in_common,
    milliseconds,
    moment,
    percent,
    period,
    plural,
)
from speckit_memory.server.page.plots.overhead import overhead_distribution
from speckit_memory.server.page.plots.plot import Plot
from speckit_memory.server.page.svg import INK, MUTED, VARIANT, drawn
from speckit_memory.server.shadows.headline import known_queries
from speckit_memory.server.shadows.report import SHOWN_ROWS, MemoryLabel, ShadowComparison, ShadowReport, question
from speckit_memory.server.shadows.text import ORDER

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Renders page templates. All values are escaped, except for plots drawn by the product.
#
# Control characters and bidirectional controls are escaped first, as on a terminal.


def render_template(name: str, **texts: object) -> str:
    """Renders a template of this folder with its style included; an undefined name is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("speckit_memory.server.page", "."),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_readable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # the only unescaped values are our own SVG drawings
    environment.filters["drawing"] = Markup
    style = files("speckit_memory.server.page").joinpath("page.css").read_text(encoding="utf-8")
    return environment.get_template(name).render(style=Markup(style), **texts)


def _readable(value: object) -> object:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


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


MARK = "speckit-memory shadow report"
"""Identifies a page of ours, which may be overwritten."""
SIGNS = {"better": "▲", "worse": "▼", "same": "=", "undecided": "◐", "failed": "✕"}


_QUERIES = 16
"""Queries shown with both answers on the page, to keep it small; at least one and at most ten per variant."""


_DRAWN = 3
"""Maximum number of variants with plots on one page."""
_LINES = 20
"""Lines of the pipelines' difference shown."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A key figure. `of` is its path in the JSON of the comparison, "" if it is unknown."""

    name: str
    text: str
    note: str
    of: str = ""
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A memory with its ranks in both answers, "–" if one lacks it; `kind` is "rose", "fell" or "level"."""

    before: str
    after: str
    title: str
    key: str
    kind: str


def page(report: ShadowReport) -> str:
    """The whole page as HTML."""
    # divide the examples among the variants
    queries = max(1, _QUERIES // max(1, len(report.comparisons)))
    drawn = len(report.comparisons) <= _DRAWN
    comparisons = [
        _comparison(one, place, report.memories, queries=queries, drawn=drawn)
        for place, one in enumerate(report.comparisons)
    ]
    texts = {
        "mark": MARK,
        "order": ORDER,
        "headline": comparisons[0]["headline"] if len(comparisons) == 1 else report.sentence(),
        "made": moment(report.made),
        "since": moment(report.since) if report.since is not None else "",
        "nothing": [(line.startswith("    "), line.strip()) for line in report.nothing.split("\n") if line.strip()],
        "comparisons": comparisons,
    }
    return str(sendable(render_template("shadow_report.html", **texts)))


def _comparison(
    compared: ShadowComparison, place: int, memories: Mapping[int, MemoryLabel], *, queries: int, drawn: bool
) -> dict[str, Any]:
    report = compared.judged.report
    return {
        "id": report.id,
        "anchor": f"c{place + 1}",
        "control": compared.control,
        "variant": compared.variant,
        "hashes": (report.control.hash, report.variant.hash),
        "flag": report.flag,
        "mode": report.mode.replace("_", " "),
        "verdict": report.verdict,
        "sign": SIGNS[report.verdict],
        "headline": compared.headline,
        # alternating pieces: plain text, and code to be copied
        "sentence": [(bool(number % 2), text) for number, text in enumerate(report.sentence.split("`")) if text],
        "difference": compared.difference and compared.difference[:_LINES],
        "further": len(compared.difference or ()) - _LINES,
        "period": period(report.first, report.last, hours=not report.queries),
        "tiles": [_quality(report), _agreement(report), _time(report)],
        "plots": list(_plots(compared, f"c{place + 1}")) if drawn else [],
        "tables": [(title, rows) for title, rows in _tables(compared) if len(rows) > 1],
        "parted": report.parted_at,
        "differing": [_differing(one, memories) for one in report.differing[:queries]],
        "noise": report.noise,
        "feedback": str(report.feedback),
        "dropped": report.dropped,
        "failures": report.failures,
        "cost": report.cost,
        "retreats": [(moment(one.at), one.placement, one.reason) for one in compared.retreats],
        "next": compared.next_steps,
    }


def _quality(report: ExperimentReport) -> Tile:
    if report.quality:
        one = report.quality[0]
        low, high = one.ci95
        note = f"{one.metric}, 95 %: {low:+.3f} to {high:+.3f}"
        return Tile("Quality", f"{one.delta:+.3f}", note, "quality.0.delta", round(one.delta, 6))
    if report.duels:
        won = f"{report.duels.variant_wins} won, {report.duels.control_wins} lost"
        return Tile("Quality", f"{report.duels.lead:+.3f}", won, "interleaving.lead", report.duels.lead)
    return Tile("Quality", "not known", f"{plural(known_queries(report), 'query')} judged")


def _agreement(report: ExperimentReport) -> Tile:
    agreement = report.agreement
    if agreement is None or agreement.overlap_10 is None:
        return Tile("Agreement", "not known", "results are not compared")
    differing = f"{percent(agreement.ordering_differences, agreement.queries)} of the queries answered differently"
    mean = round(agreement.overlap_10.mean, 6)
    return Tile("Agreement", figure(mean), f"of the first 10 in common; {differing}", "overlap@10", mean)


def _time(report: ExperimentReport) -> Tile:
    added = report.cost.overhead
    if added is None:
        return Tile("Time", "not known", "no query was answered by both")
    note = f"added at the median; p95 {milliseconds(added.p95, signed=True)}"
    return Tile("Time", milliseconds(added.p50, signed=True), note, "overhead_ms.p50", added.p50)


def _plots(compared: ShadowComparison, prefix: str) -> Iterator[Plot]:
    names = compared.control, compared.variant
    if looks := course(compared.judged.contrasts(), compared.judged.judgements):
        yield over_time(f"{prefix}-course", looks, *names)
    if answered := compared.judged.answered():
        # added: (queries,) float64, milliseconds per paired query
        added = np.array([pair.variant.answer.total_ms - pair.control.total_ms for pair in answered])
        yield overhead_distribution(f"{prefix}-overhead", added, names)


def _tables(compared: ShadowComparison) -> Iterator[tuple[str, list[list[str]]]]:
    """The folded tables with their titles; the first row has the names of the columns."""
    report = compared.judged.report
    yield (
        "Quality by metric",
        [
            ["metric", "verdict", "difference", "95 % interval", "adjusted p", "queries"],
            *(
                [
                    one.metric,
                    one.verdict,
                    f"{one.delta:+.3f}",
                    f"{one.ci95[0]:+.3f} to {one.ci95[1]:+.3f}",
                    f"{one.p_adjusted:.4f}",
                    f"{one.queries:,} {'judged' if one.evidence == 'judgements' else 'used'}",
                ]
                for one in report.quality
            ),
        ],
    )
    yield "Agreement", [["figure", "mean", "95 % interval"], *_agreements(report)]
    yield (
        "Kinds of queries",
        [
            ["by", "kind", "queries", "overlap@10", "other order", "added at the median"],
            *(
                [
                    one.by,
                    one.value or "none",
                    f"{one.queries:,}",
                    *(
                        [
                            figure(one.agreement.overlap_10.mean) if one.agreement.overlap_10 else "",
                            f"{one.agreement.ordering_differences:,}",
                        ]
                        if one.agreement
                        else ["too few", ""]
                    ),
                    milliseconds(one.overhead.p50, signed=True) if one.overhead else "",
                ]
                for one in report.segments
            ),
        ],
    )
    times = {
        "added": report.cost.overhead,
        "spent in the background": report.cost.spent,
        "the caller waited": report.cost.served_overhead,
    }
    steps = {f"{step.stage}: {step.step}": (step.control, step.variant) for step in report.steps}
    yield (
        "Times",
        [
            ["time", "median", "p95"],
            *([name, milliseconds(time.p50), milliseconds(time.p95)] for name, time in times.items() if time),
        ],
    )
    yield (
        "Steps, at the median",
        [
            ["step", compared.control, compared.variant],
            *([name, *map(_median, both)] for name, both in steps.items()),
        ],
    )


def _agreements(report: ExperimentReport) -> Iterator[list[str]]:
    if report.agreement:
        estimates: dict[str, Estimate | None] = {
            "overlap of the first 10": report.agreement.overlap_10,
            "Kendall tau-b": report.agreement.kendall_tau_b,
            "rank-biased overlap": report.agreement.rbo,
        }
        for name, one in estimates.items():
            if one:
                ends = f"{figure(one.ci95[0])} to {figure(one.ci95[1])}" if one.ci95 else ""
                yield [name, figure(one.mean), ends]


def _median(time: Latency | None) -> str:
    return milliseconds(time.p50) if time else "–"


def _differing(contrast: QueryContrast, memories: Mapping[int, MemoryLabel]) -> dict[str, Any]:
    pair, agreement = contrast.pair, contrast.agreement
    # only memories within the first rows of at least one answer
    ranked = [move for move in agreement.moves if min(filter(None, (move.before, move.after))) <= SHOWN_ROWS]
    return {
        "query": pair.query.id,
        "text": in_line(question(pair)),
        "shared": in_common(agreement),
        "rbo": figure(agreement.rbo),
        "parted": pair.variant.parted_at,
        "rows": [_row(move.id, move.before, move.after, memories) for move in ranked],
        "more": len(agreement.moves) - len(ranked),
    }


def _row(memory: int, before: int | None, after: int | None, memories: Mapping[int, MemoryLabel]) -> Row:
    named = memories.get(memory)
    title = named.title or named.key if named else f"memory {memory}"
    key = named.key if named else "no longer in the store"
    rose = after is not None and (before is None or after < before)
    kind = "level" if before == after else "rose" if rose else "fell"
    return Row(str(before or "–"), str(after or "–"), title, key, kind)
