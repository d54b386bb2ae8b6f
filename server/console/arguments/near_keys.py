"""Suggests existing keys for an unknown one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import SequenceMatcher
from pathlib import PurePosixPath

MOST = 3
"""Keys suggested at most."""
_ALIKE = 0.6
"""Minimum similarity (`difflib` ratio); a name that contains the typed text always qualifies."""
_BEHIND = 0.15
"""Keys whose similarity is this much below the nearest one's are not suggested."""
_SHORTEST = 3
"""Minimum length at which part of a name is significant."""


def near_keys(typed: str, titles: Mapping[str, str]) -> list[str]:
    """The keys most similar to the typed one, at most `MOST`, best first.

    `titles` maps all keys to titles. The whole key, the file's stem and the title are compared; case and separators are
    ignored.
    """
    wanted = [_plain(typed), _plain(PurePosixPath(typed).stem)]
    near = {key: _nearness(wanted, key, title) for key, title in titles.items()}
    # keys far below the best one are noise, even above the absolute threshold
    least = max(_ALIKE, max(near.values(), default=0.0) - _BEHIND)
    found = sorted((key for key in near if near[key] >= least), key=lambda key: (-near[key], len(key), key))
    return found[:MOST]


def _nearness(wanted: list[str], key: str, title: str) -> float:
    """Similarity of a key in [0, 1]; 1 if one of its names equals the typed text."""
    whole, name = wanted
    return max(_alike(whole, _plain(key)), _alike(name, _plain(PurePosixPath(key).stem)), _alike(whole, _plain(title)))


def _alike(typed: str, name: str) -> float:
    if not typed or not name:
        return 0.0
    if len(typed) >= _SHORTEST and f" {typed} " in f" {name} ":
        # a contained phrase scores between 1 - _ALIKE / 2 (short) and 1 (the whole name)
        return 1 - _ALIKE * (1 - len(typed) / len(name)) / 2
    # the quick ratios are cheap upper bounds and spare most keys the quadratic `ratio`
    matcher = SequenceMatcher(None, typed, name)
    return matcher.ratio() if matcher.real_quick_ratio() >= _ALIKE and matcher.quick_ratio() >= _ALIKE else 0.0


def _plain(text: str) -> str:
    """The words in lower case, joined by blanks."""
    return " ".join(re.findall(r"\w+", text.casefold().replace("_", " ")))
