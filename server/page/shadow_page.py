"""The HTML page of a shadow report: the figures of its JSON as plots and text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files

import numpy as np

from speckit_memory.errors.names import sendable
from speckit_memory.evaluation.experiments.experiment_report import Estimate, ExperimentReport, QueryContrast
from speckit_memory.evaluation.experiments.sequential_estimates import course
from speckit_memory.evaluation.running.report import Latency
from speckit_memory.evaluation.statistics.tables import in_line
from speckit_memory.server.console.wording import (
    figure,
    in_common,
    milliseconds,
    moment,
    percent,
    period,
    plural,
)
from speckit_memory.server.page.markup import Markup, element, joined
from speckit_memory.server.page.plots import Plot, over_time, overhead_distribution
from speckit_memory.server.shadows.headline import known_queries
from speckit_memory.server.shadows.report import SHOWN_ROWS, MemoryLabel, ShadowComparison, ShadowReport, question
from speckit_memory.server.shadows.text import ORDER

MARK = "speckit-memory shadow report"
"""Identifies a page of ours, which may be overwritten."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""What a browser may load for the page: nothing."""
SIGNS = {"better": "▲", "worse": "▼", "same": "=", "undecided": "◐", "failed": "✕"}
READING = {
    "Overlap of the first 10": "The share of rows that both answers have among their first ten, in any order. 1 means "
    "the same rows.",
    "Kendall tau-b": "Agreement of the order, from −1 (reversed) to 1 (the same); rows that one answer lacks count as "
    "its last.",
    "Rank-biased overlap": "Overlap at every depth, with most weight on the first ranks (p = 0.9), from 0 to 1.",
    "Overhead": "Total time of the variant minus that of the control on the same query, each as if it ran alone. "
    "Callers do not wait for it: variants run after the reply.",
    "Intervals and verdicts": "Agreement does not say which pipeline is better; judgements and uses do. Verdicts on "
    "live queries stay valid however often this page is made (an always-valid test), and over all metrics together "
    "(Holm).",
}
"""What the page says about its figures."""

_QUERIES = 16
"""Queries shown with both answers on the page, to keep it small; at least one and at most ten per variant."""
_DRAWN = 3
"""Maximum number of variants with plots on one page."""
_LINES = 20
"""Lines of the pipelines' difference shown."""
_TITLE = 90
"""Characters of the page's title."""
_BREAK = Markup("\n")


def page(report: ShadowReport) -> str:
    """The whole page as HTML."""
    compared = report.comparisons
    only = compared[0] if len(compared) == 1 else None
    headline = only.headline if only else report.sentence()
    made = moment(report.made) + (f", of queries since {moment(report.since)}" if report.since is not None else "")
    header = element(
        "header",
        element("h1", *_names(only), id="c1-title") if only else element("h1", headline),
        _about(f"Shadow report of speckit-memory, made {made}."),
        _contents(compared) if len(compared) > 1 else "",
    )
    # divide the examples among the variants
    queries = max(1, _QUERIES // max(1, len(compared)))
    sections = [
        _comparison(
            one, f"c{place}", report.memories, queries=queries, several=only is None, drawn=len(compared) <= _DRAWN
        )
        for place, one in enumerate(compared, 1)
    ]
    reading = _folded("How to read this page", _pairs("reading", ((term, [text]) for term, text in READING.items())))
    main = element("main", _no_comparison(report.nothing), *sections, reading if compared else "")
    # our own style is the only text on the page that is not escaped
    style = files("speckit_memory.server.page").joinpath("page.css").read_text(encoding="utf-8")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="generator", content=MARK),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", textwrap.shorten(headline, _TITLE, placeholder=" …")),
        element("style", Markup(style)),
    )
    text = element("html", _BREAK, head, _BREAK, element("body", header, _BREAK, main), _BREAK, lang="en")
    return str(sendable(f"<!DOCTYPE html>\n{text}\n"))


def _contents(compared: Sequence[ShadowComparison]) -> Markup:
    entries = []
    for place, one in enumerate(compared, 1):
        verdict = one.judged.report.verdict
        sign = element("span", SIGNS[verdict], aria_hidden="true", class_=verdict)
        entries.append(element("li", element("a", sign, f" {one.variant}: {verdict}", href=f"#c{place}")))
    return element("nav", element("ul", *entries), aria_label="Comparisons")


def _no_comparison(nothing: str) -> Markup:
    """Why there is no comparison; indented lines are there to be copied."""
    lines = [line for line in nothing.split("\n") if line.strip()]
    parts = [
        element("pre", element("code", line.strip()), tabindex=0)
        if line.startswith("    ")
        else element("p", line.strip())
        for line in lines
    ]
    return element("section", *parts, class_="card", aria_label="Why there is no comparison") if parts else Markup()


def _comparison(
    compared: ShadowComparison,
    anchor: str,
    memories: Mapping[int, MemoryLabel],
    *,
    queries: int,
    several: bool,
    drawn: bool,
) -> Markup:
    """The section of one comparison.

    Args:
        compared: The comparison.
        anchor: The id of the section.
        memories: The names of memories.
        queries: The largest number of queries with both answers.
        several: Whether the page has other comparisons, so that the section needs a title.
        drawn: Whether to draw plots.
    """
    report = compared.judged.report
    heading = "h3" if several else "h2"
    sign = element("span", SIGNS[report.verdict], aria_hidden="true")
    badge = element("span", sign, f" {report.verdict}", class_=f"badge {report.verdict}")
    remarks = [element("li", element("strong", f"{name}:"), f" {text}") for name, text in _remarks(compared)]
    steps = _pairs("next", ((step.purpose, [_code(each) for each in step.commands]) for step in compared.next_steps))
    parts = [
        element("h2", *_names(compared), id=f"{anchor}-title") if several else "",
        _difference(compared.difference),
        element("p", badge, f" {compared.headline}", class_="lead"),
        element("dl", *_tiles(report), class_="tiles"),
        element("ul", *remarks, class_="remarks") if remarks else "",
        joined(element(heading, "Next steps"), steps) if compared.next_steps else "",
        _folded("The figures in detail", *_details(compared, heading, drawn=drawn)),
        _differing_queries(compared, report.differing[:queries], memories) if report.differing else "",
    ]
    return element(
        "section",
        *(part for each in parts if each for part in (_BREAK, each)),
        id=anchor,
        class_="comparison",
        aria_labelledby=f"{anchor}-title",
    )


def _difference(lines: Sequence[str] | None) -> Markup:
    """The values in which the pipelines differ."""
    if lines is None:
        return _about(
            "What differs between them is unknown: one of the two pipelines is not in the present configuration."
        )
    if not lines:
        return _about("They do not differ.")
    shown = [element("span", line, class_="added" if line.startswith("+") else "removed") for line in lines[:_LINES]]
    block = element(
        "pre",
        *(part for line in shown for part in (line, _BREAK)),
        class_="diff",
        tabindex=0,
        aria_label="What differs",
    )
    further = len(lines) - _LINES
    more = _about(f"and {further} more lines, which ", _code("pipeline diff"), " shows.") if further > 0 else ""
    return joined(block, more)


def _tiles(report: ExperimentReport) -> Iterator[Markup]:
    """The three key figures: quality, agreement and time."""
    agreement, added = report.agreement, report.cost.overhead
    if report.quality:
        one = report.quality[0]
        low, high = one.ci95
        note = f"{one.metric}, 95 %: {low:+.3f} to {high:+.3f}"
        yield _tile("Quality", f"{one.delta:+.3f}", note, "quality.0.delta", round(one.delta, 6))
    elif report.duels:
        won = f"{report.duels.variant_wins} won, {report.duels.control_wins} lost"
        yield _tile("Quality", f"{report.duels.lead:+.3f}", won, "interleaving.lead", report.duels.lead)
    else:
        yield _tile("Quality", "not known", f"{plural(known_queries(report), 'query')} judged")
    if agreement is None or agreement.overlap_10 is None:
        yield _tile("Agreement", "not known", "results are not compared")
    else:
        differing = f"{percent(agreement.ordering_differences, agreement.queries)} of the queries answered differently"
        mean = round(agreement.overlap_10.mean, 6)
        yield _tile("Agreement", figure(mean), f"of the first 10 in common; {differing}", "overlap@10", mean)
    if added is None:
        yield _tile("Time", "not known", "no query was answered by both")
    else:
        note = f"added at the median; p95 {milliseconds(added.p95, signed=True)}"
        yield _tile("Time", milliseconds(added.p50, signed=True), note, "overhead_ms.p50", added.p50)


def _tile(name: str, text: str, note: str, of: str = "", value: float | None = None) -> Markup:
    """A key figure. `of` is its path in the JSON of the comparison, "" if it is unknown."""
    shown = element("data", text, value=value, data_of=of) if of else text
    return element("div", element("dt", name), element("dd", shown), element("dd", note, class_="note"))


def _remarks(compared: ShadowComparison) -> Iterator[tuple[str, str]]:
    report = compared.judged.report
    if noise := report.noise:
        floor = f"{compared.control} against itself differs on {noise.ordering_differences} of {noise.queries} queries"
        if noise.overhead:
            floor += f", and its second run takes {noise.overhead.p50:+.2f} ms at the median"
        yield "Noise floor", f"{floor}."
    if feedback := str(report.feedback):
        yield "Without labels", f"of the answers that were served, {feedback}."
    if report.dropped:
        yield "Not seen by the variant", ", ".join(f"{count} ({why})" for why, count in report.dropped.items()) + "."
    if report.failures:
        counts = ", ".join(f"{what}: {count}" for what, count in report.failures.items())
        yield "Failures", f"{counts}. Callers were not affected."
    if report.cost.budget_broken:
        beyond = f"it spent more than {report.cost.budget_ms:g} ms in addition to the control"
        yield "Over budget", f"{beyond} on {report.cost.over_budget} queries."
    for one in compared.retreats:
        yield "Retreat", f"{moment(one.at)}, moved to {one.placement}: {one.reason}."


def _details(compared: ShadowComparison, heading: str, *, drawn: bool) -> Iterator[Markup]:
    report = compared.judged.report
    yield element(
        "p",
        # alternating pieces: plain text, and code to be copied
        *(_code(text) if number % 2 else text for number, text in enumerate(report.sentence.split("`")) if text),
    )
    yield _about(
        f"{report.mode.replace('_', ' ')} ",
        _code(report.id),
        f" · {compared.control} ",
        _code(report.control.hash),
        f" → {compared.variant} ",
        _code(report.variant.hash),
        *((" · ", _code(report.flag)) if report.flag else ()),
        f" · {period(report.first, report.last, hours=not report.queries)}",
    )
    plots = list(_plots(compared)) if drawn else []
    if not plots and report.cost.overhead:
        yield _about("The page of ", _code(f"--experiment {report.id}"), " has plots.")
    for plot in plots:
        yield element(
            "figure",
            element(heading, plot.title),
            element("div", plot.svg, role="img", aria_label=plot.caption),
            element("figcaption", plot.caption),
            _table(plot.title, plot.rows),
        )
    for title, rows in _tables(compared):
        if len(rows) > 1:
            yield element(heading, title)
            yield _table(f"{title} of {compared.variant}", rows)


def _plots(compared: ShadowComparison) -> Iterator[Plot]:
    names = compared.control, compared.variant
    if looks := course(compared.judged.contrasts(), compared.judged.judgements):
        yield over_time(looks, *names)
    if answered := compared.judged.answered():
        # added: (queries,) float64, milliseconds per paired query
        added = np.array([pair.variant.answer.total_ms - pair.control.total_ms for pair in answered])
        yield overhead_distribution(added, names)


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


def _differing_queries(
    compared: ShadowComparison, shown: Sequence[QueryContrast], memories: Mapping[int, MemoryLabel]
) -> Markup:
    report = compared.judged.report
    first: list[str] = []
    for step, count in report.parted_at.items():
        first += [", " if first else " First step with a different outcome: ", _code(step), f" ({count} queries)"]
    order = _about(f"Ordered {ORDER}.", *first, "." if first else "")
    names = ("memory", compared.control, compared.variant)
    queries = [_differing_query(one, names, memories, unfolded=one is shown[0]) for one in shown]
    return _folded(f"The {len(shown)} queries that differ most", order, *queries)


def _differing_query(
    contrast: QueryContrast, columns: Sequence[str], memories: Mapping[int, MemoryLabel], *, unfolded: bool
) -> Markup:
    pair, agreement = contrast.pair, contrast.agreement
    text = in_line(question(pair))
    said = [element("q", text)] if text else ["query ", _code(pair.query.id), " (its text is not kept)"]
    overlap = element("span", figure(agreement.rbo), class_="rbo")
    parted = [" · differ from ", _code(pair.variant.parted_at), " on"] if pair.variant.parted_at else []
    about = element("span", f"{in_common(agreement)} · rank-biased overlap ", overlap, *parted, class_="about")
    # only memories within the first rows of at least one answer
    ranked = [move for move in agreement.moves if min(filter(None, (move.before, move.after))) <= SHOWN_ROWS]
    rows = [_rank_row(move.id, move.before, move.after, memories) for move in ranked]
    more = len(agreement.moves) - len(ranked)
    return element(
        "details",
        element("summary", *said, _BREAK, about),
        _scrolled("Both answers", _heading_row(columns), rows, class_="ranks"),
        _about(f"{more} more further down.") if more else "",
        class_="query",
        open="" if unfolded else None,
    )


def _rank_row(memory: int, before: int | None, after: int | None, memories: Mapping[int, MemoryLabel]) -> Markup:
    """A memory with its ranks in both answers, "–" if one lacks it."""
    named = memories.get(memory)
    title = named.title or named.key if named else f"memory {memory}"
    key = element("span", named.key if named else "no longer in the store", class_="key")
    rose = after is not None and (before is None or after < before)
    kind = "level" if before == after else "rose" if rose else "fell"
    ranks = [element("td", str(rank or "–")) for rank in (before, after)]
    return element("tr", element("th", title, key, scope="row"), *ranks, class_=kind)


def _table(title: str, rows: Sequence[Sequence[str]]) -> Markup:
    """A table whose first row has the names of the columns, and whose first column those of the rows."""
    heading, *others = rows
    body = [
        element("tr", element("th", name, scope="row"), *(element("td", cell) for cell in cells))
        for name, *cells in others
    ]
    return _scrolled(f"{title}, as a table", _heading_row(heading), body)


def _heading_row(names: Sequence[str]) -> Markup:
    return element("tr", *(element("th", name, scope="col") for name in names))


def _scrolled(name: str, heading: Markup, rows: Sequence[Markup], class_: str | None = None) -> Markup:
    lines = (part for row in rows for part in (_BREAK, row))
    table = element("table", element("thead", heading), element("tbody", *lines), class_=class_)
    return element("div", table, class_="scroll", tabindex=0, role="region", aria_label=name)


def _folded(title: str, *contents: str) -> Markup:
    lines = (part for each in contents for part in (_BREAK, each))
    return element("details", element("summary", title), *lines, class_="card")


def _pairs(kind: str, entries: Iterable[tuple[str, Sequence[str]]]) -> Markup:
    """A list of terms, each with what belongs to it."""
    groups = [element("div", element("dt", term), *(element("dd", text) for text in texts)) for term, texts in entries]
    return element("dl", *groups, class_=kind)


def _names(compared: ShadowComparison) -> tuple[Markup, str, Markup]:
    variant, control = (element("span", name, class_="name") for name in (compared.variant, compared.control))
    return variant, " compared with ", control


def _about(*contents: str) -> Markup:
    return element("p", *contents, class_="about")


def _code(text: str) -> Markup:
    return element("code", text)
