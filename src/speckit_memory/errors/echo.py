"""What came from outside, fit for a message: never longer than a reader can use, however long it was (feature T26)."""

from __future__ import annotations

from collections.abc import Sequence

LONGEST = 200
"""Characters of a name or value in a message."""
LISTED = 20
"""How many problems of one kind are told one by one; of the others only their number is told."""


def abridged(text: str, most: int = LONGEST) -> str:
    """The text, or its beginning and end around how much was left out, `most` characters in all and a few more."""
    if len(text) <= most:
        return text
    end = most // 4
    return f"{text[: most - end]}… ({len(text) - most:,} characters left out) …{text[len(text) - end :]}"


def listed(names: Sequence[str], most: int = LISTED, separator: str = ", ") -> str:
    """Names, joined by commas, or sentences by semicolons; of very many the first ones and how many more there are."""
    further = f"{separator.rstrip(', ')} and {len(names) - most:,} more" if len(names) > most else ""
    return separator.join(abridged(name) for name in names[:most]) + further
