"""The outcome of saving a document, or of a dry run, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.memory.indexing import SaveResult


def saved_data(saved: SaveResult) -> dict[str, Any]:
    """The outcome as the fields that the command line and MCP share."""
    verdict, intake = saved.verdict, saved.intake
    return {
        "id": saved.id,
        "key": saved.key,
        "outcome": saved.outcome,
        "tokens": saved.tokens,
        "passages": saved.chunks,
        "embedding_pending": saved.pending,
        "duplicates": list(saved.duplicates),
        "verdict": verdict.as_json() if verdict else None,
        "quality": intake.quality.as_json() if intake.quality else None,
        "memory_type": intake.memory_type._asdict(),
        "redacted": intake.redacted(),
        "recalled": len(intake.recalled),
        "links": [link._asdict() for link in saved.links],
        "problems": [problem.as_json() for problem in saved.problems],
    }
