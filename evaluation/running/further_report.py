"""The further metrics of a pipeline and the channels that found its first results, as entries of a report (E2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from speckit_memory.engine.api.memory import Memory
from speckit_memory.evaluation.datasets.dataset import DatasetQuery
from speckit_memory.evaluation.measuring.measure import Answer
from speckit_memory.evaluation.statistics.further_metrics import FURTHER, AskedQuery, MemoryFacts, evaluate_further
from speckit_memory.evaluation.statistics.report import Table
from speckit_memory.pipeline.ports import Column

_DIGITS = 6
_HEADINGS = ("MAP@20", "P@5", "inverted", "const.@5", "weighted R@20", "new@10", "intent nDCG", "proxy")
"""Column headings of the table, in the order of `FURTHER`."""


@dataclass(frozen=True, slots=True)
class FurtherFigure:
    """The mean of a metric over the `n` queries on which it is defined, None where there is no such query."""

    mean: float | None
    n: int

    @classmethod
    def of(cls, values: Column) -> FurtherFigure:
        """The figure of these values; NaN marks queries on which the metric is undefined."""
        meant = values[~np.isnan(values)]
        return cls(round(float(meant.mean()), _DIGITS) if len(meant) else None, len(meant))


@dataclass(frozen=True, slots=True)
class FurtherFigures:
    """The further metrics of a pipeline, and the channels that found its results."""

    metrics: Mapping[str, FurtherFigure]
    attribution: ChannelAttribution
    ENTRIES: ClassVar = {"metrics": "further_metrics", "attribution": "channel_attribution"}


def further_figures(
    queries: Sequence[DatasetQuery],
    answers: Sequence[Answer],
    judgements: Sequence[Mapping[str, float]],
    known: Mapping[str, MemoryFacts],
    *,
    now: float,
) -> FurtherFigures:
    """The figures of one pipeline from its answers.

    Args:
        queries: The queries.
        answers: The answers, aligned with `queries`.
        judgements: Grades by document key, aligned with `queries`.
        known: The metadata of the memories by key.
        now: The time of the queries in epoch seconds.
    """
    asked = [
        AskedQuery(answer.keys, judged, query.intent, query.folder, answer.latency_ms)
        for query, answer, judged in zip(queries, answers, judgements, strict=True)
    ]
    values = evaluate_further(asked, known, now=now)
    return FurtherFigures(
        {metric: FurtherFigure.of(column) for metric, column in values.items()},
        attribution(answer.channels for answer in answers),
    )


def further_table(figures: Mapping[str, FurtherFigures]) -> Table:
    """The means by pipeline, "-" for a metric that is undefined here."""
    rows = [["pipeline", *_HEADINGS]]
    for name, further in figures.items():
        means = [further.metrics[metric].mean for metric in FURTHER]
        rows.append([name, *("-" if mean is None else f"{mean:.4f}" for mean in means)])
    return Table(rows)


def channel_lines(figures: Mapping[str, FurtherFigures]) -> list[str]:
    """The channels that found the first ten results, a line for each pipeline."""
    return [f"{name}: the first ten were found by {further.attribution}" for name, further in figures.items()]


def known_memories(memory: Memory) -> dict[str, MemoryFacts]:
    """The metadata of all memories in the store, by key."""
    records, _ = memory.list(limit=memory.inventory.stats().memories)
    return {record.key: MemoryFacts(record.tier, record.created_at, record.folder) for record in records}


_DEPTH = 10


@dataclass(frozen=True, slots=True)
class ChannelShare:
    """A channel's share of the first ten results of all queries, in [0, 1]: found at all, and found by it alone."""

    coverage: float
    exclusive: float


@dataclass(frozen=True, slots=True)
class ChannelAttribution:
    """The first ten results of all queries by channel.

    `single` were found by one channel, `multiple` by several, `unattributed` by none: a later step added them.
    """

    results: int
    single: int
    multiple: int
    unattributed: int
    channels: Mapping[str, ChannelShare]

    def __str__(self) -> str:
        """The channels on one line."""
        shares = [f"{name} {one.coverage:.0%} (alone {one.exclusive:.0%})" for name, one in self.channels.items()]
        return ", ".join(shares) or "no channel"


def attribution(answers: Iterable[Sequence[Sequence[str]]]) -> ChannelAttribution:
    """Attributes the first ten results of each answer; each result is given as the channels that found it.

    Channels are sorted by coverage, the highest first.
    """
    results = [tuple(channels) for answer in answers for channels in answer[:_DEPTH]]
    found = Counter(name for channels in results for name in channels)
    alone = Counter(channels[0] for channels in results if len(channels) == 1)
    shares = [(name, ChannelShare(n / len(results), alone[name] / len(results))) for name, n in found.items()]
    return ChannelAttribution(
        results=len(results),
        single=alone.total(),
        multiple=sum(len(channels) > 1 for channels in results),
        unattributed=results.count(()),
        channels=dict(sorted(shares, key=lambda one: (-one[1].coverage, one[0]))),
    )
