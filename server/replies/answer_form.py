"""How the memories of an answer are put: how long their passages are, how many, and how much is said of each."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.server.replies.envelope import Last

Why = Literal["full", "short", "none"]
"""What is said of why a memory surfaced: the channels with ranks and what moved it, the channels alone, or nothing."""


MOST_ROWS = 100
TOKENS_OF_A_ROW = 60
"""Fewer than any memory takes with its passage: an answer that is asked for one for every so many tokens is filled."""


def rows_of(budget: int | None, usual: int) -> int:
    """How many memories are looked for where the caller names no number: as many as its budget has room for, if it
    has named one, and at least the usual ones."""
    return max(usual, min((budget or 0) // TOKENS_OF_A_ROW, MOST_ROWS))


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """One form of an answer. What ships is what measured best by `eval tokens`
    (docs/decisions/0073-recall-per-token.md).

    Attributes:
        excerpt: Characters of a passage that are shown at most.
        rows: Memories of an answer, where the caller names no number; 0 for what `rows_of` says.
        why: What is said of why a memory surfaced, as long as all memories have room.
        last: What becomes of the first memory that has no room for its whole passage.
    """

    excerpt: int = 200
    rows: int = 0
    why: Why = "short"
    last: Last = "cut"

    @classmethod
    def parsed(cls, text: str) -> AnswerForm:
        """From "excerpt=200,why=short"; what is not named is as shipped. Raises E030 or E032."""
        given: dict[str, int | str] = {}
        names = [field.name for field in fields(cls)]
        for part in text.split(","):
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if name not in names or not equals:
                raise SpeckitError("E030", f"'{part}' is no part of a form; {nearest(name, names)}", actions=_ACTIONS)
            given[name] = _word(name, value) if name in _WORDS else _number(name, value)
        return cls(**given)  # type: ignore[arg-type]  # each value was read by the kind of its name

    def __str__(self) -> str:
        return ",".join(f"{field.name}={getattr(self, field.name)}" for field in fields(self))


SHIPPED_FORM = AnswerForm()

_ACTIONS = ("write a form as excerpt=200,rows=20,why=short",)
_WORDS = {"why": get_args(Why), "last": get_args(Last)}
_RANGES = {"excerpt": (20, 100_000), "rows": (0, MOST_ROWS)}


def _number(name: str, value: str) -> int:
    least, most = _RANGES[name]
    if not (value.isascii() and value.isdigit() and len(value) < 10 and least <= int(value) <= most):
        message = f"'{name}' of a form is '{value}'; accepted: {least} to {most:,}"
        raise SpeckitError("E032", message, actions=_ACTIONS)
    return int(value)


def _word(name: str, value: str) -> str:
    if value not in _WORDS[name]:
        message = f"'{name}' of a form is '{value}'; {nearest(value, _WORDS[name])}"
        raise SpeckitError("E030", message, actions=_ACTIONS)
    return value
