"""Resolves memories as users type them: an id, a key, or something close to a key."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.server.console.arguments.near_keys import near_keys

if TYPE_CHECKING:
    from speckit_memory.engine import Memory

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
        from speckit_memory.engine.session.deleted_names import DeletedMemoryError

        if error.code != "E080" or isinstance(name, int) or isinstance(error, DeletedMemoryError):
            raise
        known, _ = memory.list(limit=memory.stats().memories)
        close = near_keys(name, {record.key: record.title for record in known})
        if not close:
            raise
        *most, last = [f"'{one}'" for one in close]
        meant = f"{', '.join(most)} or {last}" if most else last
        message = f"there is no memory with the key '{name}'; did you mean {meant}?"
        actions = tuple(f"{again} {shlex.quote(one)}" for one in close) if again else ()
        raise SpeckitError("E080", message, actions=actions) from None
