"""`eval gate`: tests whether a pipeline loses against another one, for continuous integration (feature E8)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, Unpack

import numpy as np

from speckit_memory.config.files.paths import is_file
from speckit_memory.config.pipelines.sources import presets
from speckit_memory.config.workspace.settings import settings
from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.evaluation.comparing.compare import report_on
from speckit_memory.evaluation.comparing.compare_report import CompareReport
from speckit_memory.evaluation.comparing.replay import KIND as REPLAY
from speckit_memory.evaluation.comparing.revisions import pipeline_of
from speckit_memory.evaluation.comparing.storage import find, store_report
from speckit_memory.evaluation.ground_truth.ground import GroundSource
from speckit_memory.evaluation.running.run import Evaluation, EvaluationOptions, EvaluationRun, load_pipelines
from speckit_memory.evaluation.statistics.comparison import COMPARED_METRICS, compare, without_losses
from speckit_memory.evaluation.statistics.report import Report, Table, as_document
from speckit_memory.evaluation.statistics.sequential import largest_loss, queries_to_rule_out
from speckit_memory.memory.store.evaluation.records import StoredEvaluation
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.loading import PipelineSource
from speckit_memory.pipeline.ports import Column


def paired_report(measured: EvaluationRun, kept: StoredEvaluation, name: str, *, kind: str, at: float) -> CompareReport:
    """The report on the one measured pipeline, with a stored pipeline as its control.

    Args:
        measured: The answers of one pipeline.
        kept: The stored evaluation.
        name: The stored pipeline; "" for the control of the stored evaluation.
        kind: The command that is recorded with the report.
        at: Time of the measurement in epoch seconds.

    Raises:
        SpeckitError: E030 unless the documents, queries and judgements are the stored ones, by their digest.
    """
    ground = measured.ground
    if kept.digest != ground.digest:
        message = (
            f"evaluation {kept.id} is of '{kept.dataset}' with the digest {kept.digest}, and this dataset has "
            f"{ground.digest}: the documents, queries or judgements differ, so nothing can be paired"
        )
        actions = ("gate against a pipeline or a revision", "measure again with `eval compare`")
        raise SpeckitError("E030", message, actions=actions)
    stored = kept.document["per_query"]
    names = list(stored["values"])
    if name and name not in names:
        raise SpeckitError("E030", f"evaluation {kept.id} has no pipeline '{name}'; {nearest(name, names)}")
    asked = tuple(query.id for query in measured.asked)
    if list(asked) != list(stored["queries"]):
        message = (
            f"evaluation {kept.id} is of {len(stored['queries']):,} queries; here {len(asked):,} other ones are asked"
        )
        raise SpeckitError("E030", message, actions=("leave out --queries",))
    chosen = name or names[0]
    # Exactly one pipeline was measured; anything else is a mistake of the caller and raises.
    ((now, values),) = measured.values.items()
    then = f"{chosen} of {kept.id}"
    # metric to (n,) float64; the order of the queries was compared above, so both sides are paired.
    columns = {metric: np.array(column) for metric, column in stored["values"][chosen].items()}
    entry = next(one for one in kept.document["pipelines"] if one["name"] == chosen)
    sides = {then: columns, now: values}
    (pipeline,) = measured.report.pipelines
    found = compare(sides, [(then, now)])
    return CompareReport(
        kind=kind,
        at=at,
        dataset=measured.report.dataset,
        digest=ground.digest,
        documents=measured.report.documents,
        queries=asked,
        no_relevant=measured.report.no_relevant,
        pipelines=({**entry, "name": then}, as_document(pipeline)),
        comparisons=without_losses(found) if ground.by_use else found,
        noise=None,
        contrasts=(),
        values=sides,
        warnings=tuple(measured.report.all_warnings()),
    )


KIND = "gate"
_STORED = re.compile(r"([0-9a-f]{12})(?::(.+))?")


def gate(
    source: GroundSource,
    pipeline: PipelineSource | None,
    against: str,
    *,
    store: Path,
    keep: bool = True,
    max_loss: float | None = None,
    overrides: Mapping[str, str] | None = None,
    **options: Unpack[EvaluationOptions],
) -> GateResult:
    """Compares a pipeline with a preset, a file, a stored evaluation or a revision.

    A stored evaluation is paired query by query with the present measurement; the digests of both datasets must be
    equal.

    Args:
        source: Dataset or other source to measure on.
        pipeline: The gated pipeline; None for the pipeline that a search would use.
        against: A file, a preset, the `ID` of a stored evaluation (its control) or `ID:NAME` (another of its
            pipelines), or a revision `REV` or `REV:PATH` of the repository of the workspace.
        store: Store next to which stored evaluations are found.
        keep: Whether the result is stored there too.
        max_loss: Non-inferiority margin; None for a test of regression.
        overrides: YAML values by "step.parameter", applied to the gated pipeline alone.
        options: See `EvaluationOptions`; without `queries`, as many are asked as the stored evaluation has.

    Raises:
        SpeckitError: E030 where `against` cannot be found or paired, or with every problem of the pipelines or dataset.
    """
    evaluation = Evaluation(source, **options)
    config = settings(environ=evaluation.environ)
    gated = config.pipeline if pipeline is None else pipeline
    (chosen,) = evaluation.load([gated], overrides)
    named = _STORED.fullmatch(against)
    # a file named like an id takes precedence
    stored = find(store, named[1]) if named and not is_file(Path(against)) else None
    if stored is not None and (stored.kind == REPLAY or "per_query" not in stored.document):
        raise _not_to_be_paired(stored)
    # only the gated pipeline runs; the other side is the stored values
    if named and stored is not None:
        options["queries"] = options.get("queries") or len(stored.document["per_query"]["queries"])
        measured = Evaluation(source, **options).measure([chosen], abstention=True)
        report = paired_report(measured, stored, named[2] or "", kind=KIND, at=evaluation.begun)
    else:
        other = _other(
            against, str(gated) if isinstance(gated, str | Path) else config.pipeline, config.root, evaluation.environ
        )
        measured = evaluation.measure([other, chosen, other], abstention=True)
        report = report_on(measured, kind=KIND, at=evaluation.begun)
    before, after = report.values.values()
    losses = tuple(_hidden(metric, after[metric] - before[metric], max_loss) for metric in COMPARED_METRICS)
    found = GateResult(report, against, losses, max_loss)
    return replace(found, comparison=store_report(report, store if keep else None, as_document(found)))


def _hidden(metric: str, differences: Column, max_loss: float | None) -> DetectableLoss:
    # alpha = 0.05, one-sided: the margin is only tested in the direction of a loss.
    alpha = 1 - CONFIDENCE
    needed = None if max_loss is None else queries_to_rule_out(max_loss, differences, alpha=alpha)
    return DetectableLoss(metric, largest_loss(differences, alpha=alpha), needed)


def _other(against: str, pipeline: str, root: Path, environ: Mapping[str, str]) -> Effective:
    """The pipeline named by `against`: a preset or a file, else a revision."""
    if against in presets() or is_file(Path(against)):
        return load_pipelines([against], None, environ)[0]
    try:
        return pipeline_of(against, pipeline, root, environ)
    except SpeckitError as error:
        # Other codes say that a revision was found and what is wrong with its pipeline.
        if error.code != "E030":
            raise
        first = error.problems[0]
        message = f"'{against}' is neither a preset, a file, the id of a stored evaluation, nor a revision"
        raise SpeckitError("E030", f"{message}: {first.message}", actions=first.actions) from error


def _not_to_be_paired(stored: StoredEvaluation) -> SpeckitError:
    actions = ["name an evaluation that `eval compare` or `eval gate` kept", "gate against a pipeline or a revision"]
    why = "has no per-query values to pair with"
    if stored.kind == REPLAY:
        why = "replays queries recorded in its store, which no dataset holds, so nothing can be paired with it"
        actions.append(f"a flag can cite it: `flags promote NAME --evidence {stored.id}`")
    message = f"evaluation {stored.id} was kept by `{stored.kind}` and {why}"
    return SpeckitError("E030", message, actions=tuple(actions))


CONFIDENCE = 0.95
"""One-sided confidence: a regression larger than the reported maximum is missed with a probability of 5 %."""


@dataclass(frozen=True, slots=True)
class DetectableLoss:
    """The largest loss on one metric that these queries do not rule out, one-sided with 95 % confidence; 0 for none.

    `queries_needed`: how many queries would rule out a loss of the margin; None without a margin or when none would.
    """

    metric: str
    loss: float
    queries_needed: int | None


@dataclass(frozen=True, slots=True)
class GateResult:
    """The result of a gate. The control of `comparison` is the other pipeline.

    `against` names the other pipeline; `max_loss` is the non-inferiority margin, None for a test of regression.
    """

    comparison: CompareReport
    against: str
    hidden: tuple[DetectableLoss, ...]
    max_loss: float | None
    ENTRIES: ClassVar = {
        "comparison": "",
        "against": "gate.against",
        "hidden": "gate.hidden",
        "max_loss": "gate.max_loss",
        "verdict": "gate.verdict",
        "sentence": "gate.sentence",
        "confidence": "gate.confidence",
    }

    @property
    def losses(self) -> list[str]:
        """The metrics on which the gate fails."""
        # With a margin the burden of proof is reversed: too few queries fail, because they rule nothing out.
        if self.max_loss is not None:
            return [one.metric for one in self.hidden if one.loss > self.max_loss]
        return [comparison.metric for comparison in self.comparison.comparisons if comparison.verdict == "worse"]

    @property
    def verdict(self) -> Literal["pass", "fail"]:
        """Fails on a significant regression; with a margin, fails unless a loss of that size is ruled out."""
        return "fail" if self.losses else "pass"

    @property
    def status(self) -> int:
        """The exit status."""
        return 1 if self.losses else 0

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        other, name = (str(pipeline["name"]) for pipeline in self.comparison.pipelines)
        worst = max(one.loss for one in self.hidden)
        if self.losses and self.max_loss is None:
            told = [
                f"{c.metric} {c.delta:+.4f} (95 % interval {c.ci95[0]:+.4f} to {c.ci95[1]:+.4f})"
                for c in self.comparison.comparisons
                if c.metric in self.losses
            ]
            return f"{name} is worse than {other}: {'; '.join(told)}"
        if self.losses:
            told = [
                f"{one.metric} up to {one.loss:.4f}{_more(one)}" for one in self.hidden if one.metric in self.losses
            ]
            return (
                f"a loss of more than {self.max_loss:g} against {other} is not ruled out for {name}: {'; '.join(told)}"
            )
        same = self.comparison.contrasts and not self.comparison.contrasts[0].ordering_differences
        beginning = f"{name} orders all queries as {other} does; " if same else ""
        return f"{beginning}no regression larger than {worst:.4f} can hide here (one-sided, 95 % confidence)"

    @property
    def confidence(self) -> float:
        """The confidence of `hidden`."""
        return CONFIDENCE

    def as_report(self) -> Report:
        """The verdict, both pipelines by metric, and what can hide."""
        other, name = (str(pipeline["name"]) for pipeline in self.comparison.pipelines)
        rows = [["metric", other, name, "difference", "95 % interval", "p adjusted", "verdict", "can hide"]]
        before, after = (pipeline["metrics"] for pipeline in self.comparison.pipelines)
        hidden = {one.metric: one.loss for one in self.hidden}
        for c in self.comparison.comparisons:
            figures = [f"{before[c.metric]:.4f}", f"{after[c.metric]:.4f}", f"{c.delta:+.4f}"]
            interval = f"{c.ci95[0]:+.4f} to {c.ci95[1]:+.4f}"
            rows.append([c.metric, *figures, interval, f"{c.p_adjusted:.4f}", c.verdict, f"{hidden[c.metric]:.4f}"])
        compared = self.comparison.as_report()
        return Report(
            f"Retrieval gate {self.verdict}ed",
            verdict=f"{self.sentence}\n{compared.verdict}",
            outcome=self.verdict,
            about=f"{compared.title}, digest {self.comparison.digest}",
            tables=[Table(rows)],
            notes=compared.notes,
            data={**as_document(self.comparison), **as_document(self)},
        )


def _more(one: DetectableLoss) -> str:
    return f" (about {one.queries_needed:,} queries would rule it out)" if one.queries_needed else ""
