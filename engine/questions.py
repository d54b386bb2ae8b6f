"""Checks what a caller asks before anything runs: every problem of the question at once."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any, get_args

from config.errors import Problem, SpeckitError, nearest
from memory.store.records import Tier
from pipeline.model import Mode

MAX_QUERY_CHARACTERS = 10_000
MAX_LIMIT = 100
CONCEPTS = (2, 5)
CONTEXT_TYPES = ("research", "implementation", "decision", "discovery", "general")


def check_question(
    text: str, *, limit: int, mode: str, tier: str, context_type: str, concepts: Sequence[str] = ()
) -> None:
    """Raises SpeckitError with everything that is wrong with a question (codes E030, E032, E042, E043)."""
    problems: list[Problem] = []
    if len(text) > MAX_QUERY_CHARACTERS:
        problems.append(Problem("E042", f"the query has {len(text):,} characters"))
    elif not concepts and not any(unicodedata.category(character)[0] in "LN" for character in text):
        problems.append(
            Problem("E043", "the query holds no letter and no digit" if text.strip() else "the query is empty")
        )
    if not 1 <= limit <= MAX_LIMIT:
        problems.append(Problem("E032", f"limit is {limit}; accepted: 1 to {MAX_LIMIT}"))
    if concepts and not CONCEPTS[0] <= len(concepts) <= CONCEPTS[1]:
        problems.append(Problem("E032", f"{len(concepts)} concepts; accepted: {CONCEPTS[0]} to {CONCEPTS[1]}"))
    accepted: tuple[tuple[str, str, tuple[Any, ...]], ...] = (
        ("mode", mode, get_args(Mode)),
        ("tier", tier, ("", *Tier)),
        ("context_type", context_type, ("", *CONTEXT_TYPES)),
    )
    for name, value, values in accepted:
        if value not in values:
            problems.append(Problem("E030", f"{name} is '{value}'; {nearest(value, [v for v in values if v])}"))
    if problems:
        raise SpeckitError.of(problems)


def normalised_folder(folder: str) -> str:
    """A folder as the store names it: POSIX separators, no leading or trailing slash, "" for everything."""
    return folder.replace("\\", "/").strip().strip("/").removeprefix("./")
