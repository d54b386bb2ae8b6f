"""Problems: the data of an error as every interface of the product shows it.

A problem states the finding, its place, the accepted values and the next step. The command line prints it, the MCP
server returns it and `--json` serialises it, always from the same data (features T26, P7).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from speckit_memory.errors.codes import CODES
from speckit_memory.errors.echo import LISTED, abridge
from speckit_memory.errors.names import displayable_name
from speckit_memory.errors.synonyms import accepted_synonym

LONGEST_TEXT = 2000
"""Maximum characters of a message, a hint or a next step, including quotations."""
LONGEST_NAME = 100
"""Maximum characters of a name to be compared; comparing a longer one would take long and suggest nothing."""


def _display(text: str) -> str:
    return abridge(displayable_name(text), LONGEST_TEXT)


@dataclass(frozen=True, slots=True, order=True)
class Where:
    """A place in a text file. `line` and `column` count from 1, as editors do.

    A value that is not in a text has the `path` of its keys; `line` then numbers the values in order.
    """

    file: str
    line: int
    column: int
    path: str | None = field(default=None, compare=False)

    @property
    def beside(self) -> str:
        """The place for a reader who sees the same source: "line 3", or the path of keys."""
        return f"line {self.line}" if self.path is None else _display(self.path) or "the top"

    def __str__(self) -> str:
        if self.path is None:
            return f"{_display(self.file)}:{self.line}:{self.column}"
        return f"{_display(self.file)}: {_display(self.path)}" if self.path else _display(self.file)

    def as_json(self) -> dict[str, Any]:
        """The file with line and column, or with the path of keys."""
        if self.path is None:
            return {"file": _display(self.file), "line": self.line, "column": self.column}
        return {"file": _display(self.file), "path": _display(self.path)}


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem.

    `code` is a key of `errors.codes.CODES`; `hint`, `actions` and `retryable` default to that table's entry. Texts are
    bounded, and undecodable names in them are escaped, so that a problem can always be sent.
    """

    code: str
    message: str
    hint: str = ""
    actions: tuple[str, ...] = ()
    where: Where | None = None
    retryable: bool | None = None

    def __post_init__(self) -> None:
        known = CODES[self.code]
        # The dataclass is frozen: normalise its fields by the base method.
        object.__setattr__(self, "message", _display(self.message))
        object.__setattr__(self, "hint", _display(self.hint) or known.hint)
        object.__setattr__(self, "actions", tuple(map(_display, self.actions[:LISTED])) or known.actions)
        if self.retryable is None:
            object.__setattr__(self, "retryable", known.retryable)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.code} {self.message}"

    def as_json(self) -> dict[str, Any]:
        """The error object of the outer contract; `where` is included only if there is a place."""
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
    """The accepted name most likely intended by another one, a synonym or a misspelling; "" if none is close.

    Two swapped neighbouring letters are the likeliest slip, which tells short names apart ("rfr").
    """
    names = sorted(accepted)
    # difflib takes quadratic time.
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
    """A phrase with the closest accepted name, or with all of them if none is close."""
    names = sorted(accepted)
    close = closest(name, names)
    if close:
        return f"did you mean '{close}'?"
    return f"accepted: {', '.join(names)}" if names else "nothing is accepted here"


def refused(name: str, value: str, accepted: str | Iterable[str], *actions: str) -> Problem:
    """The E030 for a text that is not accepted.

    Args:
        name: The name of the value.
        value: The value.
        accepted: What is accepted, or the accepted names, of which the closest is offered.
        actions: Next steps; default: those of the code.
    """
    said = f"accepted: {accepted}" if isinstance(accepted, str) else nearest(value, accepted)
    return Problem("E030", CODES["E030"].template.format(name=name, value=f"'{value}'", accepted=said), actions=actions)


def wrong_type(name: str, value: object, accepted: str) -> Problem:
    """The E030 for a value of the wrong type, such as one that must be "a text"; the message names its type."""
    shown = f"{abridge(repr(value), 60)} ({type(value).__name__})"
    accepted = f"accepted: {accepted}"
    return Problem("E030", CODES["E030"].template.format(name=name, value=shown, accepted=accepted))


def out_of_range(name: str, value: object, accepted: str) -> Problem:
    """The E032 for a number outside its range, such as "1 to 100"."""
    return Problem("E032", CODES["E032"].template.format(name=name, value=value, accepted=accepted))
