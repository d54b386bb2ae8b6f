"""Retrieval metrics of one run: nDCG@10, MRR@5, Recall@20 and Hit@1, per query (feature E2).

All four read a ranking against graded judgements. A document is relevant when its judgement is above 0; unjudged
documents and judgements of 0 or less gain nothing. The values equal those of trec_eval (nDCG with linear gain) for the
same order of documents.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from speckit_memory.pipeline.ports import Column

DEPTH = 20
"""Number of results of a ranking that the metrics read."""

METRICS = ("nDCG@10", "MRR@5", "Recall@20", "Hit@1")
"""The reported metrics, in the order of every table."""


def relevant(judgements: Mapping[Any, float]) -> int:
    """Counts the relevant documents of a query. With 0 no metric is defined."""
    return sum(judgement > 0 for judgement in judgements.values())


def without_pinned(ranking: Iterable[str], pinned: Container[str], judgements: Mapping[str, float]) -> list[str]:
    """A ranking without the documents that surface for every query, unless they are relevant to this one.

    A relevant document below rules that always come first is not the fault of the ranking.
    """
    return [key for key in ranking if key not in pinned or judgements.get(key, 0.0) > 0]


def evaluate(rankings: Sequence[Sequence[Hashable]], judgements: Sequence[Mapping[Any, float]]) -> dict[str, Column]:
    """Every metric for every query: float64[n] in [0, 1], aligned with `rankings`.

    `rankings` holds document keys or ids, best first, without repeats; `judgements` the grades of the same queries by
    these. Raises ValueError for a query without a relevant document: its metrics are undefined, and 0 would not
    distinguish "found nothing" from "there was nothing to find".
    """
    total = np.array([relevant(judged) for judged in judgements], np.float64)
    if not np.all(total):
        raise ValueError(f"{np.count_nonzero(total == 0)} queries have no relevant document")
    read = zip(rankings, judgements, strict=True)
    # gained, ideal: (n, DEPTH) float64, grades in ranked and in ideal order
    gained = _columns([[judged.get(key, 0.0) for key in ranking[:DEPTH]] for ranking, judged in read])
    ideal = _columns([sorted(judged.values(), reverse=True) for judged in judgements])
    hit = gained > 0
    return {
        "nDCG@10": _discounted(gained[:, :10]) / _discounted(ideal[:, :10]),
        # argmax finds the first hit
        "MRR@5": np.where(hit[:, :5].any(axis=1), 1.0 / (1 + hit[:, :5].argmax(axis=1)), 0.0),
        # all DEPTH columns, hence @20
        "Recall@20": hit.sum(axis=1) / total,
        "Hit@1": hit[:, 0].astype(np.float64),
    }


def _columns(rows: Sequence[Sequence[float]]) -> Column:
    """float64[n, DEPTH]: each row cut or padded with 0; negative values count as 0."""
    table = np.zeros((len(rows), DEPTH))
    for line, row in zip(table, rows, strict=True):
        line[: len(row)] = row[:DEPTH]
    return np.maximum(table, 0.0)


def _discounted(gains: Column) -> Column:
    """Discounted cumulative gain of each row: the sum of gain / log2(rank + 1) (Järvelin and Kekäläinen 2002)."""
    discounts: Column = np.log2(np.arange(2, gains.shape[1] + 2))
    total: Column = (gains / discounts).sum(axis=1)
    return total
