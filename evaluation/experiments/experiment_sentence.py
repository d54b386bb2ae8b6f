"""Summarises the result of an experiment in one plain sentence that is true in every case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from pathlib import PurePath

from speckit_memory.errors.echo import plural
from speckit_memory.evaluation.experiments.experiment_evidence import FEWEST
from speckit_memory.evaluation.experiments.experiment_report import (
    Agreements,
    CostDifference,
    ExperimentReport,
    QualityDifference,
)
from speckit_memory.evaluation.experiments.interleaving import Duels
from speckit_memory.evaluation.statistics.comparison import MARGIN
from speckit_memory.memory.store.evaluation.records import PipelineRecord

_SOURCES = {"judgements": "judged", "uses": "used"}


def names(control: PipelineRecord, variant: PipelineRecord, flag: str) -> tuple[str, str]:
    """The names of control and variant in a sentence: always different, and files without their folders.

    A pipeline that only lost queries is named by its hash.
    """
    control, variant = (one if one.name else replace(one, name=one.hash[:7]) for one in (control, variant))
    if control.hash == variant.hash:
        return control.name, f"{control.name} again"
    if variant.name != control.name:
        first, second = (_without_folders(one.name) for one in (control, variant))
        return (first, second) if first != second else (control.name, variant.name)
    return control.name, f"{variant.name} with {flag}" if flag else f"{variant.name} ({variant.hash[:7]})"


def _without_folders(name: str) -> str:
    return PurePath(name).name if name.endswith((".yaml", ".yml")) else name


def sentence(report: ExperimentReport) -> str:
    """The first line of a report."""
    control, variant = names(report.control, report.variant, report.flag)
    if not report.compared:
        return _nothing(report, control, variant)
    failed = f" It failed on {report.failed} of {plural(report.queries, 'query')}." if report.failed else ""
    if report.mode == "interleaved":
        return f"{_mixed(report, control, variant)}; it {_takes(report.cost)}.{failed}"
    if report.agreement is None:
        return (
            f"{variant} {_takes(report.cost)} over {plural(report.compared, 'query')}"
            f"{_budget(report.cost)}; a dark run keeps no results, so it says nothing about their quality.{failed}"
        )
    if not report.agreement.ordering_differences:
        return _same_order(report, report.agreement, control, variant) + failed
    found = f"it {_differs(report.agreement)} and {_takes(report.cost)}"
    return f"{_quality(report, control, variant)}; {found}.{failed}"


def _nothing(report: ExperimentReport, control: str, variant: str) -> str:
    if report.queries and report.failed:
        return (
            f"{variant} failed on {_all(report.failed, report.queries)} ({_reasons(report.failures)}), so there is "
            f"nothing to compare with {control}."
        )
    if report.queries:
        failed = _all(report.queries, report.queries)
        return f"{control} itself failed on {failed}, so there is nothing to compare {variant} with."
    if dropped := sum(report.dropped.values()):
        return (
            f"{variant} has seen none of {plural(dropped, 'query')} ({_reasons(report.dropped)}), so there is nothing "
            f"to compare with {control}."
        )
    return f"{variant} has not run alongside {control} yet, so there is nothing to compare."


def _same_order(report: ExperimentReport, agreement: Agreements, control: str, variant: str) -> str:
    n = agreement.queries
    scores = f" (with other scores on {agreement.only_scores})" if agreement.only_scores else ""
    found = f"the same memories in the same order as {control} on {_all(n, n)}{scores} and {_takes(report.cost)}"
    if report.verdict == "same":
        return f"No difference: {variant} gave {found}; {_most(report)}, so refactoring is safe as far as they go."
    more = ""
    if report.queries_needed:
        more = f"; {plural(max(1, report.queries_needed - report.questions), 'more query')} like these would let it be "
        more += "called no difference"
    return f"Undecided: {variant} gave {found}; {_most(report)}{more}."


def _most(report: ExperimentReport) -> str:
    """The largest difference that judgements can make."""
    # the first metric that judgements could move by more than the margin, else the first
    one = next((one for one in report.label_free if one.bound > MARGIN), report.label_free[0])
    if not one.differing:
        return f"with 95 % confidence {one.metric} differs by at most {one.bound:.3f} on queries like these"
    return (
        f"judgements can move {one.metric} on {one.differing:,} of {plural(one.questions, 'query')}, the mean by at "
        f"most {one.mean:.4f} (on all queries like these: {one.bound:.3f})"
    )


def _quality(report: ExperimentReport, control: str, variant: str) -> str:
    decided = [quality for quality in report.quality if quality.verdict in ("better", "worse")]
    if report.verdict in ("better", "worse"):
        return f"{variant} is {report.verdict} than {control} on {_figures(decided[0])}"
    if report.verdict == "same":
        shown = _figures(report.quality[0]) if report.quality else _most(report)
        return f"No difference in quality between {variant} and {control}: {shown}"
    if decided:
        both = " but ".join(f"{quality.verdict} on {_figures(quality)}" for quality in decided)
        return f"Undecided: {variant} is {both}"
    asks = f" (`eval judge --experiment {report.id}` asks for them)" if report.texts else ""  # a judge needs texts
    if not report.quality:
        judged = ""
        if report.judged is not None:
            judged = f"{plural(report.judged, 'query')} judged, {FEWEST} needed before there is a figure; "
        return f"Undecided on quality of {variant} against {control}: {judged}{_most(report)}{_unjudged(report)}{asks}"
    open_ = min(report.quality, key=lambda quality: quality.queries_needed or float("inf"))
    text = f"Undecided: {variant} against {control} on {_figures(open_)}"
    return f"{text}, and {_missing(open_)}{asks if open_.waiting and open_.evidence == 'judgements' else ''}"


def _unjudged(report: ExperimentReport) -> str:
    """The amount of judging or of queries that would be needed while nothing is judged."""
    one = report.label_free[0]
    if one.queries_needed is None:
        return ""
    more = one.queries_needed - one.questions
    if one.mean <= MARGIN:
        return f"; about {plural(max(1, more), 'more query')} would show without judging that it is within {MARGIN:g}"
    # the share of differing questions among those needed
    to_judge = ceil(one.queries_needed * one.differing / one.questions)
    shown = f"would show a difference of {one.planned:.3f}"
    if more <= 0:
        return f"; judging about {plural(to_judge, 'query')} that differ {shown}"
    asked = f"about {plural(one.queries_needed, 'query')} in all"
    return f"; {asked}, of which some {to_judge:,} differ and are judged, {shown}"


def _missing(quality: QualityDifference) -> str:
    """What would settle one metric: judgements where some are waiting, else queries."""
    judged, waiting, needed = quality.queries, quality.waiting, quality.queries_needed
    to_judge = waiting if quality.evidence == "judgements" else 0
    if needed is None:
        return "more judgements may settle it" if to_judge else "more queries may settle it"
    every = judged + waiting + quality.alike
    more = needed - every
    shown = f"would show a difference of this size, or none above {MARGIN:g}"
    if not to_judge:
        return f"about {plural(max(1, more), 'more query')} {shown}"
    if more > 0:
        return f"judging the {to_judge:,} that wait and about {plural(more, 'more query')} {shown}"
    # the part of the needed queries that differ, minus those that are judged
    further = min(to_judge, max(1, ceil(needed * (judged + waiting) / every) - judged))
    return f"judging about {further:,} of the {to_judge:,} that wait {shown}"


def _mixed(report: ExperimentReport, control: str, variant: str) -> str:
    if report.duels:
        return _duels(report.duels, control, variant)
    asked = plural(report.compared, "query")
    return (
        f"Undecided: answers of {variant} were served mixed with those of {control} on {asked}, and it is not known "
        "whose memories were chosen"
    )


def _duels(duels: Duels, control: str, variant: str) -> str:
    low, high = duels.ci95
    won = (
        f"won {duels.variant_wins} of {plural(duels.queries, 'interleaved query')} and lost {duels.control_wins} "
        f"(lead {duels.lead:+.3f}, 95 % interval {low:+.3f} to {high:+.3f})"
    )
    if duels.verdict != "undecided":
        return f"{variant} is {duels.verdict} than {control}: it {won}"
    text = f"Undecided: {variant} {won} against {control}"
    if duels.queries_needed is not None:
        text += (
            f", and about {plural(duels.queries_needed - duels.queries, 'more query')} would settle a lead of this size"
        )
    return text


def _figures(quality: QualityDifference) -> str:
    low, high = quality.ci95
    return (
        f"{quality.metric} ({quality.delta:+.3f}, 95 % interval {low:+.3f} to {high:+.3f}, "
        f"{plural(quality.queries, f'{_SOURCES[quality.evidence]} query')})"
    )


def _differs(agreement: Agreements) -> str:
    text = f"answers {agreement.ordering_differences} of {plural(agreement.queries, 'query')} differently"
    if agreement.overlap_10:
        text += f", with {agreement.overlap_10.mean:.0%} of the first ten in common"
    return text


def _takes(cost: CostDifference) -> str:
    if cost.overhead is None:
        return "has no times"
    middle = cost.overhead.p50
    if cost.verdict == "undecided":
        return f"took {abs(middle):.1f} ms {'less' if middle < 0 else 'more'} at the median, which may be chance"
    return f"takes {abs(middle):.1f} ms {'more' if cost.verdict == 'slower' else 'less'} at the median"


def _budget(cost: CostDifference) -> str:
    if cost.spent is None:
        return ""
    kept = "breaks" if cost.budget_broken else "keeps"
    return f" and {kept} its budget of {cost.budget_ms:,.0f} ms (p95 {cost.spent.p95:,.1f} ms)"


def _reasons(counts: Mapping[str, int]) -> str:
    often = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return ", ".join(f"{why}: {count}" for why, count in often)


def _all(count: int, of: int) -> str:
    if count < of:
        return f"{count} of {of:,} queries"
    return "the only query" if of == 1 else f"all {of:,} queries"
