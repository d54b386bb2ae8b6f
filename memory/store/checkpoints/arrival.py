"""Records the arrival of memories from another file, and checks that their tokens are compatible (feature M14)."""

from __future__ import annotations

from collections.abc import Collection

import apsw

from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.graph import link_targets
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.writing import near_duplicates
from speckit_memory.memory.store.writing.links import resolve_links

ANALYSER = "analyser_version"
"""Key in `meta` of the version of the analyser: `indexing.versions.ANALYSER`."""


def other_words(source: apsw.Connection, connection: apsw.Connection) -> str:
    """The reason why the tokens of two files cannot be mixed; "" if they can."""
    theirs, ours = get_meta(source, ANALYSER), get_meta(connection, ANALYSER)
    if None not in (theirs, ours) and theirs != ours:
        return f"its words were split by '{theirs}', those of the store by '{ours}'"
    return ""


def note(
    txn: Transaction, memories: Collection[int], folders: Collection[str], now: float, ends: Collection[int] = ()
) -> None:
    """Logs the arrival of memories for other processes, resolves links and marks folders for a new count of near
    duplicates.

    Args:
        txn: The transaction.
        memories: Ids of the memories that arrived.
        folders: Folders whose members changed.
        now: The time, in epoch seconds.
        ends: Ids of further memories whose edges changed.
    """
    coming = sorted(memories)
    changes.record(txn, coming, "put")
    changes.record(txn, sorted({*coming, *ends}), "edges")
    link_targets.note_memories(txn, coming)
    link_targets.note_keys(txn, [key for (key,) in rows(txn.connection, "SELECT key FROM memories")])
    resolve_links(txn, now)
    near_duplicates.mark_uncounted(txn, sorted(folders))
