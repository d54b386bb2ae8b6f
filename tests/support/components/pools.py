"""Pools and sealed rankings for tests of single components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from components.fake_store import DAY, FakeStore, words

from speckit_memory.pipeline.apply import fused, reranked, signalled
from speckit_memory.pipeline.model import NO_RANK, Candidates, Fused, Plan, Pool, Query, total_order
from speckit_memory.pipeline.ports import Column, Unavailable
from speckit_memory.pipeline.ranking import Ranking
from speckit_memory.pipeline.scales import Scale
from speckit_memory.pipeline.sealing import seal

NOW = 1000 * DAY


def ask(text: str = "", **changes: object) -> Query:
    """A query at the time `NOW`; keys of the plan are given with a leading `plan_`."""
    plan = {key.removeprefix("plan_"): value for key, value in changes.items() if key.startswith("plan_")}
    rest = {key: value for key, value in changes.items() if not key.startswith("plan_")}
    return Query(text=text, now=NOW, terms=words(text), plan=Plan(variants=(text,), **plan), **rest)


def pool_of(
    store: FakeStore,
    scores: Mapping[int, float],
    *,
    scale: Scale = Scale.UNIT,
    found: Mapping[str, Sequence[int]] | None = None,
    raw: Mapping[str, Mapping[int, float]] | None = None,
) -> Pool:
    """A fused pool. `found` names the channels and the ids that each returned, best first; `raw` their scores."""
    found = found if found is not None else {"vector": sorted(scores, key=lambda i: -scores[i])}
    ids = np.array(sorted(scores), np.int64)
    rank = np.full((len(ids), len(found)), NO_RANK, np.int32)
    values = np.full(rank.shape, np.nan)
    for column, (channel, hits) in enumerate(found.items()):
        for place, hit in enumerate(hits, start=1):
            row = int(np.searchsorted(ids, hit))
            rank[row, column] = place
            values[row, column] = raw[channel][hit] if raw else 1.0 / place
    candidates = Candidates(
        ids=ids,
        parents=store.attributes.parents(ids),
        passages=np.array(
            [i if int(i) in store.memories[store.parent[int(i)]].chunk_ids else -1 for i in ids], np.int64
        ),
        updated_at=store.attributes.number("updated_at", ids),
        channels=tuple(found),
        variants=(0,) * len(found),
        scales=(scale,) * len(found),
        rest=np.full(len(found), np.nan),
        raw=values,
        rank=rank,
    )
    column = np.array([scores[int(i)] for i in ids], np.float64)
    return fused("fuse", scale, candidates, Fused(("fuse",), column[:, None]))


def ranking_of(store: FakeStore, scores: Mapping[int, float], **options: object) -> Ranking:
    """The sealed ranking of a pool."""
    return seal(pool_of(store, scores, **options))


def evidence(signal: object, query: Query, pool: Pool, store: FakeStore) -> dict[int, float]:
    """What a signal answers, by id; checks that it fits the pool."""
    column = signal.evidence(query, pool, store)
    assert not isinstance(column, Unavailable), column.reason
    assert column.dtype == np.float64
    assert column.shape == (len(pool),)
    assert np.all(np.isfinite(column))
    return dict(zip(pool.ids.tolist(), column.tolist(), strict=True))


def applied(signal: object, query: Query, pool: Pool, store: FakeStore, used: Column | None = None) -> dict[int, float]:
    """The scores after the frame has applied a signal with its bounds."""
    column = signal.evidence(query, pool, store)
    before = np.zeros(len(pool)) if used is None else used
    after, _ = signalled("signal", signal.combine, signal._params, pool, column, before)
    return dict(zip(after.ids.tolist(), after.score.tolist(), strict=True))


def rerank(reranker: object, query: Query, pool: Pool, store: FakeStore) -> Pool:
    """The pool as the frame makes it from a reranker's answer; checks the total order."""
    answer = reranker.rerank(query, pool, store)
    assert not isinstance(answer, Unavailable), answer.reason
    about = reranker.about
    scale = about.gives or (pool.scale.widened if about.widens else pool.scale)
    after = reranked("step", scale, pool, answer)
    assert np.array_equal(total_order(after.score, after.ids), np.arange(len(after)))
    return after


def scores_of(pool: Pool) -> dict[int, float]:
    """Score by id, best first."""
    return dict(zip(pool.ids.tolist(), pool.score.tolist(), strict=True))


__all__ = ["DAY", "NOW", "applied", "ask", "evidence", "pool_of", "ranking_of", "rerank", "scores_of"]
