"""Suggests next steps for a comparison: commands that promote or stop a variant."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from speckit_memory.evaluation.experiments.experiment_report import ExperimentReport


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
