"""Checks the evaluation database for the health report."""

from __future__ import annotations

from dataclasses import dataclass

from speckit_memory.engine.recording.recorder import Recorder
from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import plural
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase

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


@dataclass(frozen=True, slots=True)
class RecordingHealth:
    """The state of recording: whether it works, its contents and place, and what to do if it does not work."""

    ok: bool
    detail: str
    hint: str = ""


def notes(recorder: Recorder) -> RecordingHealth:
    """The state of recording. An unusable evaluation database does not affect searches."""
    recorder.write(at_once=True)
    wanted = recorder.wanted
    texts = "with their texts" if wanted.texts else "without texts"
    told = {
        "all": f"served queries are recorded {texts}",
        "shadows": f"queries that other pipelines answer too are recorded {texts}",
        "off": "nothing is recorded (off)",
    }[wanted.record]
    if recorder.only_read:
        return RecordingHealth(True, "nothing is recorded, as the store is read-only")
    if not (recorder.path.exists() or recorder.problem):
        return RecordingHealth(True, f"{told}; there is no {recorder.path} yet" if recorder.on else told)
    try:
        if recorder.problem:
            raise recorder.problem
        with EvaluationDatabase.open(recorder.path, create=False) as database:
            counts, for_good = database.counts(), database.kept_bytes() / _MB
    except SpeckitError as error:
        problem = error.problems[0]
        if problem.code == "E022":
            return RecordingHealth(True, f"{told} when {recorder.path} is free again: {problem}")
        hint = f"Searches are answered, but not recorded. To record them: {'; or '.join(problem.actions)}."
        return RecordingHealth(recorder.problem is None and not recorder.on, str(problem), hint)
    size = recorder.path.stat().st_size / _MB
    kept = ", ".join(
        (plural(counts[name], noun) if noun else f"{counts[name]:,} ") + rest
        for name, (noun, rest) in _SAID.items()
        if counts[name] or name == "queries"
    )
    room = f"{size:.1f} MB"
    if for_good >= 0.1:
        room += f", of which {for_good:.1f} MB of comparisons and judgements are kept permanently, beyond max_mb"
    return RecordingHealth(True, f"{told} in {recorder.path} ({room}): {kept}")
