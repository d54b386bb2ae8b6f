"""The keys that somebody may have meant who typed one that is not there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import SequenceMatcher
from pathlib import PurePosixPath

MOST = 3
"""So many keys are suggested."""
_ALIKE = 0.6
"""How alike a name must be, as `difflib` counts; a part of a name is alike in any case."""
_BEHIND = 0.15
"""A key that is so much less alike than the nearest is not suggested beside it."""
_SHORTEST = 3
"""Characters from which a part of a name tells something."""


def near_keys(typed: str, titles: Mapping[str, str]) -> list[str]:
    """The keys nearest to what was typed, at most three, the nearest first.

    `titles` are those of all memories by key. A key is near as a whole, by its file's name without folder and ending,
    or by its title; case and what stands between words do not count.
    """
    wanted = [_plain(typed), _plain(PurePosixPath(typed).stem)]
    near = {key: _nearness(wanted, key, title) for key, title in titles.items()}
    least = max(_ALIKE, max(near.values(), default=0.0) - _BEHIND)
    found = sorted((key for key in near if near[key] >= least), key=lambda key: (-near[key], len(key), key))
    return found[:MOST]


def _nearness(wanted: list[str], key: str, title: str) -> float:
    """How near a key is, 1 when one of its names is what was typed."""
    whole, name = wanted
    return max(_alike(whole, _plain(key)), _alike(name, _plain(PurePosixPath(key).stem)), _alike(whole, _plain(title)))


def _alike(typed: str, name: str) -> float:
    if not typed or not name:
        return 0.0
    if len(typed) >= _SHORTEST and f" {typed} " in f" {name} ":
        return 1 - _ALIKE * (1 - len(typed) / len(name)) / 2
    matcher = SequenceMatcher(None, typed, name)
    return matcher.ratio() if matcher.real_quick_ratio() >= _ALIKE and matcher.quick_ratio() >= _ALIKE else 0.0


def _plain(text: str) -> str:
    """Words alone, in small letters."""
    return " ".join(re.findall(r"\w+", text.casefold().replace("_", " ")))
