"""The scores of a pool, computed once more."""

from __future__ import annotations

from speckit_memory.pipeline.apply import recombine
from speckit_memory.pipeline.model import Pool
from speckit_memory.pipeline.ports import Column


def replay(pool: Pool) -> Column:
    """All final scores, computed again from the parts that explain shows."""
    score: Column | None = None
    for step in pool.steps:
        score = recombine(step, score)
    assert score is not None  # a pool has at least the fuser's step
    return score
