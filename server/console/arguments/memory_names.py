"""Memories as people type them: an id, a key, or something near a key."""

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
"""A longer number is no id, and may be the name of a memory."""


def memory_name(typed: str | int) -> int | str:
    """The id, or the key, that was typed."""
    if isinstance(typed, int):
        return typed
    if typed.isascii() and typed.isdigit() and len(typed) <= ID_DIGITS:
        return int(typed)
    # bytes that are not UTF-8 stand in no key
    return os.path.normpath(typed.encode(errors="replace").decode()).replace(os.sep, "/")


def known_key(memory: Memory, typed: str | int) -> str:
    """The key of the memory that was typed. Raises E080 with the nearest keys."""
    return of_known(memory, typed, lambda name: memory.get(name).key)


def known_keys(memory: Memory, typed: Iterable[str | int]) -> list[str]:
    """The keys of the memories that were typed. Raises E080 for each that is not there, with the nearest keys."""
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
    """What `look` finds of the memory that was typed.

    Raises E080 with the nearest keys, each as an action where the command to try `again` with a key is given.
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
