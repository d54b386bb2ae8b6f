"""The changes of a question that a caller can make through its interface (feature P8)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallerCapabilities:
    """What callers of an interface can change in a question.

    `modes` are the modes they can request. With `parameter_is_enough`, report only parameter changes if raising the
    limit or dropping an option suffices.
    """

    modes: tuple[str, ...] = ("quick", "focused", "deep", "auto")
    parameter_is_enough: bool = False


ANY_DOOR = CallerCapabilities()
"""The command line and Python."""
