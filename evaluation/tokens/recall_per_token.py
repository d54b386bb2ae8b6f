"""How much relevant content reaches an agent per token: figures of the answers sent.

An answer is measured as its reader gets it: the memories whose text it contains, that text, and the tokens of the
whole. Memories that were found but did not fit do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from speckit_memory.evaluation.datasets.dataset import DatasetQuery
from speckit_memory.pipeline.ports import Column

COMPARED = ("recall", "words")
"""The figures that are compared, at every budget. Each further one would reduce the statistical power on all others."""
FIGURES = (*COMPARED, "gain", "gain per 1,000 tokens", "useful", "nothing", "memories", "tokens")
"""The figures in the order of every table; `figures_of` defines them."""


@dataclass(frozen=True, slots=True)
class SentAnswer:
    """The content of one answer: keys and texts of memories, best first, and the tokens of the whole answer."""

    texts: tuple[tuple[str, str], ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Answerer:
    """One way of answering: `answer` takes a query and a budget in tokens. A `peer` is a simpler system for
    comparison."""

    name: str
    answer: Callable[[DatasetQuery, int], SentAnswer]
    peer: bool = False


Terms = Callable[[str], frozenset[str]]
"""The words of a text that distinguish it from others."""
Count = Callable[[Sequence[str]], list[int]]
"""The number of tokens of each text."""


def figures_of(
    sent: SentAnswer,
    query: DatasetQuery,
    judged: Mapping[str, float],
    held: Mapping[str, frozenset[str]],
    terms: Terms,
    count: Count,
) -> dict[str, float]:
    """The figures of one answer.

    `recall`: share of the relevant memories of which a text was sent. `words`: share of the query's words held by a
    relevant memory that occur in its text as sent, averaged over all relevant memories; a memory that holds none of
    them counts as in `recall`. `gain`: nDCG with linear gain over all sent memories. `useful`: tokens of texts of
    relevant memories divided by tokens of the answer. `nothing`: 1 where no relevant memory was sent. `memories` and
    `tokens`: the size of the answer.

    Args:
        sent: The answer.
        query: The query.
        judged: Grades by key, at least one above 0.
        held: The words of each judged memory.
        terms: Extracts the words of a text.
        count: Counts the tokens of texts.
    """
    texts = dict(sent.texts)
    relevant = [key for key, grade in judged.items() if grade > 0]
    reached = [key for key in relevant if key in texts]
    asked = terms(query.text)
    shares = []
    for key in relevant:
        wanted = asked & held.get(key, frozenset())
        shown = terms(texts[key]) if key in texts else frozenset()
        shares.append(len(wanted & shown) / len(wanted) if wanted else float(key in texts))
    gain = _discounted([max(judged.get(key, 0.0), 0.0) for key, _ in sent.texts])
    # ideal gain over all relevant memories, however many were sent
    gain /= _discounted(sorted((judged[key] for key in relevant), reverse=True))
    return {
        "recall": len(reached) / len(relevant),
        "words": sum(shares) / len(shares),
        "gain": gain,
        "gain per 1,000 tokens": 1000 * gain / max(sent.tokens, 1),
        "useful": sum(count([texts[key] for key in reached])) / max(sent.tokens, 1) if reached else 0.0,
        "nothing": float(not reached),
        "memories": float(len(texts)),
        "tokens": float(sent.tokens),
    }


def at(figure: str, budget: int) -> str:
    """The name of a figure at a budget."""
    return f"{figure}@{budget}"


def columns(rows: Sequence[Mapping[str, float]]) -> dict[str, Column]:
    """One column over the queries for every figure."""
    return {name: np.array([row[name] for row in rows], np.float64) for name in rows[0]}


def _discounted(gains: Sequence[float]) -> float:
    return float(sum(gain / np.log2(rank + 1) for rank, gain in enumerate(gains, start=1)))
