"""What an acronym stands for, as documents define it: "Long Form (LF)"."""

from __future__ import annotations

import re

SMALL_WORDS = frozenset(("a", "an", "and", "for", "in", "of", "on", "the", "to"))
"""Words of which acronyms have no letter, for the most part."""


def long_form(text: str, acronym: str) -> str:
    """The last words of a text that begin with the letters of an acronym, "" where there are none.

    Small words between them may be passed over.
    """
    words = [word for word in re.split(r"[ \n-]+", text) if word]
    left = list(acronym.casefold())
    for place in range(len(words) - 1, -1, -1):
        if left and words[place][0].casefold() == left[-1]:
            left.pop()
        elif words[place].casefold() not in SMALL_WORDS:
            return ""
        if not left:
            return " ".join(words[place:])
    return ""
