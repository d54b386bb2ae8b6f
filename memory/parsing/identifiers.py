"""The words inside identifiers: `computeMPAB`, `sha256sum`, `OAuth2Token`, `größeMax` (features C2, C3)."""

from __future__ import annotations

import re

_PLURAL_ACRONYM = re.compile(r"[A-Z]{2,}s")
_NAME_AND_NUMBER = re.compile(r"([a-z]{2,})(\d{1,4})", re.IGNORECASE)
_UNSPLIT = re.compile(r"[0-9a-f]+|\d+(?:st|nd|rd|th)", re.IGNORECASE)
"""Hashes and ordinal numbers: the letters in them are no words."""
_HUMP = re.compile(r"A+0*(?!a)|A?[a0]+|0+")
"""A hump in the shape of a name: capitals A, other letters a, digits 0. Digits belong to what they follow."""
_LETTERS = re.compile(r"[^\W\d]{2,}")
_LONG = 3
"""So many letters has a hump that is a word beside one of a single letter: the Phone of iPhone, not the Pv of IPv."""


def parts(name: str) -> list[str]:
    """The parts of a name that are words, in order; none of an empty name, the name alone where it has none."""
    return [part for piece in name.split("_") if piece for part in _piece(piece)]


def is_identifier(word: str) -> bool:
    """Names are kept whole beside their parts; plain hyphenated words ("state-of-the-art") are their parts only."""
    return not word.replace("-", "").isalpha() or not (word[1:].islower() or word.isupper())


def _piece(piece: str) -> list[str]:
    """The parts of a name without separators: at changes of case and around numbers.

    A single letter is no part, but what it begins is one: OAuth2Token gives OAuth2, OAuth, Auth and Token. A trailing
    number is one, as in `python3`.
    """
    if len(piece) == 1:
        return [piece]
    if piece.isalpha():
        if piece[1:].islower() or piece.isupper() or _PLURAL_ACRONYM.fullmatch(piece):
            return [piece]
    elif match := _NAME_AND_NUMBER.fullmatch(piece):
        return [*_piece(match[1]), match[2]]
    if _UNSPLIT.fullmatch(piece):
        return [piece]
    humps = [piece[hump.start() : hump.end()] for hump in _HUMP.finditer(_shape(piece))]
    shortest = _LONG if any(len(hump) == 1 and hump.isalpha() for hump in humps) else 2
    found: dict[str, None] = {}
    if len(humps) > 1 and len(humps[0]) == 1 and humps[0].isalpha():
        begun = humps[0] + humps[1]
        found |= dict.fromkeys(_with_number(begun) + _words(begun, 2) + _words(humps[1], shortest))
        humps = humps[2:]
    for hump in humps:
        found |= dict.fromkeys(_with_number(hump) + _words(hump, shortest))
    return list(found) or [piece]


def _words(hump: str, shortest: int) -> list[str]:
    """The runs of letters in a hump that are long enough: between numbers there may be several."""
    return [run for run in _LETTERS.findall(hump) if len(run) >= shortest]


def _with_number(hump: str) -> list[str]:
    """A hump of letters and a number that is a name by itself: `base64`, `k8s`."""
    letters = sum(map(str.isalpha, hump))
    return [hump] if hump[0].isalpha() and 2 <= letters < len(hump) else []


def _shape(piece: str) -> str:
    return "".join("A" if c.isupper() else "0" if c.isdigit() else "a" for c in piece)
