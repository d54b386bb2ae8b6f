"""What a saved or indexed document is to what was remembered before, in words (feature M6)."""

from __future__ import annotations

from speckit_memory.memory.indexing.prediction_error import Verdict


def told(verdict: Verdict) -> str:
    """The verdict with its evidence and what was done about it, in a line."""
    parts: list[str] = [verdict.kind]
    if verdict.key and verdict.similarity is not None:
        parts.append(f"{verdict.band} similarity {verdict.similarity:.2f} to {verdict.key}")
    if verdict.contradiction:
        found = verdict.contradiction
        parts.append(f"{found.pattern} {found.confidence:.2f} in '{found.sentence}'")
    return ", ".join(parts) + (f": {verdict.done}" if verdict.done and verdict.done != "nothing" else "")
