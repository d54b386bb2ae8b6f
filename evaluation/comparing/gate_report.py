"""The report of a gate: the verdict and the largest hidden loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from speckit_memory.evaluation.comparing.compare_report import CompareReport
from speckit_memory.evaluation.statistics.document import as_document
from speckit_memory.evaluation.statistics.report import Report, Table

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
