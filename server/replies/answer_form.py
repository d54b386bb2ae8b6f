"""The form of an answer: length of passages, number of rows, and detail per row."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

from speckit_memory.errors import SpeckitError, nearest

Last = Literal["cut", "drop"]
Why = Literal["full", "short", "none"]
"""How much is said on why a memory matched: channels with ranks and adjustments, channels only, or nothing."""


MOST_ROWS = 100
TOKENS_OF_A_ROW = 60
"""Lower bound on the tokens of a row: `budget // TOKENS_OF_A_ROW` rows always fill the budget."""


def rows_of(budget: int | None, usual: int) -> int:
    """The number of memories to search for if the caller gives none: as many as fit its budget, but at least
    `usual`."""
    return max(usual, min((budget or 0) // TOKENS_OF_A_ROW, MOST_ROWS))


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The form of an answer. The defaults measured best in `eval tokens` (docs/decisions/0073-recall-per-token.md).

    Attributes:
        excerpt: Maximum length of a passage in characters.
        rows: Memories per answer if the caller gives no number; 0 for `rows_of`.
        why: Detail on why a memory matched, if all memories fit.
        last: Whether the first memory whose passage does not fit is cut or dropped.
    """

    excerpt: int = 200
    rows: int = 0
    why: Why = "short"
    last: Last = "cut"

    @classmethod
    def parsed(cls, text: str) -> AnswerForm:
        """Parses a form such as "excerpt=200,why=short"; the rest keeps its default. Raises E030 or E032."""
        given: dict[str, int | str] = {}
        names = [field.name for field in fields(cls)]
        for part in text.split(","):
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if name not in names or not equals:
                raise SpeckitError("E030", f"'{part}' is not part of a form; {nearest(name, names)}", actions=_ACTIONS)
            given[name] = _word(name, value) if name in _WORDS else _number(name, value)
        # values have been checked against the ranges and words below
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
