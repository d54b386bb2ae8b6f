"""Memories as people type them: an id, a key, or something near a key."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from speckit_memory.errors import SpeckitError
from speckit_memory.server.near_keys import near_keys

if TYPE_CHECKING:
    from speckit_memory.engine import Memory

ID_DIGITS = 18
"""A longer number is no id, and may be the name of a memory."""


LARGEST_ID = 2**63 - 1
"""The store can look for no larger number."""


def memory_name(typed: str | int) -> int | str:
    """The id, or the key, that was typed."""
    if isinstance(typed, int):
        return typed if abs(typed) <= LARGEST_ID else str(typed)
    if typed.isascii() and typed.isdigit() and len(typed) <= ID_DIGITS:
        return int(typed)
    # bytes that are not UTF-8 stand in no key
    return os.path.normpath(typed.encode(errors="replace").decode()).replace(os.sep, "/")


def known_key(memory: Memory, typed: str | int) -> str:
    """The key of the memory that was typed. Raises E080 with the nearest keys."""
    name = memory_name(typed)
    try:
        return memory.get(name).key
    except SpeckitError as error:
        if error.code != "E080" or isinstance(name, int):
            raise
        known, _ = memory.list(limit=memory.stats().memories)
        close = near_keys(name, {record.key: record.title for record in known})
        if not close:
            raise
        *most, last = [f"'{one}'" for one in close]
        meant = f"{', '.join(most)} or {last}" if most else last
        message = f"there is no memory with the key '{name}'; did you mean {meant}?"
        raise SpeckitError("E080", message) from None
