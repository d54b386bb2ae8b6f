"""Whether a store agrees with itself, its full-text rows included."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.tables import stale_words

if TYPE_CHECKING:
    from speckit_memory.memory.store.file.connection import Database


class StoreCheck(NamedTuple):
    """What is wrong, one sentence each, and what was not looked at, "" for nothing."""

    wrong: tuple[str, ...]
    remark: str


def checked(database: Database, *, every_word: bool = False) -> StoreCheck:
    """Looks at the file and, in a large store unless `every_word` is wanted, at the words of a part of it."""
    wrong = database.check()
    try:
        with database.snapshot_read() as connection:
            found = stale_words.compared(connection, None if every_word else stale_words.MOST_WORDS)
    except SpeckitError as error:
        return StoreCheck(tuple(wrong or [f"the full-text rows cannot be checked: {error}"]), "")
    return StoreCheck((*wrong, *found.faults), found.remark)
