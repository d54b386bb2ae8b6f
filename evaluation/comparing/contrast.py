"""Compares one pipeline with the control query by query: agreement, wins and losses, and the largest differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from speckit_memory.evaluation.datasets.dataset import DatasetQuery
from speckit_memory.evaluation.datasets.trec import Ranking
from speckit_memory.evaluation.measuring.measure import Answer
from speckit_memory.evaluation.statistics.agreement import Agreement, agree_each, mean_tau
from speckit_memory.evaluation.statistics.comparison import COMPARED_METRICS, Values
from speckit_memory.evaluation.statistics.metrics import METRICS
from speckit_memory.evaluation.statistics.sequential import anytime_interval
from speckit_memory.pipeline.comparing import divergence
from speckit_memory.pipeline.ports import Column
from speckit_memory.pipeline.running.runner import Outcome
from speckit_memory.pipeline.running.step_memo import Reached

_Values = Mapping[int, float]


@dataclass(frozen=True, slots=True)
class _Told:
    """An answer at one place: the number of rows, the step's states, and the scores of the served rows, if any."""

    rows: int
    states: tuple[str, ...]
    values: _Values | None


def parted_at(control: Outcome, variant: Outcome) -> str:
    """The id of the first step whose output differs, "" if none; "vector (only in the control)" for a step of one
    pipeline."""
    step = divergence.parted_at(old := list(_course(control)), new := list(_course(variant)), _alike)
    for name, course, other in (("control", old, new), ("variant", new, old)):
        if step in {one for one, *_ in course} - {one for one, *_ in other}:
            return f"{step} (only in the {name})"
    return step


def _alike(one: object, other: object) -> bool:
    """Whether two places are equal, judged by the rows that both answers hold."""
    assert isinstance(one, _Told) and isinstance(other, _Told)
    if (one.rows, one.states, one.values is None) != (other.rows, other.states, other.values is None):
        return False
    before, after = one.values or {}, other.values or {}
    return all(before[row] == after[row] for row in before.keys() & after.keys())


def _course(outcome: Outcome) -> Iterator[Reached]:
    """Each step once, in running order, with the rows before and after it. Several runs of a channel are merged."""
    values = _scores(outcome)
    counted: dict[str, tuple[int, int, tuple[str, ...]]] = {}
    for record in outcome.trace.steps:
        # n_in and n_out add up over the runs of a step; a channel runs once per wording of the query.
        n_in, n_out, states = counted.get(record.step, (0, 0, ()))
        counted[record.step] = n_in + record.n_in, n_out + record.n_out, (*states, record.state)
    scores: _Values | None = None
    for step, (n_in, n_out, states) in counted.items():
        if step in outcome.pool.candidates.channels:
            yield step, _Told(n_in, states, None), _Told(n_out, states, values[step] if n_out else None)
            continue
        # A step that gives no scores passes on those before it.
        before, scores = scores, values.get(step, scores)
        yield step, _Told(n_in, states, before), _Told(n_out, states, scores)


def _scores(outcome: Outcome) -> dict[str, _Values]:
    """The scores that each channel and each scoring step gave to the served rows."""
    candidates, ids = outcome.pool.candidates, outcome.pool.ids.tolist()
    values: dict[str, _Values] = {}
    for column, channel in enumerate(candidates.channels):
        held: dict[int, float] = dict(values.get(channel, {}))
        # raw: (n, channel) float64 with NaN where the channel did not return the row.
        for row, raw in zip(ids, candidates.raw[:, column].tolist(), strict=True):
            if not np.isnan(raw):
                # the best score over all wordings of the query
                held[row] = max(raw, held.get(row, raw))
        values[channel] = held
    for score in outcome.pool.steps:
        values[score.step] = dict(zip(ids, score.after.tolist(), strict=True))
    return values


MAIN = COMPARED_METRICS[0]
SHOWN_QUERIES, SHOWN_ROWS = 10, 5
"""Number of listed queries that differ most, and of rows shown of each answer."""

LEAST_IN_SEGMENT = 5
"""A smaller segment gets no interval: it would be too wide to be useful."""


@dataclass(frozen=True, slots=True)
class Side:
    """The answers and metric values of one pipeline, aligned with the queries. `answers` is empty for run files."""

    name: str
    rankings: Sequence[Ranking]
    values: Values
    answers: Sequence[Answer] = ()


@dataclass(frozen=True, slots=True)
class WinCount:
    """Counts of queries on which the variant wins, ties and loses on one metric."""

    wins: int
    ties: int
    losses: int

    @classmethod
    def of(cls, differences: Column) -> WinCount:
        """Counts differences, variant minus control."""
        wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
        return cls(wins, len(differences) - wins - losses, losses)


@dataclass(frozen=True, slots=True)
class ContrastSegment:
    """nDCG@10 of the queries of one kind. Not tested: with many segments, one looks good by chance."""

    by: str
    name: str
    queries: int
    delta: float
    ci95: tuple[float, float] | None
    tally: WinCount


@dataclass(frozen=True, slots=True)
class DifferingQuery:
    """A query whose answers differ: both lists, their overlap, the effect on nDCG@10, and the first step that differs.

    `first_difference` is a rank from 1, `delta` the difference of nDCG@10.
    """

    query: str
    text: str
    control: tuple[str, ...]
    variant: tuple[str, ...]
    rbo: float
    first_difference: int
    delta: float
    parted_at: str


@dataclass(frozen=True, slots=True)
class PipelineContrast:
    """A variant compared with the control. Means are over all queries; tau is over those where neither answer is empty.

    `ordering_differences` 0 means that a change of the code or the pipeline file changed no order anywhere.
    """

    control: str
    variant: str
    queries: int
    ordering_differences: int
    score_differences: int
    kendall_tau_b: float | None
    overlap_5: float
    overlap_10: float
    rbo: float
    overhead_ms: tuple[float, float] | None
    tallies: dict[str, WinCount]
    segments: tuple[ContrastSegment, ...]
    differ_most: tuple[DifferingQuery, ...]

    ENTRIES: ClassVar = {
        "overlap_5": "overlap@5",
        "overlap_10": "overlap@10",
        "overhead_ms": "",
        "tallies": "tally",
        "overhead": "overhead_ms",
    }

    @property
    def overhead(self) -> dict[str, float] | None:
        """The additional time of the variant, by percentile."""
        return self.overhead_ms and {"p50": round(self.overhead_ms[0], 3), "p95": round(self.overhead_ms[1], 3)}


def contrast(asked: Sequence[DatasetQuery], control: Side, variant: Side) -> PipelineContrast:
    """Compares two sides over the same queries."""
    agreements = agree_each(zip(control.rankings, variant.rankings, strict=True))
    differences = {metric: variant.values[metric] - control.values[metric] for metric in METRICS}
    # Every difference is variant minus control, aligned with the queries: (n,) float64.
    return PipelineContrast(
        control=control.name,
        variant=variant.name,
        queries=len(asked),
        ordering_differences=sum(one.ordering_difference for one in agreements),
        score_differences=sum(one.only_scores_differ for one in agreements),
        kendall_tau_b=mean_tau(agreements),
        overlap_5=float(np.mean([one.overlap_5 for one in agreements])),
        overlap_10=float(np.mean([one.overlap_10 for one in agreements])),
        rbo=float(np.mean([one.rbo for one in agreements])),
        overhead_ms=_overhead(control.answers, variant.answers),
        tallies={metric: WinCount.of(column) for metric, column in differences.items()},
        segments=tuple(_segments(asked, control.answers, differences[MAIN])),
        differ_most=tuple(_differ_most(asked, control, variant, agreements, differences[MAIN])),
    )


def _overhead(control: Sequence[Answer], variant: Sequence[Answer]) -> tuple[float, float] | None:
    """Percentiles 50 and 95 of the variant's additional latency, query by query, in milliseconds."""
    if not control or not variant:
        return None
    # Paired by query: the percentiles of the differences, not the difference of the percentiles.
    more = [b.latency_ms - a.latency_ms for a, b in zip(control, variant, strict=True)]
    p50, p95 = np.percentile(more, (50, 95))
    return float(p50), float(p95)


def _segments(
    asked: Sequence[DatasetQuery], answers: Sequence[Answer], differences: Column
) -> Iterator[ContrastSegment]:
    """The queries by their folder, and by what the control's plan says of them; run files have no plan."""
    segmented = {
        "intent": [answer.intent for answer in answers],
        "complexity": [answer.complexity for answer in answers],
        "folder": [query.folder for query in asked],
    }
    for by, names in segmented.items():
        kinds = sorted({name for name in names if name})
        # a single kind would repeat the overall figures
        for name in kinds if len(kinds) > 1 else ():
            # chosen: (queries of this kind,) float64.
            chosen = differences[[place for place, other in enumerate(names) if other == name]]
            enough = len(chosen) >= LEAST_IN_SEGMENT
            interval = anytime_interval(chosen) if enough else None
            yield ContrastSegment(by, name, len(chosen), float(chosen.mean()), interval, WinCount.of(chosen))


def _differ_most(
    asked: Sequence[DatasetQuery],
    control: Side,
    variant: Side,
    agreements: Sequence[Agreement[str]],
    differences: Column,
) -> Iterator[DifferingQuery]:
    """The queries whose answers agree least; ties are sorted by the larger difference of nDCG@10."""
    places = [place for place, one in enumerate(agreements) if one.ordering_difference]
    # least overlap first, then the larger effect; the id makes the order deterministic
    places.sort(key=lambda place: (agreements[place].rbo, -abs(differences[place]), asked[place].id))
    for place in places[:SHOWN_QUERIES]:
        one = agreements[place]
        assert one.first_difference is not None
        yield DifferingQuery(
            query=asked[place].id,
            text=asked[place].text,
            control=tuple(key for key, _ in control.rankings[place][:SHOWN_ROWS]),
            variant=tuple(key for key, _ in variant.rankings[place][:SHOWN_ROWS]),
            rbo=one.rbo,
            first_difference=one.first_difference,
            delta=float(differences[place]),
            parted_at=_parted(control, variant, place),
        )


def _parted(control: Side, variant: Side, place: int) -> str:
    if not control.answers or not variant.answers:
        return ""
    old, new = control.answers[place].outcome, variant.answers[place].outcome
    return parted_at(old, new) if old is not None and new is not None else ""
