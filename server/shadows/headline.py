"""The verdict on a variant in a few words."""

from __future__ import annotations

from speckit_memory.evaluation.experiments.experiment_report import ExperimentReport
from speckit_memory.server.console.wording import plural


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
