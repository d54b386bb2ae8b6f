"""What went wrong, in the form that every door of the product shows it.

A problem says what was found, where, what is accepted and what to do next. The command line prints it, the MCP server
returns it and `--json` serialises it, always from the same data (features T26, P7).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from speckit_memory.errors.codes import CODES
from speckit_memory.errors.echo import LISTED, abridged
from speckit_memory.errors.names import shown
from speckit_memory.errors.synonyms import accepted_synonym

LONGEST_TEXT = 2000
"""Characters of a message, a hint or a next step: all that is told of a problem is bounded, whatever it quotes."""
LONGEST_NAME = 100
"""Characters; a longer name is a misspelling of nothing, and comparing it would take long."""


def _told(text: str) -> str:
    return abridged(shown(text), LONGEST_TEXT)


@dataclass(frozen=True, slots=True, order=True)
class Where:
    """A place in a text file. `line` and `column` count from 1, as editors do.

    A value that no text holds has the `path` of keys that leads to it; `line` then counts the values in their order.
    """

    file: str
    line: int
    column: int
    path: str | None = field(default=None, compare=False)

    @property
    def beside(self) -> str:
        """The place as told to somebody who looks at the same source: "line 3", or the path of keys."""
        return f"line {self.line}" if self.path is None else _told(self.path) or "the top"

    def __str__(self) -> str:
        if self.path is None:
            return f"{_told(self.file)}:{self.line}:{self.column}"
        return f"{_told(self.file)}: {_told(self.path)}" if self.path else _told(self.file)

    def as_json(self) -> dict[str, Any]:
        """The file with line and column, or with the path of keys."""
        if self.path is None:
            return {"file": _told(self.file), "line": self.line, "column": self.column}
        return {"file": _told(self.file), "path": _told(self.path)}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    `code` is a key of `errors.codes.CODES`; `hint`, `actions` and `retryable` fall back to that table's entry. Texts
    are bounded, and names in them that are no text are spelled out: a problem can always be sent.
    """

    code: str
    message: str
    hint: str = ""
    actions: tuple[str, ...] = ()
    where: Where | None = None
    retryable: bool | None = None

    def __post_init__(self) -> None:
        known = CODES[self.code]
        object.__setattr__(self, "message", _told(self.message))
        object.__setattr__(self, "hint", _told(self.hint) or known.hint)
        object.__setattr__(self, "actions", tuple(map(_told, self.actions[:LISTED])) or known.actions)
        if self.retryable is None:
            object.__setattr__(self, "retryable", known.retryable)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.code} {self.message}"

    def as_json(self) -> dict[str, Any]:
        """The error object of the outer contract; `where` only when there is a place."""
        document: dict[str, Any] = {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "actions": list(self.actions),
            "severity": CODES[self.code].severity,
            "retryable": self.retryable,
        }
        if self.where is not None:
            document["where"] = self.where.as_json()
        return document


def closest(name: str, accepted: Iterable[str]) -> str:
    """The accepted name that another one most likely means, a synonym or a misspelling; "" when none is close.

    Two neighbouring letters in the wrong order make the likeliest slip, which tells little names apart ("rfr").
    """
    names = sorted(accepted)
    if len(name) > LONGEST_NAME:
        return ""
    swapped = (known for known in names if _swapped(name, known))
    return (
        next(swapped, "")
        or accepted_synonym(name, names)
        or next(iter(get_close_matches(name, names, n=1, cutoff=0.6)), "")
    )


def _swapped(name: str, known: str) -> bool:
    differing = [place for place, (one, other) in enumerate(zip(name, known, strict=False)) if one != other]
    if len(name) != len(known) or len(differing) != 2:
        return False
    first, second = differing
    return second == first + 1 and name[first] + name[second] == known[second] + known[first]


def nearest(name: str, accepted: Iterable[str]) -> str:
    """A phrase that offers the closest accepted name, or all of them when none is close."""
    names = sorted(accepted)
    close = closest(name, names)
    if close:
        return f"did you mean '{close}'?"
    return f"accepted: {', '.join(names)}" if names else "nothing is accepted here"
