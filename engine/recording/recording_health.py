"""Reports on recorded searches for health: the state of the evaluation database, and times against budgets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from speckit_memory.engine.recording.recorder import Recorder
from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import plural
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_label, open_if_there
from speckit_memory.pipeline.roles.composition import Pipeline

_MB = 1_000_000
_SAID = {
    "queries": ("query", ""),
    "pairs": ("answer", " of other pipelines"),
    "uses": ("use", ""),
    "scorings": ("", "scored in detail"),
    "evaluations": ("stored comparison", ""),
    "pruned": ("", "deleted for age or size"),
    "dropped": ("", "not recorded"),
}
"""By count: its noun, if any, and what follows."""


def notes(recorder: Recorder) -> tuple[bool, str, str]:
    """Whether recording works, its contents and place, and what to do if it does not.

    An unusable evaluation database does not affect searches.
    """
    recorder.write(at_once=True)
    wanted = recorder.wanted
    texts = "with their texts" if wanted.texts else "without texts"
    told = {
        "all": f"served queries are recorded {texts}",
        "shadows": f"queries that other pipelines answer too are recorded {texts}",
        "off": "nothing is recorded (off)",
    }[wanted.record]
    if recorder.only_read:
        return True, "nothing is recorded, as the store is read-only", ""
    place = evaluation_label(recorder.path)
    try:
        if recorder.problem:
            raise recorder.problem
        with EvaluationDatabase.open(recorder.path, create=False) as database:
            counts, size, for_good = database.counts(), database.used_bytes() / _MB, database.kept_bytes() / _MB
    except SpeckitError as error:
        problem = error.problems[0]
        if problem.code == "E010" and not recorder.problem:
            return True, f"{told}; there is nothing in {place} yet" if recorder.on else told, ""
        if problem.code == "E022":
            return True, f"{told} when {place} is free again: {problem}", ""
        hint = f"Searches are answered, but not recorded. To record them: {'; or '.join(problem.actions)}."
        return recorder.problem is None and not recorder.on, str(problem), hint
    kept = ", ".join(
        (plural(counts[name], noun) if noun else f"{counts[name]:,} ") + rest
        for name, (noun, rest) in _SAID.items()
        if counts[name] or name == "queries"
    )
    room = f"{size:.1f} MB"
    if for_good >= 0.1:
        room += f", of which {for_good:.1f} MB of comparisons and judgements are kept permanently, beyond max_mb"
    return True, f"{told} in {place} ({room}): {kept}", ""


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
    try:
        if (found := open_if_there(recorder.path)) is not None:
            with found as database:
                times = {one: database.served_times(pipeline.hash, one, LATEST) for one in COMPLEXITIES}
    except SpeckitError:
        return "not known, as the records of searches cannot be read", ""  # the check of that database says why
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
