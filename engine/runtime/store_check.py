"""Checks the consistency of a store, its full-text rows included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.checking.consistency import UNREADABLE
from speckit_memory.memory.store.tables.words import stale_words

if TYPE_CHECKING:
    from speckit_memory.memory.store.file.connection import Database


class StoreCheck(NamedTuple):
    """The faults, one sentence each, and a remark on what was not checked, "" for nothing.

    `stale` are all memories whose full-text row differs from their text; `wrong` names only some of them.
    """

    wrong: tuple[str, ...]
    remark: str = ""
    stale: tuple[int, ...] = ()


def check_store(database: Database, *, every_word: bool = False, only: Sequence[int] | None = None) -> StoreCheck:
    """Checks the file and the terms of its full-text rows.

    A large store is sampled unless `every_word` is set; `only` restricts the terms to these memories.
    """
    wrong = database.check()
    try:
        with database.snapshot_read() as connection:
            if only is not None:
                found = stale_words.among(connection, only)
            else:
                found = stale_words.compare_words(connection, None if every_word else stale_words.MOST_WORDS)
    except (SpeckitError, *UNREADABLE) as error:
        return StoreCheck(tuple(wrong or [f"the full-text rows cannot be checked: {error}"]))
    return StoreCheck((*wrong, *found.faults), found.remark, tuple(found.stale))
