"""How much of what is relevant reaches an agent, by what it costs: figures of answers as they are sent.

An answer is read as its reader gets it: the memories whose text stands in it, that text, and the tokens of the whole.
What was found and had no room has not reached anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from speckit_memory.evaluation.datasets.dataset import DatasetQuery
from speckit_memory.pipeline.ports import Column

COMPARED = ("recall", "words")
"""The figures that are compared, at every budget. Every further one would cost all others power."""
FIGURES = (*COMPARED, "gain", "gain per 1,000 tokens", "useful", "nothing", "memories", "tokens")
"""In the order of every table; `figures_of` says what each is."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What one answer brought: the keys and texts of memories, best first, and the tokens of the whole answer."""

    texts: tuple[tuple[str, str], ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Answerer:
    """One way of answering: `answer` is given a query and a budget in tokens. A `peer` is measured beside our own."""

    name: str
    answer: Callable[[DatasetQuery, int], Sent]
    peer: bool = False


Terms = Callable[[str], frozenset[str]]
"""The words of a text, as far as they tell one text from another."""
Count = Callable[[Sequence[str]], list[int]]
"""How many tokens each text has."""


def figures_of(
    sent: Sent,
    query: DatasetQuery,
    judged: Mapping[str, float],
    held: Mapping[str, frozenset[str]],
    terms: Terms,
    count: Count,
) -> dict[str, float]:
    """The figures of one answer.

    `recall`: share of the relevant memories of which a text was sent. `words`: of the query's words that a relevant
    memory holds (`held`, by key), the share that stands in its text as sent, over all relevant memories; a memory that
    holds none of them counts as `recall` does. `gain`: nDCG with linear gain, over all that was sent. `useful`: tokens
    of texts of relevant memories by tokens of the answer. `nothing`: 1 where no relevant memory was sent. `memories`
    and `tokens` of the answer.
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
    """A column over the queries for every figure."""
    return {name: np.array([row[name] for row in rows], np.float64) for name in rows[0]}


def _discounted(gains: Sequence[float]) -> float:
    return float(sum(gain / np.log2(rank + 1) for rank, gain in enumerate(gains, start=1)))
