"""Whether a store agrees with itself, its full-text rows included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.checking.consistency import UNREADABLE
from speckit_memory.memory.store.tables.words import stale_words

if TYPE_CHECKING:
    from speckit_memory.memory.store.file.connection import Database


class StoreCheck(NamedTuple):
    """What is wrong, one sentence each, and what was not looked at, "" for nothing. `stale` are the memories whose
    full-text row holds other words than their texts, of which only some are named."""

    wrong: tuple[str, ...]
    remark: str = ""
    stale: tuple[int, ...] = ()


def checked(database: Database, *, every_word: bool = False, only: Sequence[int] | None = None) -> StoreCheck:
    """Looks at the file and, in a large store unless `every_word` is wanted, at the words of a part of it: of `only`
    these memories, where they are given."""
    wrong = database.check()
    try:
        with database.snapshot_read() as connection:
            if only is not None:
                found = stale_words.among(connection, only)
            else:
                found = stale_words.compared(connection, None if every_word else stale_words.MOST_WORDS)
    except (SpeckitError, *UNREADABLE) as error:
        return StoreCheck(tuple(wrong or [f"the full-text rows cannot be checked: {error}"]))
    return StoreCheck((*wrong, *found.faults), found.remark, tuple(found.stale))
