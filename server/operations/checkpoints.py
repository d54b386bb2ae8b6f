"""Checkpoints of the store: create, list, restore, delete (features T12 to T15)."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import abridge, plural
from speckit_memory.server.operations.fields import CheckpointName, Flag, Folder, Limit
from speckit_memory.server.operations.operation import Call, Option, Parameters, Row, Tool, View, operation

BUDGET = 600

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
    from speckit_memory.server.views.checkpoint_text import as_json, as_row, describe_checkpoint

    with call.progress("checkpoint") as progress:
        made = call.memory().checkpoints.create(
            params.name, folder=params.folder, metadata=params.metadata, progress=progress
        )
    faults, dropped = made.checkpoint.faults, list(made.dropped)
    return View(
        f"{params.name}: {describe_checkpoint(made.checkpoint)}",
        {"checkpoint": as_row(made.checkpoint), "dropped": dropped},
        facts={"dropped, above the limit": dropped},
        hints=(f"the store has faults, and so has the copy: {faults[0]}",) if faults else (),
        document={"checkpoint": as_json(made.checkpoint), "dropped": dropped},
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
    from speckit_memory.server.views.checkpoint_text import as_json, as_row, describe_checkpoint

    found = call.memory().checkpoints.list(params.folder, params.limit)
    rows = [as_row(one) | {"about": describe_checkpoint(one)} for one in found]
    return View(
        plural(len(found), "checkpoint"),
        {"count": len(found), "checkpoints": rows},
        rows="checkpoints",
        cells=_cells,
        document={"checkpoints": [as_json(one) for one in found]},
    )


def _cells(row: Row) -> tuple[str, ...]:
    metadata = json.dumps(row["metadata"], ensure_ascii=False) if "metadata" in row else ""
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
    from speckit_memory.server.views.checkpoint_text import as_json, as_row, parted_counts, told_files, told_restore

    store = call.config.db
    if not store_is_there(store):
        CheckpointFolder(store).get(params.name)  # raises E060 before a store is created in vain
    done = call.memory(create=True).checkpoints.restore(
        params.name, replace=params.replace, foreign=params.foreign, keep_before=not params.no_backup
    )
    result, parted = done.restored, parted_counts(done)
    undo = call.way("`speckit-memory undelete {}`", 'memory_delete with undo="{}"')
    files = told_files(done, undo, call.way("`save FILE`", "memory_save with filePath"))
    outcome = {
        "returned": result.returned,
        "set_back": result.set_back,
        "removed": result.removed,
        "pending": result.pending,
        "before": done.before or None,
        **parted,
    }
    return View(
        told_restore(result),
        {"checkpoint": as_row(result.checkpoint), **outcome},
        facts={"the state before is kept as": done.before, "files": call.way("", "unchanged; searches use the store")},
        hints=(files,) if any(parted.values()) or call.common else (),
        document={"checkpoint": as_json(result.checkpoint), **outcome},
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
