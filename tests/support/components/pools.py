"""What the frame makes of the answers of single components, checked on the way."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from answered import present

from speckit_memory.pipeline.model.columns import Pool, Query, total_order
from speckit_memory.pipeline.ports import Column
from speckit_memory.pipeline.roles.contracts import About, Reranker, Signal, SignalParams
from speckit_memory.pipeline.running.apply import apply_rerank, apply_signal
from speckit_memory.pipeline.testing import FakeStore


class Bounded(Signal, Protocol):
    """A signal with the bounds that the frame applies."""

    @property
    def _params(self) -> SignalParams: ...


class Described(Reranker, Protocol):
    """A reranker that says what it makes of the scale."""

    @property
    def about(self) -> About: ...


def evidence(signal: Signal, query: Query, pool: Pool, store: FakeStore) -> dict[int, float]:
    """What a signal answers, by id; checks that it fits the pool."""
    column = present(signal.evidence(query, pool, store))
    assert column.dtype == np.float64
    assert column.shape == (len(pool),)
    assert np.all(np.isfinite(column))
    return dict(zip(pool.ids.tolist(), column.tolist(), strict=True))


def applied(
    signal: Bounded, query: Query, pool: Pool, store: FakeStore, used: Column | None = None
) -> dict[int, float]:
    """The scores after the frame has applied a signal with its bounds."""
    column = present(signal.evidence(query, pool, store))
    before = np.zeros(len(pool)) if used is None else used
    after, _ = apply_signal("signal", signal.combine, signal._params, pool, column, before)
    return dict(zip(after.ids.tolist(), after.score.tolist(), strict=True))


def rerank(reranker: Described, query: Query, pool: Pool, store: FakeStore) -> Pool:
    """The pool as the frame makes it from a reranker's answer; checks the total order."""
    answer = present(reranker.rerank(query, pool, store))
    about = reranker.about
    scale = about.gives or (pool.scale.widened if about.widens else pool.scale)
    after = apply_rerank("step", scale, pool, answer)
    assert np.array_equal(total_order(after.score, after.ids), np.arange(len(after)))
    return after


def scores_of(pool: Pool) -> dict[int, float]:
    """Score by id, best first."""
    return dict(zip(pool.ids.tolist(), pool.score.tolist(), strict=True))
