"""How the steps of a pipeline change scores and ranks, over the sample of answers stored in detail (feature E7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from speckit_memory.evaluation.statistics.report import Report, Table, as_document, figure
from speckit_memory.memory.store.evaluation.records import PipelineRecord, ScoreSample


@dataclass(frozen=True, slots=True)
class StepMoves:
    """The effect of one step on the served memories, over the answers in which it ran.

    `moved_scores` and `moved_ranks`: share of the answers in which it changed a score, or the order of these memories.
    `score_change` and `rank_change`: mean absolute change per memory. All four are None for the first step, before
    which there are no scores.
    """

    step: str
    queries: int
    moved_scores: float | None
    score_change: float | None
    moved_ranks: float | None
    rank_change: float | None


@dataclass(frozen=True, slots=True)
class PipelineMoves:
    """The steps of one pipeline in running order; `name` is "" where only the hash is known."""

    hash: str
    name: str
    queries: int
    steps: tuple[StepMoves, ...]


@dataclass(frozen=True, slots=True)
class ScoringReport:
    """The effects of the steps in the sample, one pipeline after the other, the most sampled first."""

    pipelines: tuple[PipelineMoves, ...]

    def as_report(self) -> Report:
        """A table for each pipeline."""
        data = {"kind": "eval scorings", **as_document(self)}
        if not self.pipelines:
            nothing = "no answer of that period is kept in detail; `evaluation: {observe: 0.05}` sets the share kept"
            return Report(nothing, data=data)
        tables = []
        for one in self.pipelines:
            answers = "1 answer" if one.queries == 1 else f"{one.queries:,} answers"
            rows = [["step", "answers", "moved scores", "by", "moved ranks", "by"]]
            for step in one.steps:
                scores = [_share(step.moved_scores), figure(step.score_change, 4)]
                ranks = [_share(step.moved_ranks), figure(step.rank_change, 2)]
                rows.append([step.step, f"{step.queries:,}", *scores, *ranks])
            tables.append(Table(rows, f"{one.name or 'a pipeline'} ({one.hash}), {answers} in the sample"))
        return Report("How each step changed scores and ranks of results", tables=tables, data=data)


def step_effects(scorings: Iterable[ScoreSample], known: Mapping[str, PipelineRecord]) -> ScoringReport:
    """The effects of the steps in these answers; `known` names pipelines by hash. Empty answers are ignored."""
    by_pipeline: dict[str, list[ScoreSample]] = {}
    for one in scorings:
        if one.memories:
            by_pipeline.setdefault(one.pipeline, []).append(one)
    found = [
        PipelineMoves(name, known[name].name if name in known else "", len(of_it), _moves(of_it))
        for name, of_it in by_pipeline.items()
    ]
    return ScoringReport(tuple(sorted(found, key=lambda one: (-one.queries, one.hash))))


def _moves(scorings: Sequence[ScoreSample]) -> tuple[StepMoves, ...]:
    """The steps of one pipeline. A step that did not run in an answer does not count there."""
    counted: dict[str, int] = {}
    moved: dict[str, list[tuple[float, float]]] = {}
    for scoring in max(scorings, key=lambda one: len(one.steps)), *scorings:  # the longest one defines the order
        for step in scoring.steps:
            counted.setdefault(step.step, 0)
    for scoring in scorings:
        before: Sequence[float] | None = None
        for step in scoring.steps:
            counted[step.step] += 1
            if before is not None:
                moved.setdefault(step.step, []).append(_moved(before, step.after))
            before = step.after
    return tuple(_summed(step, count, moved.get(step, ())) for step, count in counted.items())


def _moved(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """The mean absolute changes of a score and of a rank."""
    ranks = zip(_ranks(before), _ranks(after), strict=True)
    scores = fmean(abs(new - old) for old, new in zip(before, after, strict=True))
    return scores, fmean(abs(new - old) for old, new in ranks)


def _ranks(scores: Sequence[float]) -> list[int]:
    """The rank of each score, from 0, best first; ties keep the order in which they were served."""
    order = sorted(range(len(scores)), key=lambda place: -scores[place])
    ranks = [0] * len(scores)
    for rank, place in enumerate(order):
        ranks[place] = rank
    return ranks


def _summed(step: str, count: int, moved: Sequence[tuple[float, float]]) -> StepMoves:
    if not moved:
        return StepMoves(step, count, None, None, None, None)
    scores, ranks = zip(*moved, strict=True)
    return StepMoves(
        step,
        count,
        fmean(change > 0 for change in scores),
        fmean(scores),
        fmean(change > 0 for change in ranks),
        fmean(ranks),
    )


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"
