"""What those who come through one door can change of what they ask (feature P8)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Door:
    """What callers of a door can change of a question.

    `modes` are those they can ask for; with `parameter_is_enough` they want to know of nothing else where a higher
    limit does it, or a wish of theirs less.
    """

    modes: tuple[str, ...] = ("quick", "focused", "deep", "auto")
    parameter_is_enough: bool = False


ANY_DOOR = Door()
"""That of the command line and of Python."""
