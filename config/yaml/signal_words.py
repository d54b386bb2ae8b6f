"""Phrases with which people correct themselves or state a preference (feature C16), in queries and documents."""

from __future__ import annotations

import re
from typing import Literal
from unicodedata import normalize

Kind = Literal["correction", "preference"]

CORRECTIONS = (
    "actually",
    "wait",
    "i was wrong",
    "correction",
    "not quite",
    "let me rephrase",
    "that's not right",
)
PREFERENCES = ("prefer", "like", "want", "always use", "never use", "i want", "please use")

BOOSTS: dict[Kind, float] = {"correction": 0.2, "preference": 0.1}
"""Increase of importance by kind; the sum is at most 1."""


def _any_of(phrases: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, phrases))})(?!\w)")


_PATTERNS: dict[Kind, re.Pattern[str]] = {"correction": _any_of(CORRECTIONS), "preference": _any_of(PREFERENCES)}


def signal_words(text: str) -> dict[Kind, str]:
    """The first phrase of each kind in a text, as whole words, after NFC normalisation and case folding."""
    plain = normalize("NFC", text).casefold().replace("’", "'")
    return {kind: found.group() for kind, pattern in _PATTERNS.items() if (found := pattern.search(plain))}
