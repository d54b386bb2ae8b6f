"""Checkpoints of the store: create, list, restore, delete (features T12 to T15)."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import abridge, list_names, plural
from speckit_memory.server.operations.fields import CheckpointName, Flag, Folder, Limit
from speckit_memory.server.operations.operation import Call, Option, Parameters, Row, Tool, View, operation

if TYPE_CHECKING:
    from speckit_memory.engine.api.checkpoints import RestoreResult
    from speckit_memory.memory.store.checkpoints.folder import Checkpoint
    from speckit_memory.memory.store.checkpoints.restoring import RestoreReport

BUDGET = 600
NAMED = 3
"""Keys named in a sentence; the others are counted."""
SHORT_METADATA = 400
"""Longest metadata (characters of JSON) in a line."""
_KEYS = ("name", "folder", "metadata", "bytes", "schema", "rows", "faults")

NamedCheckpoint = Annotated[CheckpointName, Option("Name of the checkpoint.", argument=True)]


class CheckpointCreation(Parameters):
    name: NamedCheckpoint
    folder: Annotated[Folder, Option("Only the memories of this folder and below.", tool="specFolder")] = ""
    metadata: Annotated[
        dict[str, Any] | None,
        Option("A JSON object that is shown with the checkpoint.", brief="Shown by checkpoint_list"),
    ] = None


@operation(
    "administration",
    "checkpoint create",
    Tool(
        "checkpoint_create",
        "Keep checkpoint",
        "Save the state of all memories under a new name.",
        budget=BUDGET,
        lengthy=True,
    ),
    repeatable=False,
)
def create(call: Call, params: CheckpointCreation) -> View:
    """Store the present state of all memories under a new NAME.

    A checkpoint includes everything that was learned about the memories, and is verified after writing. The oldest
    checkpoints beyond the number that the workspace keeps (ten) are deleted.
    """
    with call.progress("checkpoint") as progress:
        made = call.memory().checkpoints.create(
            params.name, folder=params.folder, metadata=params.metadata, progress=progress
        )
    faults, dropped = made.checkpoint.faults, list(made.dropped)
    return View(
        f"{params.name}: {_describe(made.checkpoint)}",
        {"checkpoint": _row(made.checkpoint), "dropped": dropped},
        facts={"dropped, above the limit": dropped},
        hints=(f"the store has faults, and so has the copy: {faults[0]}",) if faults else (),
    )


class CheckpointListing(Parameters):
    folder: Annotated[
        Folder,
        Option("Only checkpoints of this folder, below it, and of the whole store.", tool="specFolder"),
    ] = ""
    limit: Annotated[Limit, Option("Maximum number of checkpoints.")] = 50


@operation(
    "administration",
    "checkpoint list",
    Tool(
        "checkpoint_list",
        "List checkpoints",
        "List checkpoints, latest first; of a folder, those of the whole store too.",
        budget=BUDGET,
    ),
    reads=True,
)
def list_checkpoints(call: Call, params: CheckpointListing) -> View:
    """List the checkpoints of the store, the latest first, and mark damaged ones."""
    found = call.memory().checkpoints.list(params.folder, params.limit)
    rows = [_row(one) | {"about": _describe(one)} for one in found]
    return View(
        plural(len(found), "checkpoint"),
        {"count": len(found), "checkpoints": rows},
        rows="checkpoints",
        cells=_cells,
    )


def _cells(row: Row) -> tuple[str, ...]:
    metadata = json.dumps(row["metadata"], ensure_ascii=False) if row["metadata"] else ""
    if len(metadata) > SHORT_METADATA:
        metadata = "metadata too long; `speckit-memory checkpoint list --json` shows it"
    return f"{row['name']}: {row['about']}", metadata


class CheckpointRestoration(Parameters):
    name: NamedCheckpoint
    replace: Annotated[
        Flag,
        Option(
            "Delete memories that are not in the checkpoint, in its folder or everywhere.",
            tool="clearExisting",
            brief="Delete memories it lacks, after a new checkpoint",
        ),
    ] = False
    no_backup: Annotated[Flag, Option("With --replace: make no checkpoint of the store first.", tool=None)] = False
    foreign: Annotated[Flag, Option("Accept a checkpoint of another store; its memories get new ids.", tool=None)] = (
        False
    )


@operation(
    "administration",
    "checkpoint restore",
    Tool(
        "checkpoint_restore",
        "Restore checkpoint",
        "Restore the memories of a checkpoint; later ones stay.",
        budget=BUDGET,
        lengthy=True,
    ),
    destroys=True,
)
def restore(call: Call, params: CheckpointRestoration) -> View:
    """Restore the memories of the checkpoint NAME.

    Newer memories stay unless --replace is given. The command restores everything or nothing. Servers and other
    processes use the restored memories at once. A missing store is created. Before memories are replaced, a checkpoint
    of the present store is made.
    """
    from speckit_memory.memory.store.checkpoints.folder import Folder as CheckpointFolder
    from speckit_memory.memory.store.file.guarding.store_file import store_is_there

    store = call.config.db
    if not store_is_there(store):
        CheckpointFolder(store).get(params.name)  # raises E060 before a store is created in vain
    done = call.memory(create=True).checkpoints.restore(
        params.name, replace=params.replace, foreign=params.foreign, keep_before=not params.no_backup
    )
    result, parted = done.restored, _parted_counts(done)
    undo = call.way("`speckit-memory undelete {}`", 'memory_delete with undo="{}"')
    files = _told_files(done, undo, call.way("`save FILE`", "memory_save with filePath"))
    outcome = {
        "returned": result.returned,
        "set_back": result.set_back,
        "removed": result.removed,
        "pending": result.pending,
        "before": done.before or None,
        **parted,
    }
    return View(
        _told_restore(result),
        {"checkpoint": _row(result.checkpoint), **outcome},
        facts={"the state before is kept as": done.before, "files": call.way("", "unchanged; searches use the store")},
        hints=(files,) if any(parted.values()) or call.common else (),
    )


class CheckpointDeletion(Parameters):
    name: NamedCheckpoint
    confirm_name: Annotated[
        str,
        Field(max_length=100),
        Option("The name again.", brief="The name again", command=None, required=True),
    ] = ""


@operation(
    "administration",
    "checkpoint delete",
    Tool("checkpoint_delete", "Delete checkpoint", "Remove a checkpoint for good.", budget=BUDGET),
    destroys=True,
    repeatable=False,
)
def delete(call: Call, params: CheckpointDeletion) -> View:
    """Delete the checkpoint NAME permanently."""
    if call.workspace and params.confirm_name != params.name:
        raise SpeckitError(
            "E030",
            f"confirmName is '{abridge(params.confirm_name)}' and name is '{params.name}': nothing was deleted",
            hint="A deleted checkpoint cannot be restored.",
            actions=("give the same name in both",),
        )
    gone = call.memory().checkpoints.delete(params.name)
    return View(f"{gone.name} was deleted", {"deleted": gone.name, "bytes": gone.bytes})


def _row(checkpoint: Checkpoint) -> Row:
    """A checkpoint as plain data; `problem` is None if it can be restored."""
    from speckit_memory.server.views.rows.rows import when

    whole = asdict(checkpoint)
    return {
        **{key: whole[key] for key in _KEYS},
        "created_at": when(checkpoint.created_at) if checkpoint.created_at else "",
        "memories": checkpoint.memories,
        "problem": checkpoint.problem or None,
    }


def _describe(checkpoint: Checkpoint) -> str:
    """The date, contents and size of a checkpoint."""
    if checkpoint.problem:
        return f"cannot be restored: {checkpoint.problem}"
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(checkpoint.created_at))
    where = f" of {checkpoint.folder}" if checkpoint.folder else ""
    return f"{when}, {plural(checkpoint.memories, 'memory')}{where}, {checkpoint.bytes / (1 << 20):.1f} MB"


def _told_restore(result: RestoreReport) -> str:
    """Describes what a restore did."""
    from speckit_memory.engine.runtime.pending_vectors import WHO_EMBEDS

    parts = [f"{result.returned} came back", f"{result.set_back} set back", f"{result.removed} removed"]
    if result.pending:
        waiting = plural(result.pending, "passage")
        parts.append(f"{waiting} without vectors of this embedding model: {WHO_EMBEDS}")
    if result.faults:
        parts.append(f"it was made from a store with faults: {result.faults[0]}")
    return f"{result.checkpoint.name}: {', '.join(parts)}"


def _told_files(done: RestoreResult, undo: str, save: str) -> str:
    """Describes where the store and the files differ after a restore. It changes no file; searches use the store.

    `undo` is the command that undoes a deletion, with a placeholder for its name; `save` the one that takes the text of
    a file.
    """
    parted = done.parted
    lines = []
    if parted.differing:
        lines.append(_list_keys(parted.differing, "memory", "differs from its file", "differ from their files"))
    if parted.without_file:
        ways = list_names([undo.format(name) for name in done.aside], NAMED)
        back = f" (to bring the files back: {ways})" if ways else ""
        lines.append(f"{_list_keys(parted.without_file, 'memory', 'has no file', 'have no file')}{back}")
    if parted.removed:
        lines.append(_list_keys(parted.removed, "file", "has no memory any more", "have no memory any more"))
    if not lines:
        return "no file was touched, and all agree with what came back"
    return (
        f"no file was touched, and index runs keep the restored memories until a file changes: {'; '.join(lines)}; "
        f"{save} takes the text of a file"
    )


def _list_keys(keys: Sequence[str], noun: str, one: str, several: str) -> str:
    return f"{plural(len(keys), noun)} {one if len(keys) == 1 else several}: {list_names(keys, NAMED)}"


def _parted_counts(done: RestoreResult) -> dict[str, int]:
    """Counts the memories and files on which store and workspace disagree."""
    parted = done.parted
    return {
        "differing": len(parted.differing),
        "without_file": len(parted.without_file),
        "without_memory": len(parted.removed),
    }
