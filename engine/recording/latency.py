"""Compares the times of recorded searches with the latency budgets of the pipeline (feature P10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from speckit_memory.engine.recording.recorder import Recorder
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.pipeline.roles.composition import Pipeline

LATEST = 1_000
"""Number of the latest searches of each complexity that are considered."""
ENOUGH = 20
"""Minimum number of searches: with fewer, the 95th percentile is one of the two slowest by chance."""
COMPLEXITIES = ("simple", "moderate", "complex")
OVER = (
    "Searches take longer than the pipeline's `budgets_ms`. `speckit-memory search QUERY --explain` shows the time of "
    "each step, `eval run --own --pipeline default --pipeline bm25` what a lighter pipeline would lose; "
    "docs/large-stores.md is about large stores."
)


class Percentile(NamedTuple):
    """The 95th percentile of `n` search times of a complexity, in milliseconds, and its budget."""

    complexity: str
    ms: float
    budget_ms: float
    n: int

    @classmethod
    def of(cls, complexity: str, times: Sequence[float], budget_ms: float) -> Percentile:
        """Computes the percentile of these times."""
        # Linear interpolation between order statistics, the default of numpy.
        return cls(complexity, float(np.percentile(np.asarray(times), 95)), budget_ms, len(times))

    @property
    def over(self) -> bool:
        """Whether it exceeds the budget."""
        return self.ms > self.budget_ms

    def __str__(self) -> str:
        verdict = "over" if self.over else "under"
        return f"{self.complexity} {self.ms:.1f} ms, {verdict} {self.budget_ms:g} ({self.n:,} searches)"


def told_latency(recorder: Recorder, pipeline: Pipeline) -> tuple[str, str]:
    """The percentiles of a pipeline's recorded searches, and a hint if one exceeds its budget."""
    recorder.write()
    times: dict[str, list[float]] = {}
    if recorder.path.exists():
        try:
            with EvaluationDatabase.open(recorder.path, create=False) as database:
                times = {one: database.served_times(pipeline.hash, one, LATEST) for one in COMPLEXITIES}
        except SpeckitError:
            return "not known, as the records of searches cannot be read", ""  # the check of that file says why
    enough = [
        Percentile.of(complexity, noted, pipeline.budgets_ms[complexity])
        for complexity, noted in times.items()
        if len(noted) >= ENOUGH
    ]
    if not enough:
        return f"not known: fewer than {ENOUGH} searches of any complexity are recorded for this pipeline", ""
    # Stable: those over their budget first, otherwise by complexity.
    enough.sort(key=lambda one: not one.over)
    return f"p95 by complexity: {'; '.join(map(str, enough))}", OVER if any(one.over for one in enough) else ""
