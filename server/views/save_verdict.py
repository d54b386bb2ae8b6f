"""Describes how a saved document relates to earlier memories (feature M6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speckit_memory.memory.intake.prediction_error import HIGH, Verdict

if TYPE_CHECKING:
    from speckit_memory.memory.indexing import SaveResult


def describe_verdict(verdict: Verdict) -> str:
    """The verdict, its evidence and the action taken, as one line."""
    parts: list[str] = [verdict.kind]
    if verdict.key and verdict.similarity is not None:
        parts.append(f"{verdict.band} similarity {verdict.similarity:.2f} to {verdict.key}")
    if verdict.contradiction:
        found = verdict.contradiction
        parts.append(f"{found.pattern} {found.confidence:.2f} in '{found.sentence}'")
    return ", ".join(parts) + (f": {verdict.done}" if verdict.done and verdict.done != "nothing" else "")


def question(saved: SaveResult, again: str) -> str:
    """Asks whether the memory replaces one that it resembles or contradicts; "" if there is none.

    `again` is the call that confirms it.
    """
    verdict = saved.verdict
    if verdict is None or verdict.id is None or verdict.similarity is None or saved.key == verdict.key:
        return ""
    if any(link.target == verdict.key for link in saved.links):
        return ""
    found = verdict.contradiction
    if found and found.counts:
        said = f"it seems to contradict {verdict.key}: '{found.sentence}'. "
    elif verdict.similarity >= HIGH:
        said = f"{verdict.key} says much the same. "
    else:
        return ""
    return f"{said}Does it replace {verdict.key}? Then save again with supersedes: {again}"


def link_lines(saved: SaveResult) -> list[str]:
    """The links requested with the save, one line each."""
    return [
        f"{saved.key} {link.relation} {link.target}, "
        + (f"kept in this store only: {link.only_stored}" if link.only_stored else "declared in its causalLinks")
        for link in saved.links
    ]
