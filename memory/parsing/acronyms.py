"""Finds the long form of an acronym where a document defines it: "Long Form (LF)"."""

from __future__ import annotations

import re

SMALL_WORDS = frozenset(("a", "an", "and", "for", "in", "of", "on", "the", "to"))
"""Words that usually contribute no letter to an acronym."""


def long_form(text: str, acronym: str) -> str:
    """Return the last words of a text whose initials spell the acronym, "" if there are none.

    Small words between them may be skipped.
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
