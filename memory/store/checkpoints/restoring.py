"""Brings a state back that a checkpoint keeps (feature M14).

In one transaction, which ends with a look at the whole store: whoever is killed, or finds no room, leaves the store as
it was. Every memory that comes, changes or goes is an entry in the log of changes, by which other processes follow.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import apsw

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import listed
from speckit_memory.memory.store.checkpoints import identity, outer_edges, transfer
from speckit_memory.memory.store.checkpoints.folder import FAULTS, Checkpoint, Folder
from speckit_memory.memory.store.checkpoints.kinds import CHUNKS, MEMORIES
from speckit_memory.memory.store.checkpoints.opened import opened
from speckit_memory.memory.store.file.connection import Database, Transaction
from speckit_memory.memory.store.file.consistency import inconsistencies
from speckit_memory.memory.store.file.queries import rows, value
from speckit_memory.memory.store.tables import changes, link_targets, vectors
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.memory.store.writing import near_duplicates, writer
from speckit_memory.memory.store.writing.links import resolve_links

NAMED = 3
ANALYSER = "analyser_version"
"""The fact that says how words were cut: `indexing.indexer.ANALYSER`."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did: memories that came back, that were there and were set back, and that went; passages that wait
    for vectors, as another model made theirs; and faults that the checkpoint had when it was made."""

    checkpoint: Checkpoint
    returned: int
    set_back: int
    removed: int
    pending: int
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Plan:
    """The ids of what comes back, by those of the checkpoint; which of them are there, and what goes."""

    ids: transfer.Ids
    staying: tuple[int, ...]
    going: tuple[int, ...]
    folders: frozenset[str]


def restore(
    database: Database,
    checkpoint: Checkpoint,
    *,
    replace: bool,
    now: float,
    foreign: bool = False,
    shelf: Folder | None = None,
) -> Restored:
    """Brings a checkpoint back. To `replace`, memories that it does not have go: of its folder, or of the store.

    Else they stay. Either way its memories are set back to what they were, and keep their ids where those are free.
    `foreign` allows that of another store; `shelf` is where it lies, if not among the checkpoints. Raises E061 with
    nothing changed.
    """
    shelf = shelf or Folder(database.path)
    with shelf.changing(), opened(shelf, checkpoint, shelf.partial()) as source:
        faults = inconsistencies(source)
        if len(checkpoint.faults) < FAULTS and (new := [fault for fault in faults if fault not in checkpoint.faults]):
            raise _not(checkpoint, f"it is damaged: {listed(new, NAMED, '; ')}")
        with database.write() as txn:
            before = {*faults, *inconsistencies(txn.connection)}
            result = _restored(source, txn, checkpoint, replace=replace, now=now, foreign=foreign)
            if wrong := [fault for fault in inconsistencies(txn.connection) if fault not in before]:
                raise _not(checkpoint, f"the store would not agree with itself: {listed(wrong, NAMED, '; ')}")
            return result


def _restored(
    source: apsw.Connection, txn: Transaction, checkpoint: Checkpoint, *, replace: bool, now: float, foreign: bool
) -> Restored:
    connection, whole = txn.connection, not checkpoint.folder
    empty = value(connection, "SELECT 1 FROM memories LIMIT 1") is None
    same = checkpoint.store_id == identity.store_id(connection) or empty
    if not same and not foreign:
        raise SpeckitError(
            "E061",
            f"'{checkpoint.name}' is of another store than {connection.filename}, which is not empty",
            hint="Their ids mean other memories, and what one of them forgot the other may hold.",
            actions=("restore it with --foreign if that is meant", "restore it into an empty store (--db FILE)"),
        )
    if empty:
        identity.become(txn, checkpoint.store_id)
    connection.execute("UPDATE id_sequence SET next = max(next, ?)", (value(source, "SELECT next FROM id_sequence"),))
    if not empty and not (replace and whole):
        _require_same_words(source, connection, checkpoint)
    plan = _room_made(source, txn, checkpoint.folder, replace=replace, keep_ids=same)
    if replace:
        transfer.forget_what_belongs_to_no_memory(txn, checkpoint.folder)
    if empty or (replace and whole):
        if transfer.models(source) != transfer.models(connection):
            vectors.forget_all(txn)
        transfer.copy_facts(source, txn)
    copied = transfer.copy(source, txn, plan.ids, whole=whole, keep_ids=same)
    _note(txn, plan, now, outer_edges.bring_back(source, txn))
    returned = len(plan.ids[MEMORIES]) - len(plan.staying)
    return Restored(checkpoint, returned, len(plan.staying), len(plan.going), copied.pending, checkpoint.faults)


def _room_made(source: apsw.Connection, txn: Transaction, folder: str, *, replace: bool, keep_ids: bool) -> _Plan:
    """Decides which ids the memories of the checkpoint get, and removes the rows that are in their way.

    When memories are replaced, an id that is there stays with its memory, which may have been renamed since; else a
    memory is the one with its key.
    """
    connection = txn.connection
    theirs = dict(rows(source, "SELECT id, key FROM memories ORDER BY id"))
    by_key = {key: memory_id for memory_id, key in rows(connection, "SELECT id, key FROM memories")}
    inside, parameters = transfer.within(folder)
    scope = {row for (row,) in rows(connection, f"SELECT id FROM memories WHERE {inside}", parameters)}
    memories = {row: row for row in theirs if replace and keep_ids and row in scope}
    going = scope - set(memories) if replace else set()
    if not keep_ids:
        going -= {by_key[key] for key in theirs.values() if key in by_key}
    used = set(memories.values())
    for row, key in theirs.items():
        here = by_key.get(key)
        if row not in memories and here is not None and here not in used | going:
            memories[row] = here
            used.add(here)
    staying = sorted(used)
    folders = _folders(connection, (*staying, *going)) | _folders(source, tuple(theirs))
    writer.delete_memories(txn, sorted(going))
    transfer.clear(txn, staying)
    # two of them may have changed names with each other
    connection.executemany("UPDATE memories SET key = char(1) || id WHERE id = ?", [(row,) for row in staying])
    chunks = _numbered(source, connection, memories, keep_ids)
    return _Plan({MEMORIES: memories, CHUNKS: chunks}, tuple(staying), tuple(sorted(going)), frozenset(folders))


def _numbered(
    source: apsw.Connection, connection: apsw.Connection, memories: dict[int, int], keep_ids: bool
) -> dict[int, int]:
    """Gives those memories ids that have none yet, and all passages theirs; returns these. A number that is free stays
    what it was in the checkpoint."""
    taken = {row for (row,) in rows(connection, "SELECT id FROM memories UNION SELECT id FROM chunks")}
    chunks: dict[int, int] = {}
    for row, numbers in rows(
        source,
        "SELECT m.id, (SELECT json_group_array(id ORDER BY ordinal) FROM chunks WHERE memory_id = m.id) "
        "FROM memories m ORDER BY m.id",
    ):
        own: list[int] = json.loads(numbers)
        if row not in memories:
            memories[row] = row if keep_ids and row not in taken else _draw(connection, 1)[0]
        here = memories[row]
        if own == [row]:
            chunks[row] = here
        elif here == row and keep_ids and taken.isdisjoint(own):
            chunks.update(zip(own, own, strict=True))
        else:
            chunks.update(zip(own, _draw(connection, len(own)), strict=True))
        taken |= {here, *(chunks[each] for each in own)}
    return chunks


def _draw(connection: apsw.Connection, count: int) -> range:
    following: int = value(connection, "UPDATE id_sequence SET next = next + ? RETURNING next", (count,))
    return range(following - count, following)


def _folders(connection: apsw.Connection, memory_ids: Iterable[int]) -> set[str]:
    known = dict(rows(connection, "SELECT id, folder FROM memories"))
    return {known[row] for row in memory_ids}


def _require_same_words(source: apsw.Connection, connection: apsw.Connection, checkpoint: Checkpoint) -> None:
    """Raises E061 where memories would come beside others whose words were cut in another way."""
    theirs, ours = get_meta(source, ANALYSER), get_meta(connection, ANALYSER)
    if None not in (theirs, ours) and theirs != ours:
        why = f"its words were cut by '{theirs}', those of the store by '{ours}'"
        raise SpeckitError(
            "E061",
            f"'{checkpoint.name}' was not restored: {why}; nothing was changed",
            actions=("replace the whole store with a checkpoint of the whole store, then index again",),
        )


def _note(txn: Transaction, plan: _Plan, now: float, ends: set[int]) -> None:
    """Tells other processes what changed, and has links and near duplicates looked at anew."""
    coming = sorted(plan.ids[MEMORIES].values())
    changes.record(txn, coming, "put")
    changes.record(txn, sorted({*coming, *ends}), "edges")
    link_targets.note_memories(txn, coming)
    link_targets.note_keys(txn, [key for (key,) in rows(txn.connection, "SELECT key FROM memories")])
    resolve_links(txn, now)
    near_duplicates.mark_uncounted(txn, sorted(plan.folders))


def _not(checkpoint: Checkpoint, why: str) -> SpeckitError:
    return SpeckitError("E061", f"'{checkpoint.name}' was not restored: {why}; nothing was changed")
