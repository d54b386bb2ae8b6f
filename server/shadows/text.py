"""Prints a shadow report on a terminal: the verdict first, next steps last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest

import click

from speckit_memory.errors.echo import plural
from speckit_memory.evaluation.experiments.experiment_evidence import FEWEST
from speckit_memory.evaluation.experiments.experiment_report import Estimate, ExperimentReport, QueryContrast
from speckit_memory.evaluation.statistics.tables import in_line
from speckit_memory.memory.store.evaluation.records import RecordedPair
from speckit_memory.server.console.output import printable, table, wrap_text
from speckit_memory.server.console.wording import figure, in_common, milliseconds, moment, percent, period
from speckit_memory.server.shadows.report import MemoryLabel, ShadowComparison, ShadowReport, question

SIGNS = {"better": "▲", "worse": "▼", "same": "=", "undecided": "?", "failed": "✕"}
"""A sign for each verdict, since colour alone is not accessible."""
_COLOURS = {"better": "green", "worse": "red", "same": "cyan", "undecided": "yellow", "failed": "red"}
BASES = {"served": "replayed on the store as served", "present": "replayed on the present store"}
"""The state of the store on which replayed queries were answered."""
ORDER = "by rank-biased overlap, lowest first"
"""The order of the queries that differ most."""
_QUERIES = 3
"""Number of the most different queries listed; the first one with both answers."""
_ROWS = 5


def show(report: ShadowReport) -> None:
    """Prints a report."""
    if len(report.comparisons) != 1:
        click.echo(wrap_text(report.sentence(), bold=True))
    if report.nothing:
        for line in report.nothing.split("\n"):
            click.echo(wrap_text(line) if not line.startswith("  ") else printable(line))
    if len(report.comparisons) == 1:
        click.echo("\n".join(_blocks(report.comparisons[0], report.memories)))
        return
    for compared in report.comparisons:
        click.echo("\n".join(filter(None, _brief(compared))))
    if report.comparisons:
        click.echo(wrap_text("`--experiment ID` shows the details of one, `--html FILE` of all.", dim=True))


def _brief(compared: ShadowComparison) -> Iterator[str]:
    """A brief summary of one of several variants."""
    report = compared.judged.report
    known = f"{compared.headline}. " if report.compared else ""
    time = report.cost.overhead
    figures = [
        f"{figure(report.agreement.overlap_10.mean)} of the first ten in common"
        if report.agreement and report.agreement.overlap_10
        else "",
        f"{milliseconds(time.p50, signed=True)} at the median" if time else "",
        f"{report.failed:,} of {plural(report.queries, 'query')} failed" if report.failed else "",
    ]
    told = f"{compared.variant}: {known}{', '.join(filter(None, figures))}" if report.compared else report.sentence
    yield wrap_text(told, "  ", _sign(report))
    for step in compared.next_steps:
        yield wrap_text(f"{step.purpose}: {'; '.join(step.commands)}", "    ", dim=True)


def _sign(report: ExperimentReport) -> str:
    return click.style(f"{SIGNS[report.verdict]} ", fg=_COLOURS[report.verdict], bold=True)


def _blocks(compared: ShadowComparison, memories: Mapping[int, MemoryLabel]) -> Iterator[str]:
    report = compared.judged.report
    yield wrap_text(f"{compared.headline}.", "  ", _sign(report), bold=True)
    yield wrap_text(report.sentence, "  ")
    yield wrap_text(_about(compared), "  ", dim=True)
    parts: Sequence[Callable[[], str]] = (
        lambda: _figures(report),
        lambda: _quality(report),
        lambda: wrap_text(f"Without labels: {report.feedback}.", "  ") if str(report.feedback) else "",
        lambda: _parting(report),
        lambda: _differing(compared, memories),
        lambda: _retreats(compared),
        lambda: _next(compared),
    )
    yield from filter(None, (part() for part in parts))


def _about(compared: ShadowComparison) -> str:
    report = compared.judged.report
    lost = (
        [f"{plural(sum(report.dropped.values()), 'query')} dropped ({_counts(report.dropped)})"]
        if report.dropped
        else []
    )
    if report.failed:
        lost.append(f"{report.failed:,} failed ({_counts(report.failures)})")
    bases = [f"{report.basis[one]:,} {said}" for one, said in BASES.items() if report.basis.get(one)]
    flag = f" · {report.flag}" if report.flag else ""
    when = period(report.first, report.last, hours=not report.queries)
    return (
        f"{report.mode.replace('_', ' ')} {report.id} · {report.control.name} {report.control.hash} → "
        f"{report.variant.name} {report.variant.hash}{flag} · {plural(report.queries, 'query')}, "
        f"{when} · {', '.join((*bases, *(lost or ['none dropped, none failed'])))}"
    )


def _figures(report: ExperimentReport) -> str:
    rows = [("figure", "value", "95 % interval")]
    if agreement := report.agreement:
        share = percent(agreement.ordering_differences, agreement.queries)
        rows.append(("other memories or order", f"{agreement.ordering_differences:,} ({share})", ""))
        estimates = {
            "overlap@10": agreement.overlap_10,
            "Kendall tau-b": agreement.kendall_tau_b,
            "rank-biased overlap": agreement.rbo,
        }
        rows += [(name, figure(value.mean), interval(value)) for name, value in estimates.items() if value]
    times = {
        "overhead, p50 / p95": report.cost.overhead,
        "spent in the background, p50 / p95": report.cost.spent,
        "the caller waited, p50 / p95": report.cost.served_overhead,
    }
    rows += [
        (name, f"{milliseconds(value.p50)} / {milliseconds(value.p95)}", "") for name, value in times.items() if value
    ]
    text = table(rows, right=(1, 2), indent="  ", headed=True) if len(rows) > 1 else ""
    if report.cost.budget_broken:
        over = f"over its budget of {milliseconds(report.cost.budget_ms)} on {plural(report.cost.over_budget, 'query')}"
        text += "\n" + wrap_text(over, "  ", fg="yellow")
    if noise := report.noise:
        text += "\n" + wrap_text(
            f"noise floor: {report.control.name} against itself differs on "
            f"{noise.ordering_differences:,} of {plural(noise.queries, 'query')}",
            "  ",
            dim=True,
        )
    return text.lstrip("\n")


def interval(value: Estimate) -> str:
    """The confidence interval of a mean; "" for a single value."""
    return f"{value.ci95[0]:.3f} to {value.ci95[1]:.3f}" if value.ci95 else ""


def _quality(report: ExperimentReport) -> str:
    if not report.quality:
        return "" if report.judged is None else wrap_text(_judged(report.judged), "  ")
    rows = [("quality", "evidence", "difference", "95 % interval", "adjusted p", "verdict")]
    for one in report.quality:
        known = f"{one.queries:,} {'judged' if one.evidence == 'judgements' else 'used'}"
        low, high = one.ci95
        rows.append(
            (one.metric, known, f"{one.delta:+.3f}", f"{low:+.3f} to {high:+.3f}", f"{one.p_adjusted:.4f}", one.verdict)
        )
    return table(rows, right=(2, 3, 4), indent="  ", headed=True)


def _judged(queries: int) -> str:
    return f"{plural(queries, 'query')} judged, {FEWEST} needed for a figure of quality"


def _parting(report: ExperimentReport) -> str:
    if not report.parted_at:
        return ""
    return wrap_text(f"First step with a different outcome: {_counts(report.parted_at)}.", "  ")


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _differing(compared: ShadowComparison, memories: Mapping[int, MemoryLabel]) -> str:
    contrasts = compared.judged.report.differing[:_QUERIES]
    if not contrasts:
        return ""
    heads = [wrap_text(f"The queries that differ most, {ORDER}:"), *map(_head, contrasts)]
    return "\n".join([*heads[:2], _both(contrasts[0], compared, memories), *heads[2:]])


def _head(contrast: QueryContrast) -> str:
    pair, agreement = contrast.pair, contrast.agreement
    parted = f" · differ from {pair.variant.parted_at} on" if pair.variant.parted_at else ""
    about = f"rank-biased overlap {figure(agreement.rbo)} · {in_common(agreement)}{parted}"
    return f"{wrap_text(query_label(pair), '  ', bold=True)}\n{wrap_text(about, '    ', dim=True)}"


def _both(contrast: QueryContrast, compared: ShadowComparison, memories: Mapping[int, MemoryLabel]) -> str:
    rows = [("", compared.control, compared.variant)]
    # after[id]: the ranks of a memory in both answers
    after = {move.id: move for move in contrast.agreement.moves}
    old, new = contrast.pair.control.memories[:_ROWS], contrast.pair.variant.answer.memories[:_ROWS]
    for rank, (before, now) in enumerate(zip_longest(old, new), start=1):
        moved = "" if now is None else _from(after[now].before, rank)
        rows.append((str(rank), _name(before, memories), f"{_name(now, memories)}{moved}"))
    return table(rows, right=(0,), indent="    ", headed=True)


def query_label(pair: RecordedPair) -> str:
    """The text of a query if it was kept, else its id."""
    return f"“{in_line(question(pair))}”" if question(pair) else f"query {pair.query.id} (its text is not kept)"


def _from(before: int | None, rank: int) -> str:
    if before is None:
        return "  (new)"
    return f"  (was {before})" if before != rank else ""


def _name(memory: int | None, memories: Mapping[int, MemoryLabel]) -> str:
    if memory is None:
        return ""
    return printable(memories[memory].key) if memory in memories else f"memory {memory}, gone since"


def _retreats(compared: ShadowComparison) -> str:
    return "\n".join(
        wrap_text(f"{moment(one.at)}: moved to {one.placement}, {one.reason}", "  ", fg="yellow")
        for one in compared.retreats
    )


def _next(compared: ShadowComparison) -> str:
    lines = []
    for step in compared.next_steps:
        lines.append(wrap_text(f"{step.purpose}:", "  "))
        lines += [f"    {printable(command)}" for command in step.commands]
    return "\n".join(lines)
