"""What is told of memories that came from another file, and how their words must have been cut (feature M14)."""

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
"""The fact that says how words were cut: `indexing.versions.ANALYSER`."""


def other_words(source: apsw.Connection, connection: apsw.Connection) -> str:
    """Why the words of two files cannot stand beside one another; "" where they can."""
    theirs, ours = get_meta(source, ANALYSER), get_meta(connection, ANALYSER)
    if None not in (theirs, ours) and theirs != ours:
        return f"its words were cut by '{theirs}', those of the store by '{ours}'"
    return ""


def note(
    txn: Transaction, memories: Collection[int], folders: Collection[str], now: float, ends: Collection[int] = ()
) -> None:
    """Tells other processes which memories came, and at which `ends` edges changed; has links and near duplicates
    looked at anew."""
    coming = sorted(memories)
    changes.record(txn, coming, "put")
    changes.record(txn, sorted({*coming, *ends}), "edges")
    link_targets.note_memories(txn, coming)
    link_targets.note_keys(txn, [key for (key,) in rows(txn.connection, "SELECT key FROM memories")])
    resolve_links(txn, now)
    near_duplicates.mark_uncounted(txn, sorted(folders))
