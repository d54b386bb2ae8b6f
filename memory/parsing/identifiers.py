"""Splits identifiers into words: `computeMPAB`, `sha256sum`, `OAuth2Token`, `größeMax` (features C2, C3)."""

from __future__ import annotations

import re

_PLURAL_ACRONYM = re.compile(r"[A-Z]{2,}s")
_NAME_AND_NUMBER = re.compile(r"([a-z]{2,})(\d{1,4})", re.IGNORECASE)
_UNSPLIT = re.compile(r"[0-9a-f]+|\d+(?:st|nd|rd|th)", re.IGNORECASE)
"""Hashes and ordinal numbers: their letters are not words."""
_HUMP = re.compile(r"A+0*(?!a)|A?[a0]+|0+")
"""A hump of a camel-case name in the alphabet of `_shape`: capitals A, other letters a, digits 0. Digits belong to the
letters before them."""
_LETTERS = re.compile(r"[^\W\d]{2,}")
_LONG = 3
"""Minimum letters of a word in a name that also has a one-letter hump: the Phone of iPhone, not the Pv of IPv."""


def parts(name: str) -> list[str]:
    """Return the words of a name in order; the name itself if it cannot be split, nothing for an empty name."""
    return [part for piece in name.split("_") if piece for part in _piece(piece)]


def is_identifier(word: str) -> bool:
    """Whether a word is indexed whole as well as split; hyphenated words ("state-of-the-art") are only split."""
    return not word.replace("-", "").isalpha() or not (word[1:].islower() or word.isupper())


def _piece(piece: str) -> list[str]:
    """Split a name without separators at changes of case and around numbers.

    A single letter is not a part, but joins the hump after it: OAuth2Token gives OAuth2, OAuth, Auth and Token. A
    trailing number is a part, as in `python3`.
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
    # Humps are found in the shape, whose offsets are those of the name: OAuth2Token is AAaaa0Aaaaa.
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
    """Return the runs of letters in a hump that are long enough; numbers may separate several."""
    return [run for run in _LETTERS.findall(hump) if len(run) >= shortest]


def _with_number(hump: str) -> list[str]:
    """Return a hump of letters and digits that is itself a name, such as `base64` or `k8s`, else nothing."""
    letters = sum(map(str.isalpha, hump))
    return [hump] if hump[0].isalpha() and 2 <= letters < len(hump) else []


def _shape(piece: str) -> str:
    return "".join("A" if c.isupper() else "0" if c.isdigit() else "a" for c in piece)
