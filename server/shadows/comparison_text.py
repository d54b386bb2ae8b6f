"""What a report says of one comparison of a control and a variant: figures, queries that differ, and next steps."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from speckit_memory.errors.echo import plural
from speckit_memory.evaluation.experiments.experiment_evidence import FEWEST
from speckit_memory.evaluation.experiments.experiment_quality import course
from speckit_memory.evaluation.experiments.experiment_report import Estimate, ExperimentReport, QueryContrast
from speckit_memory.evaluation.experiments.experiments import JudgedExperiment
from speckit_memory.evaluation.statistics.report import CODE, LONGEST_IN_LINE, Plot, ReportFact, Table, figure, in_line
from speckit_memory.memory.store.evaluation.records import RecordedPair
from speckit_memory.server.shadows.plots import over_time, overhead_distribution
from speckit_memory.server.shadows.wording import in_common, milliseconds, percent, period

BASES = {"served": "replayed on the store as served", "present": "replayed on the present store"}
"""The state of the store on which replayed queries were answered."""
READING = (
    ("figure", "meaning"),
    ("Overlap of the first 10", "The share of rows that both answers have among their first ten, in any order."),
    ("Kendall tau-b", "Agreement of the order, from −1 (reversed) to 1; rows that one answer lacks count as its last."),
    ("Rank-biased overlap", "Overlap at every depth, with most weight on the first ranks (p = 0.9), from 0 to 1."),
    (
        "Overhead",
        "Total time of the variant minus that of the control on the same query, each as if it ran alone. Callers do "
        "not wait for it: variants run after the reply.",
    ),
    (
        "Intervals and verdicts",
        "Agreement does not say which pipeline is better; judgements and uses do. Verdicts on live queries stay valid "
        "however often the report is made (an always-valid test), and over all metrics together (Holm).",
    ),
)
"""The meaning of the figures, as rows of a table."""
SHOWN_ROWS = 10
"""Rows of an answer shown."""
_IN_TABLE = 50
"""Characters of a query in a table."""
_LINES = 20
"""Lines of the pipelines' difference shown."""


def about(report: ExperimentReport, difference: list[str] | None) -> str:
    """What differs between the pipelines, and which queries both answered."""
    lines = [f"{CODE}{line}" for line in (difference or ())[:_LINES]]
    if difference is None:
        lines.append("What differs between them is unknown: one of the two is not in the present configuration.")
    elif len(difference) > _LINES:
        lines.append(f"and {len(difference) - _LINES} more lines, which `pipeline diff` shows")
    bases = [f"{report.basis[one]:,} {said}" for one, said in BASES.items() if report.basis.get(one)]
    when = period(report.first, report.last, hours=not report.queries)
    parts = (
        f"{report.mode.replace('_', ' ')} {report.id}",
        f"{report.control.name} {report.control.hash} → {report.variant.name} {report.variant.hash}",
        report.flag,
        f"{plural(report.queries, 'query')}, {when}",
        ", ".join((*bases, *(_lost(report) or ["none dropped, none failed"]))),
    )
    return "\n".join([*lines, " · ".join(filter(None, parts))])


def _lost(report: ExperimentReport) -> list[str]:
    dropped = sum(report.dropped.values())
    return [
        *([f"{plural(dropped, 'query')} dropped ({_counts(report.dropped)})"] if dropped else []),
        *([f"{report.failed:,} failed ({_counts(report.failures)})"] if report.failed else []),
    ]


def facts(report: ExperimentReport) -> Iterator[ReportFact]:
    """The three key figures: quality, agreement and time."""
    agreement, added = report.agreement, report.cost.overhead
    if report.quality:
        one = report.quality[0]
        low, high = one.ci95
        yield ReportFact("Quality", f"{one.delta:+.3f}", f"{one.metric}, 95 %: {low:+.3f} to {high:+.3f}")
    elif report.duels:
        won = f"{report.duels.variant_wins} won, {report.duels.control_wins} lost"
        yield ReportFact("Quality", f"{report.duels.lead:+.3f}", won)
    else:
        needed = f", {FEWEST} needed for a figure of quality" if report.judged else ""
        yield ReportFact("Quality", "not known", f"{plural(known_queries(report), 'query')} judged{needed}")
    if agreement is None or agreement.overlap_10 is None:
        yield ReportFact("Agreement", "not known", "results are not compared")
    else:
        differing = f"{percent(agreement.ordering_differences, agreement.queries)} of the queries answered differently"
        mean = figure(agreement.overlap_10.mean)
        yield ReportFact("Agreement", mean, f"of the first 10 in common; {differing}")
    if added is None:
        yield ReportFact("Time", "not known", "no query was answered by both")
    else:
        note = f"added at the median; p95 {milliseconds(added.p95, signed=True)}"
        yield ReportFact("Time", milliseconds(added.p50, signed=True), note)


def figures(report: ExperimentReport) -> Iterator[Table]:
    """The figures of quality, agreement and time."""
    if report.quality:
        rows = [("quality", "evidence", "difference", "95 % interval", "adjusted p", "verdict")]
        for one in report.quality:
            known = f"{one.queries:,} {'judged' if one.evidence == 'judgements' else 'used'}"
            interval = f"{one.ci95[0]:+.3f} to {one.ci95[1]:+.3f}"
            rows.append((one.metric, known, f"{one.delta:+.3f}", interval, f"{one.p_adjusted:.4f}", one.verdict))
        yield Table(rows)
    values = [("figure", "value", "95 % interval")]
    if agreement := report.agreement:
        share = percent(agreement.ordering_differences, agreement.queries)
        values.append(("other memories or order", f"{agreement.ordering_differences:,} ({share})", ""))
        estimates = {"Kendall tau-b": agreement.kendall_tau_b, "rank-biased overlap": agreement.rbo}
        values += [(name, figure(one.mean), _interval(one)) for name, one in estimates.items() if one]
    times = {"spent in the background": report.cost.spent, "the caller waited": report.cost.served_overhead}
    values += [
        (f"{name}, p50 / p95", f"{milliseconds(time.p50)} / {milliseconds(time.p95)}", "")
        for name, time in times.items()
        if time
    ]
    if len(values) > 1:
        yield Table(values)


def _interval(value: Estimate) -> str:
    return f"{value.ci95[0]:.3f} to {value.ci95[1]:.3f}" if value.ci95 else ""


def plots(judged: JudgedExperiment, control: str, variant: str) -> Iterator[Plot]:
    """The course of the difference in quality, and the distribution of the difference in time."""
    if looks := course(judged.contrasts(), judged.judgements):
        yield over_time(looks, control, variant)
    if answered := judged.answered():
        # added: (queries,) float64, milliseconds per paired query
        added = np.array([pair.variant.answer.total_ms - pair.control.total_ms for pair in answered])
        yield overhead_distribution(added, (control, variant))


def remarks(report: ExperimentReport, control: str) -> Iterator[str]:
    """What limits the figures, and what readers showed."""
    if noise := report.noise:
        times = f", and its second run takes {noise.overhead.p50:+.2f} ms at the median" if noise.overhead else ""
        yield (
            f"Noise floor: {control} against itself differs on {noise.ordering_differences:,} of "
            f"{plural(noise.queries, 'query')}{times}."
        )
    if feedback := str(report.feedback):
        yield f"Without labels: {feedback}, of the answers that were served."
    if report.cost.budget_broken:
        over = plural(report.cost.over_budget, "query")
        yield f"warning: over its budget of {milliseconds(report.cost.budget_ms)} on {over}"
    if report.parted_at:
        yield f"First step with a different outcome: {_counts(report.parted_at)}."


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def differing(report: ExperimentReport, control: str, variant: str, names: Mapping[int, str]) -> Iterator[Table]:
    """The queries that differ most, and both answers to each.

    Args:
        report: The comparison.
        control: Name of the served pipeline.
        variant: Name of the shadow pipeline.
        names: The keys of the memories that still exist.
    """
    if not report.differing:
        return
    rows = [("query", "rank-biased overlap", "in common", "differs from")]
    for one in report.differing:
        shared = in_common(one.agreement)
        rows.append((query_label(one.pair, _IN_TABLE), figure(one.agreement.rbo), shared, one.pair.variant.parted_at))
    yield Table(rows, "The queries that differ most, by rank-biased overlap, lowest first:")
    for place, one in enumerate(report.differing):
        answers = [("rank", control, variant), *_answers(one, names)]
        yield Table(answers, f"{query_label(one.pair)}:", detail=place > 0)


def _answers(contrast: QueryContrast, names: Mapping[int, str]) -> Iterator[tuple[str, str, str]]:
    # after[id]: the ranks of a memory in both answers
    after = {move.id: move for move in contrast.agreement.moves}
    old = contrast.pair.control.memories[:SHOWN_ROWS]
    new = contrast.pair.variant.answer.memories[:SHOWN_ROWS]
    for rank, (before, now) in enumerate(zip_longest(old, new), start=1):
        was = None if now is None else after[now].before
        moved = "" if now is None or was == rank else " (new)" if was is None else f" (was {was})"
        yield str(rank), _name(before, names), f"{_name(now, names)}{moved}"


def _name(memory: int | None, names: Mapping[int, str]) -> str:
    return "" if memory is None else names.get(memory, f"memory {memory}, gone since")


def query_label(pair: RecordedPair, most: int = LONGEST_IN_LINE) -> str:
    """The text of a query if it was kept, else its id."""
    text = str((pair.query.question or {}).get("text", ""))
    return f"“{in_line(text, most)}”" if text else f"query {pair.query.id} (its text is not kept)"


def headline(report: ExperimentReport, control: str, variant: str) -> str:
    """The verdict, or the progress towards one; `report.sentence` has the figures."""
    if not report.compared:
        return f"{variant} failed on every query" if report.failed else f"{variant} has not been compared yet"
    if report.mode == "dark_run":
        return f"Only the time of {variant} is measured"
    if report.verdict == "same":
        return f"{variant} makes no difference"
    if report.verdict != "undecided":
        return f"{variant} is {report.verdict} than {control}"
    alike = report.agreement is not None and not report.agreement.ordering_differences
    rest = "all answered alike" if alike else plural(known_queries(report), "judgement")
    asked = report.questions
    if report.queries_needed is None:
        return f"Not decided yet: {plural(asked, 'query')}, {rest}"
    return f"Not decided yet: {asked:,} of about {plural(max(report.queries_needed, asked + 1), 'query')}, {rest}"


def known_queries(report: ExperimentReport) -> int:
    """The number of queries with evidence so far."""
    if report.duels:
        return report.duels.queries
    return max((one.queries for one in report.quality), default=report.judged or 0)


@dataclass(frozen=True, slots=True)
class NextStep:
    """A suggestion: its purpose, and commands to copy or edits to make."""

    purpose: str
    commands: Sequence[str]


KEPT = "write `evaluation: {keep_texts: 7}` in .speckit/config.yaml"


def next_steps(report: ExperimentReport, *, lacks: Sequence[str] = ()) -> list[NextStep]:
    """The possible steps for a variant, first those its verdict suggests. `lacks` says why the comparison does not meet
    the criterion of its flag."""
    # a pipeline compared with itself measures noise: there is nothing to promote
    same = report.control.hash == report.variant.hash
    steps = []
    undecided = report.verdict == "undecided" and report.agreement is not None
    if undecided and report.agreement and report.agreement.ordering_differences:
        judge = f"speckit-memory eval judge --experiment {report.id}"
        steps.append(
            NextStep("Judge the queries that differ", [judge])
            if report.texts
            else NextStep("Keep the text of queries from now on, so that a judge can read them", [KEPT])
        )
    if not report.flag:
        return steps + _by_file(report)
    further, away = _by_flag(report)
    if (undecided or lacks) and not same:  # a promotion would be refused
        measure = f"speckit-memory eval compare --own --flag {shlex.quote(report.flag)}"
        why = f"Its criterion is not met yet ({'; '.join(lacks)}). " if lacks else ""
        measured = NextStep(f"{why}Measure it at once on queries made of the memories", [measure])
        steps += [away, measured] if report.verdict in ("worse", "failed") else [measured, away]
    elif same:
        steps.append(away)
    elif report.verdict in ("worse", "failed"):
        steps += [away, further]
    else:
        steps += [further, away]
    return steps


def _by_flag(report: ExperimentReport) -> tuple[NextStep, NextStep]:
    flag = shlex.quote(report.flag)
    after, resting = ("shadow", "") if report.mode == "dark_run" else ("enabled", f" --evidence {report.id}")
    # A dark run never compared results, so it goes to shadow; only a shadow has evidence to cite.
    return (
        NextStep(f"Promote it to {after}", [f"speckit-memory flags promote {flag}{resting}"]),
        NextStep("Stop it", [f"speckit-memory flags demote {flag}"]),
    )


def _by_file(report: ExperimentReport) -> list[NextStep]:
    """Steps for a variant declared in a file; none if its entry is unknown because it was removed before its first
    answer was recorded."""
    if not report.variant.name:
        return []
    key = "dark_runs" if report.mode == "dark_run" else "shadows"
    where = f"the entry '{report.variant.name}' of `{key}:` at the top of .speckit/pipeline.yaml"
    away = NextStep("Stop it", [f"remove {where}"])
    if report.mode == "dark_run":
        return [NextStep("Compare its results", [f"move {where} to `shadows:`"]), away] if report.compared else [away]
    if report.verdict in ("better", "same") and report.control.hash != report.variant.hash:
        return [NextStep("Serve it", [f"write what {where} uses as `extends:` there, and remove the entry"]), away]
    return [away]
