"""The report of a gate: the verdict, the largest hidden loss, and texts for a terminal and a pull request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from speckit_memory.evaluation.comparing.compare_report import CompareReport
from speckit_memory.evaluation.statistics.tables import Block, Table, plain_text

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
    """The result of a gate. The control of `report` is the other pipeline.

    `against` names the other pipeline; `max_loss` is the non-inferiority margin, None for a test of regression.
    """

    report: CompareReport
    against: str
    hidden: tuple[DetectableLoss, ...]
    max_loss: float | None

    @property
    def losses(self) -> list[str]:
        """The metrics on which the gate fails."""
        # With a margin the burden of proof is reversed: too few queries fail, because they rule nothing out.
        if self.max_loss is not None:
            return [one.metric for one in self.hidden if one.loss > self.max_loss]
        return [comparison.metric for comparison in self.report.comparisons if comparison.verdict == "worse"]

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
        other, name = (str(pipeline["name"]) for pipeline in self.report.pipelines)
        worst = max(one.loss for one in self.hidden)
        if self.losses and self.max_loss is None:
            told = [
                f"{c.metric} {c.delta:+.4f} (95 % interval {c.ci95[0]:+.4f} to {c.ci95[1]:+.4f})"
                for c in self.report.comparisons
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
        same = self.report.contrasts and not self.report.contrasts[0].ordering_differences
        beginning = f"{name} orders all queries as {other} does; " if same else ""
        return f"{beginning}no regression larger than {worst:.4f} can hide here (one-sided, 95 % confidence)"

    def as_json(self, *, texts: bool = True) -> dict[str, Any]:
        """The JSON document of `eval gate --json`."""
        return {"gate": self.gate(), **self.report.as_json(texts=texts)}

    def gate(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {
            "verdict": self.verdict,
            "sentence": self.sentence,
            "against": self.against,
            "max_loss": self.max_loss,
            "confidence": CONFIDENCE,
            "hidden": [
                {"metric": one.metric, "loss": round(one.loss, 6), "queries_needed": one.queries_needed}
                for one in self.hidden
            ],
        }

    def blocks(self) -> list[Block]:
        """The verdict first, then the comparison."""
        return [f"{self.verdict.upper()}: {self.sentence}", *self.report.blocks()]

    def as_text(self) -> str:
        """The report as plain text for a file or a pipe."""
        return plain_text(self.blocks())

    def as_markdown(self) -> str:
        """A short summary for a comment on a pull request."""
        other, name = (pipeline["name"] for pipeline in self.report.pipelines)
        rows = [["metric", str(other), str(name), "difference", "95 % interval", "p adjusted", "verdict", "can hide"]]
        before, after = (pipeline["metrics"] for pipeline in self.report.pipelines)
        hidden = {one.metric: one.loss for one in self.hidden}
        for c in self.report.comparisons:
            figures = [f"{before[c.metric]:.4f}", f"{after[c.metric]:.4f}", f"{c.delta:+.4f}"]
            interval = f"{c.ci95[0]:+.4f} to {c.ci95[1]:+.4f}"
            rows.append([c.metric, *figures, interval, f"{c.p_adjusted:.4f}", c.verdict, f"{hidden[c.metric]:.4f}"])
        said = "passed" if self.verdict == "pass" else "failed"
        lines = [f"### Retrieval gate {said}", f"{self.sentence}."]  # may begin with a file name: no capital
        lines.append(str(Table(rows, markdown=True)))
        asked = f"{len(self.report.queries):,} queries of {self.report.dataset} (digest {self.report.digest})"
        told = f"evaluation `{self.report.id}`" if self.report.is_kept else self.report.keeping
        lines.append(f"{asked}, {told}.")
        lines += [f"> {warning}" for warning in self.report.all_warnings()]
        return "\n\n".join(lines) + "\n"


def _more(one: DetectableLoss) -> str:
    return f" (about {one.queries_needed:,} queries would rule it out)" if one.queries_needed else ""
