"""Words messages: counts, and external text shortened so that no message is longer than a reader can use (T26)."""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST = 200
"""Characters of a name or value in a message."""
LISTED = 20
"""Problems of one kind that are listed individually; of the others only their number is given."""


def abridge(text: str, most: int = LONGEST) -> str:
    """The text, or its beginning and end around the number of characters left out; slightly more than `most` in all."""
    if len(text) <= most:
        return text
    end = most // 4
    return f"{text[: most - end]}… ({len(text) - most:,} characters left out) …{text[len(text) - end :]}"


def list_names(names: Sequence[str], most: int = LISTED, separator: str = ", ") -> str:
    """Names joined by `separator`; of very many, the first ones and the number of others."""
    further = f"{separator.rstrip(', ')} and {len(names) - most:,} more" if len(names) > most else ""
    return separator.join(abridge(name) for name in names[:most]) + further


def plural(count: int, noun: str) -> str:
    """A count in words: "1 link", "2 days", "3 memories"."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {re.sub('(?<![aeiou])y$', 'ie', noun)}s"
