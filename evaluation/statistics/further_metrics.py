"""The diagnostic metrics of a run, per query, in addition to the four compared ones (feature E2).

A query on which a metric is undefined has the value NaN and is left out of the mean: a store without new memories says
nothing about new memories, and 0 would mean that they are missed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from speckit_memory.evaluation.statistics.metrics import DEPTH, evaluate, without_pinned
from speckit_memory.memory.store.records import Tier
from speckit_memory.pipeline.ports import Column

FURTHER = (
    "MAP@20",
    "P@5",
    "inversion rate",
    "constitutional@5",
    "importance-weighted recall@20",
    "cold start@10",
    "intent-weighted nDCG@10",
    "quality proxy",
)
"""The names, in the order of every table."""

NEW_S = 48 * 3600.0
"""Age in seconds below which a memory is new: a cold start."""
TARGET_MS = 500.0
"""The latency from which on speed adds nothing to the quality proxy."""

IMPORTANCE = {Tier.CONSTITUTIONAL: 3.0, Tier.CRITICAL: 2.0, Tier.IMPORTANT: 1.5}
"""The weight of a relevant memory by its tier; 1 for all others."""

INTENT_GRADES = {
    "add_feature": (1.0, 2.0, 3.0),
    "understand": (1.0, 2.0, 3.0),
    "fix_bug": (0.5, 2.0, 4.0),
    "refactor": (1.0, 1.5, 2.5),
    "security_audit": (0.0, 2.0, 5.0),
    "find_spec": (1.5, 2.0, 3.0),
    "find_decision": (1.2, 2.0, 3.2),
}
"""The gain of the judgements 1, 2 and 3 for a query of this intent; values between are interpolated."""

_SHARES = (0.40, 0.25, 0.20, 0.15)
"""Weights in the quality proxy: relevance, first result, number of results, speed."""


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """The metadata of a memory. `created_at` is in epoch seconds, None where it is unknown."""

    tier: Tier = Tier.NORMAL
    created_at: float | None = None
    folder: str = ""


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """A query and its answer: document keys, best first. `intent` and `folder` as assigned by a person, or ""."""

    ranking: Sequence[str]
    judgements: Mapping[str, float]
    intent: str = ""
    folder: str = ""
    latency_ms: float = 0.0


def evaluate_further(asked: Sequence[AskedQuery], known: Mapping[str, MemoryFacts], *, now: float) -> dict[str, Column]:
    """Every further metric for every query: float64[n], NaN where it is undefined.

    `known` holds the memories of the store by key; `now` (epoch seconds) is the time of the queries. Except for
    constitutional@5, a constitutional memory that is not relevant to the query is ignored.

    - MAP@20, P@5: average precision and precision.
    - inversion rate [0, 1]: share of the pairs of results with different judgements in which the lesser one ranks
      higher.
    - constitutional@5: whether a constitutional memory is among the first five; NaN where the query may find none.
    - importance-weighted recall@20: recall with every relevant memory weighted by its tier, see `IMPORTANCE`.
    - cold start@10: share of the relevant memories younger than 48 h that are among the first ten.
    - intent-weighted nDCG@10: nDCG with the gains of `INTENT_GRADES`.
    - quality proxy [0, 1]: 0.40 of the gain of the first ten divided by the ideal gain, 0.25 of the same for the first
      result, 0.20 of the number of results divided by ten, 0.15 of the speed, which falls to 0 at 500 ms.
    """
    constitutional = {key: one.folder for key, one in known.items() if one.tier is Tier.CONSTITUTIONAL}
    ranked = [
        replace(query, ranking=without_pinned(query.ranking, constitutional, query.judgements)) for query in asked
    ]
    rows = [
        (
            _average_precision(query),
            sum(query.judgements.get(key, 0) > 0 for key in query.ranking[:5]) / 5,
            _inversions(query),
            _surfaced(whole, constitutional),
            _weighted_recall(query, known),
            _cold_start(query, known, now),
            _by_intent(query),
            _proxy(query),
        )
        for query, whole in zip(ranked, asked, strict=True)
    ]
    # without queries np.array gives shape (0,): the reshape keeps the columns
    table = np.array(rows, np.float64).reshape(len(rows), len(FURTHER))
    return {name: table[:, column] for column, name in enumerate(FURTHER)}


def _relevant(query: AskedQuery) -> list[str]:
    return [key for key, judgement in query.judgements.items() if judgement > 0]


def _average_precision(query: AskedQuery) -> float:
    # hits: (k,) float64, k <= DEPTH. The sum of the precision at each hit is divided by all relevant documents,
    # retrieved or not.
    hits = np.array([query.judgements.get(key, 0) > 0 for key in query.ranking[:DEPTH]], np.float64)
    precision = hits.cumsum() / np.arange(1, len(hits) + 1)
    return float((precision * hits).sum() / len(_relevant(query)))


def _inversions(query: AskedQuery) -> float:
    # gains: (k,); below: (k, k) gain of the upper result minus that of the lower one, for each pair
    gains = np.array([max(0.0, query.judgements.get(key, 0.0)) for key in query.ranking[:DEPTH]])
    below = np.triu(gains[:, None] - gains[None, :], 1)  # strictly upper triangle: each pair once
    ordered = np.count_nonzero(below)
    return float((below < 0).sum() / ordered) if ordered else float("nan")


def _surfaced(query: AskedQuery, constitutional: Mapping[str, str]) -> float:
    # with a slash at the end, so that `specs/a` does not contain `specs/ab`
    below = f"{query.folder}/"
    reachable = {key for key, folder in constitutional.items() if not query.folder or f"{folder}/".startswith(below)}
    return float(not reachable.isdisjoint(query.ranking[:5])) if reachable else float("nan")


def _weighted_recall(query: AskedQuery, known: Mapping[str, MemoryFacts]) -> float:
    found = set(query.ranking[:DEPTH])
    weights = {key: IMPORTANCE.get(known.get(key, MemoryFacts()).tier, 1.0) for key in _relevant(query)}
    return sum(weight for key, weight in weights.items() if key in found) / sum(weights.values())


def _cold_start(query: AskedQuery, known: Mapping[str, MemoryFacts], now: float) -> float:
    born = {key: known[key].created_at for key in _relevant(query) if key in known}
    # a memory whose time of creation is unknown counts as old
    new = {key for key, moment in born.items() if moment is not None and now - moment < NEW_S}
    return len(new.intersection(query.ranking[:10])) / len(new) if new else float("nan")


def _by_intent(query: AskedQuery) -> float:
    if query.intent not in INTENT_GRADES:
        return float("nan")
    # worth[i]: the gain of the judgement i, 0 to 3
    worth = (0.0, *INTENT_GRADES[query.intent])
    judged = {key: float(np.interp(judgement, range(4), worth)) for key, judgement in query.judgements.items()}
    if not any(judged.values()):
        return float("nan")
    return float(evaluate([query.ranking], [judged])["nDCG@10"][0])


def _proxy(query: AskedQuery) -> float:
    gains = [max(0.0, query.judgements.get(key, 0.0)) for key in query.ranking[:10]]
    # not discounted: the proxy reads the first ten as a set, and the first result by itself
    ideal = sorted(query.judgements.values(), reverse=True)[:10]
    parts = (
        sum(gains) / sum(max(0.0, judgement) for judgement in ideal),
        gains[0] / ideal[0] if gains else 0.0,
        len(gains) / 10,
        max(0.0, 1 - query.latency_ms / TARGET_MS),
    )
    return sum(share * part for share, part in zip(_SHARES, parts, strict=True))
