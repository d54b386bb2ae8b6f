"""Candidate tables for the tests of fusers."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from speckit_memory.pipeline.model.columns import NO_RANK, Candidates, Fused, Plan, Query
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.running.apply import apply_fusion

NOW = 1_000 * 86_400.0
DAY = 86_400.0


def query(intent: str = "understand", confidence: float = 0.0, **changes: Any) -> Query:
    return Query("q", now=NOW, plan=Plan(variants=("q",), intent=intent, intent_confidence=confidence), **changes)


def candidates(
    found: dict[str, dict[int, float]],
    scales: dict[str, Scale] | None = None,
    ages: dict[int, float] | None = None,
    rest: dict[str, float] | None = None,
    others: tuple[int, ...] = (),
) -> Candidates:
    """The table of searches, each named by its channel or `channel~variant` and mapping ids to raw scores.

    `rest` names the searches that told everything, with the score of what they left out; `others` are candidates that
    none of them returned.
    """
    ids = np.array(sorted({*others, *(i for hits in found.values() for i in hits)}), np.int64)
    raw = np.full((len(ids), len(found)), np.nan)
    rank = np.full(raw.shape, NO_RANK, np.int32)
    for column, hits in enumerate(found.values()):
        for id_, score in hits.items():
            raw[np.searchsorted(ids, id_), column] = score
            rank[np.searchsorted(ids, id_), column] = 1 + sum(other > score for other in hits.values())
    names = [name.partition("~") for name in found]
    return Candidates(
        ids=ids,
        parents=ids,
        passages=np.full(len(ids), -1, np.int64),
        channels=tuple(channel for channel, _, _ in names),
        variants=tuple(int(variant or 0) for _, _, variant in names),
        scales=tuple((scales or {}).get(channel, Scale.BM25) for channel, _, _ in names),
        rest=np.array([(rest or {}).get(name, np.nan) for name in found]),
        raw=raw,
        rank=rank,
        updated_at=np.array([NOW - (ages or {}).get(int(i), np.nan) * DAY for i in ids]),
    )


def parts(answer: Fused, table: Candidates) -> dict[int, dict[str, float]]:
    """Id to the addends that are not 0, rounded so that hand-worked figures compare."""
    return {
        int(id_): {n: round(float(v), 6) for n, v in zip(answer.names, row, strict=True) if round(float(v), 6)}
        for id_, row in zip(table.ids, answer.parts, strict=True)
    }


def scores(answer: Fused, table: Candidates, scale: Scale = Scale.Z_SCORE) -> dict[int, float]:
    """Id to score, best first, as the frame applies the answer."""
    pool = apply_fusion("fuse", scale, table, answer)
    return {int(i): round(float(s), 6) for i, s in zip(pool.ids, pool.score, strict=True)}


@st.composite
def tables(draw: st.DrawFn, variants: int = 2) -> Candidates:
    """Up to three channels and two variants with up to five candidates."""
    names = [
        name if variant == 0 else f"{name}~{variant}"
        for variant in range(draw(st.integers(1, variants)))
        for name in draw(st.lists(st.sampled_from(["vector", "bm25", "graph"]), unique=True, max_size=3))
    ]
    scored = st.dictionaries(st.integers(1, 5), st.floats(-1e6, 1e6, allow_subnormal=False), max_size=5)
    return candidates({name: draw(scored) for name in names})
