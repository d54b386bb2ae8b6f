"""Resolves memories as users type them: an id, a key, or something close to a key."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from difflib import SequenceMatcher
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from speckit_memory.errors import Problem, SpeckitError

if TYPE_CHECKING:
    from speckit_memory.engine import Memory


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


Found = TypeVar("Found")
ID_DIGITS = 18
"""A longer number is not an id but may be a key."""


def memory_name(typed: str | int) -> int | str:
    """Parses the typed text as an id or a normalised key."""
    if isinstance(typed, int):
        return typed
    if typed.isascii() and typed.isdigit() and len(typed) <= ID_DIGITS:
        return int(typed)
    # keys never contain bytes that are not UTF-8
    return os.path.normpath(typed.encode(errors="replace").decode()).replace(os.sep, "/")


def known_key(memory: Memory, typed: str | int) -> str:
    """The key of a memory given by id or key. Raises E080 with the nearest keys."""
    return of_known(memory, typed, lambda name: memory.get(name).key)


def known_keys(memory: Memory, typed: Iterable[str | int]) -> list[str]:
    """The keys of memories given by id or key. Raises E080 for each unknown one, with the nearest keys."""
    keys: list[str] = []
    problems: list[Problem] = []
    for each in typed:
        try:
            keys.append(known_key(memory, each))
        except SpeckitError as error:
            problems += error.problems
    if problems:
        raise SpeckitError.of(problems)
    return keys


def of_known(memory: Memory, typed: str | int, look: Callable[[int | str], Found], again: str = "") -> Found:
    """Calls `look` with a memory's id or key and returns its result.

    Args:
        memory: The open memory, searched for similar keys.
        typed: Id or key as the caller typed it.
        look: Called with the parsed id or key; raises E080 if there is no such memory.
        again: Command to suggest with each of the nearest keys; "" for none.

    Raises:
        SpeckitError: E080 with the nearest keys.
    """
    name = memory_name(typed)
    try:
        return look(name)
    except SpeckitError as error:
        from speckit_memory.engine.session.reopening import DeletedMemoryError

        if error.code != "E080" or isinstance(name, int) or isinstance(error, DeletedMemoryError):
            raise
        known, _ = memory.list(limit=memory.inventory.stats().memories)
        close = near_keys(name, {record.key: record.title for record in known})
        if not close:
            raise
        *most, last = [f"'{one}'" for one in close]
        meant = f"{', '.join(most)} or {last}" if most else last
        message = f"there is no memory with the key '{name}'; did you mean {meant}?"
        actions = tuple(f"{again} {shlex.quote(one)}" for one in close) if again else ()
        raise SpeckitError("E080", message, actions=actions) from None
