"""Restores checkpoints (feature M14).

A restore is one transaction that ends with a consistency check of the whole store: if the process is killed or the disk
is full, the store stays unchanged. Every memory that is added, changed or removed is an entry in the log of changes,
from which other processes update.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import list_names
from speckit_memory.memory.store.checkpoints.checkpoint_file import open_checkpoint, store_id
from speckit_memory.memory.store.checkpoints.folder import FAULTS, Checkpoint, Folder
from speckit_memory.memory.store.file.checking.consistency import inconsistencies
from speckit_memory.memory.store.file.connection import Connection, Database, Transaction
from speckit_memory.memory.store.file.guarding.queries import below, integers, rows, value
from speckit_memory.memory.store.tables.memories import absences, judgements
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.transfer import arrival, copying
from speckit_memory.memory.store.writing import writer
from speckit_memory.memory.store.writing.moving import KeyChange, move_memories

Compare = Callable[[Transaction, Collection[int], Collection[str]], object]
NAMED = 3


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """The result of a restore: numbers of memories that were returned, set back to their former state, and removed; of
    passages that wait for vectors, since theirs are by another model; and faults that the checkpoint had when made."""

    checkpoint: Checkpoint
    returned: int
    set_back: int
    removed: int
    pending: int
    faults: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()
    """Ids in this store of the returned memories."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """The plan of a restore: ids in the checkpoint of the memories it brings (`coming`), and ids here of those that
    exist; which of these are `absent`; keys by id of those to remove (`going`). `moved` are memories whose files were
    renamed since, which keep their present keys; `aside` are other memories, by id, that now have the former keys of
    these."""

    coming: tuple[int, ...]
    memories: dict[int, int]
    absent: frozenset[int]
    going: dict[int, str]
    moved: tuple[KeyChange, ...]
    aside: dict[int, str]


def restore(
    database: Database,
    checkpoint: Checkpoint,
    *,
    replace: bool,
    now: float,
    foreign: bool = False,
    only_missing: bool = False,
    shelf: Folder | None = None,
    compare: Compare | None = None,
) -> RestoreReport:
    """Restores a checkpoint. Its memories are set back to their saved state and keep their ids where those are free.

    Args:
        database: The store.
        checkpoint: The checkpoint.
        replace: Whether memories that it does not contain are removed from its folder, or from the whole store.
        now: The time, in epoch seconds.
        foreign: Whether a checkpoint of another store is allowed.
        only_missing: Whether memories that exist under their ids are left unchanged.
        shelf: The folder that contains it; that of the store's checkpoints if None.
        compare: Called in the same transaction with the ids of restored memories and the keys of removed ones.

    Raises:
        SpeckitError: E061, with nothing changed.
    """
    shelf = shelf or Folder(database.path)
    with shelf.changing(), open_checkpoint(shelf, checkpoint) as source:
        faults = inconsistencies(source)
        if len(checkpoint.faults) < FAULTS and (new := [fault for fault in faults if fault not in checkpoint.faults]):
            raise _not(checkpoint, f"it is damaged: {list_names(new, NAMED, '; ')}")
        with database.write() as txn:
            # Faults that either file had before do not count against the restore.
            before = {*faults, *inconsistencies(txn.connection)}
            spared: frozenset[int] = frozenset()
            if only_missing:
                spared = there(txn.connection, [row for (row,) in rows(source, "SELECT id FROM memories")])
            result, back, gone = _restored(
                source, txn, checkpoint, replace=replace, now=now, foreign=foreign, spared=spared
            )
            if compare is not None:
                compare(txn, back, gone)
            if wrong := [fault for fault in inconsistencies(txn.connection) if fault not in before]:
                raise _not(checkpoint, f"the store would be inconsistent: {list_names(wrong, NAMED, '; ')}")
            return result


def there(connection: Connection, memories: Sequence[int]) -> frozenset[int]:
    """The ids among these that memories in the store have."""
    here = rows(connection, "SELECT id FROM memories WHERE id IN (SELECT value FROM carray(?))", (integers(memories),))
    return frozenset(row for (row,) in here)


def _restored(
    source: Connection,
    txn: Transaction,
    checkpoint: Checkpoint,
    *,
    replace: bool,
    now: float,
    foreign: bool,
    spared: frozenset[int],
) -> tuple[RestoreReport, tuple[int, ...], tuple[str, ...]]:
    connection, whole = txn.connection, not checkpoint.folder
    empty = value(connection, "SELECT 1 FROM memories LIMIT 1") is None
    same = checkpoint.store_id == store_id(connection) or empty
    if not same and not foreign:
        raise SpeckitError(
            "E061",
            f"'{checkpoint.name}' is of another store than {connection.filename}, which is not empty",
            hint="The same id means different memories in the two stores, and one may hold what the other forgot.",
            actions=(
                f"to restore it anyway: `speckit-memory checkpoint restore {checkpoint.name} --foreign`",
                "restore it into an empty store",
            ),
        )
    if empty:
        connection.execute("INSERT OR REPLACE INTO store_identity VALUES (1, ?)", (checkpoint.store_id,))
    # Ids that the checkpoint has used must not be drawn again for other memories.
    connection.execute("UPDATE id_sequence SET next = max(next, ?)", (value(source, "SELECT next FROM id_sequence"),))
    anew = empty or (replace and whole)
    # Restored memories must not be mixed with others whose words were split by another analyser.
    if not anew and (why := arrival.other_words(source, connection)):
        action = "replace the whole store with a checkpoint of the whole store, then index again"
        raise _not(checkpoint, why, action)
    plan = _room_made(source, txn, checkpoint.folder, replace=replace, keep_ids=same, spared=spared)
    if replace:
        copying.forget_what_belongs_to_no_memory(txn, checkpoint.folder)
    # Nothing of the old contents remains: the checkpoint's models and facts replace those of the store.
    if anew:
        if copying.models(source) != copying.models(connection):
            vectors.forget_all(txn)
        copying.copy_facts(source, txn)
    memories = dict(plan.memories)
    pending, folders = copying.copy(source, txn, plan.coming, memories, whole=whole, keep_ids=same)
    # came: memories that were absent and are present in the checkpoint; they count as returned, not as set back
    came = plan.absent - absences.among(connection, plan.absent)
    judgements.attribute(txn)
    move_memories(txn, plan.moved, now)
    connection.executemany("UPDATE memories SET key = ? WHERE id = ?", [(key, row) for row, key in plan.aside.items()])
    ends = arrival.restore_outer_edges(source, txn, plan.coming if spared else ()) if memories else set()
    arrival.note(txn, memories.values(), folders, now, ends)
    returned = tuple(sorted(set(memories.values()) - set(plan.memories.values()) | came))
    numbers = (len(returned), len(plan.memories) - len(came), len(plan.going), pending)
    removed = tuple(sorted(plan.going.values()))
    return RestoreReport(checkpoint, *numbers, checkpoint.faults, returned), tuple(memories.values()), removed


def _room_made(
    source: Connection, txn: Transaction, folder: str, *, replace: bool, keep_ids: bool, spared: frozenset[int]
) -> _Plan:
    """Decides which memories here those of the checkpoint replace, and clears the others out of their way. Memories in
    `spared` are skipped.

    Memories are matched by id first. One that was renamed since keeps its present key if the checkpoint has no memory
    with that key: its file is at that path, and the next index run would otherwise make a new memory of it. The
    remaining memories are matched by key.
    """
    connection = txn.connection
    theirs = {row: key for row, key in rows(source, "SELECT id, key FROM memories ORDER BY id") if row not in spared}
    here_now = {row: (key, lies) for row, key, lies in rows(connection, "SELECT id, key, folder FROM memories")}
    by_key = {key: memory_id for memory_id, (key, _) in here_now.items()}
    inside, parameters = below("folder", folder)
    scope = {row for (row,) in rows(connection, f"SELECT id FROM memories WHERE {inside}", parameters)}
    named = set(theirs.values())
    moved = tuple(
        KeyChange(row, key, *here_now[row])
        for row, key in theirs.items()
        if keep_ids and row in scope and here_now[row][0] not in named
    )
    kept = {each.memory for each in moved}
    # memories: ids here by id in the checkpoint; first by id, then below by key
    memories = {row: row for row in theirs if keep_ids and row in scope and (replace or row in kept)}
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
    old = {each.old for each in moved}
    # Their keys are needed for a moment by the moved memories' rows from the checkpoint.
    aside = {row: key for row, (key, _) in here_now.items() if key in old and row not in used | going}
    absent = absences.among(connection, staying)
    writer.delete_memories(txn, sorted(going))
    # Keys are unique at every moment, and two memories may have exchanged theirs: use temporary keys first.
    connection.executemany(
        "UPDATE memories SET key = char(1) || id WHERE id = ?", [(row,) for row in (*staying, *aside)]
    )
    return _Plan(tuple(theirs), memories, absent, {row: here_now[row][0] for row in going}, moved, aside)


def _not(checkpoint: Checkpoint, why: str, *actions: str) -> SpeckitError:
    return SpeckitError("E061", f"'{checkpoint.name}' was not restored: {why}; nothing was changed", actions=actions)
