"""Delete memories and undo deletions; restore archived memories (features T9, T11 and M5)."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import plural
from speckit_memory.server.operations.fields import ID_OR_KEY, Flag, Folder, MemoryName, Name, Tier
from speckit_memory.server.operations.operation import Call, Option, Parameters, Row, Tool, View, operation

if TYPE_CHECKING:
    from speckit_memory.engine.api.deletions import DeletionResult

BUDGET = 500
LISTED = 50
"""Memories or deletions listed."""

OlderThan = Annotated[
    int | None,
    Field(strict=True, ge=1, le=100_000),
]
Confirmation = Annotated[
    Flag,
    Option(
        "Needed for folders, tiers, and constitutional or critical memories.",
        brief="For a folder, or a critical memory",
    ),
]
DryRun = Annotated[Flag, Option("Show what would be deleted without deleting it.")]


class MemoryDeletion(Parameters):
    key: Annotated[
        MemoryName | None, Option("Id or key of the memory.", tool="id", argument=True, metavar=ID_OR_KEY)
    ] = None
    folder: Annotated[
        Folder | None,
        Option(
            "All memories of this folder and below it; with --tier, only those of the tier.",
            tool="specFolder",
            metavar="DIR",
        ),
    ] = None
    tier: Annotated[Tier | None, Option("All memories of this tier.", tool=None)] = None
    older_than: Annotated[
        OlderThan,
        Option("With --tier: only memories unchanged for this many days.", tool=None, metavar="DAYS"),
    ] = None
    skip_checkpoint: Annotated[Flag, Option("With --tier: make no checkpoint first.", tool=None)] = False
    confirm: Confirmation = False
    dry_run: DryRun = False
    undo: Annotated[
        Name, Option("Name of the deletion to undo.", brief="Name of the deletion to undo", command=None)
    ] = ""


@operation(
    "daily",
    "delete",
    Tool(
        "memory_delete", "Delete memory", "Delete a memory or folder; undo brings all back.", budget=BUDGET, core=True
    ),
    destroys=True,
)
def delete(call: Call, params: MemoryDeletion) -> View:
    """Delete a memory, a folder or a tier; `undelete` restores it.

    The files are moved aside. Before a folder or a tier is deleted, a checkpoint is made; if that fails, nothing is
    deleted.
    """
    folder = params.folder or (None if call.workspace else params.folder)
    named = [params.key is not None, folder is not None or params.tier is not None, bool(params.undo)]
    if sum(named) != 1:
        command = "delete needs a memory, or --folder or --tier, and not both"
        raise SpeckitError("E031", call.way(command, "memory_delete needs one of 'id', 'specFolder' and 'undo'"))
    if (params.older_than or params.skip_checkpoint) and not params.tier:
        raise SpeckitError("E031", "--older-than and --skip-checkpoint go with --tier")
    if params.undo:
        if params.confirm or params.dry_run:
            raise SpeckitError("E030", "an 'undo' takes no other parameter", actions=("call again with 'undo' alone",))
        return _restored(call, params.undo)
    deletions = call.memory().deletions
    if params.key is not None:
        from speckit_memory.server.console.arguments.memory_names import known_key

        key = known_key(call.memory(), params.key)
        return _deleted(call, deletions.delete(key, confirm=params.confirm, dry_run=params.dry_run), params.dry_run)
    # an empty name, as from an unset variable, is the root and not the same as no folder
    where = "" if folder is None else folder or "."
    if not params.tier:
        deleted = deletions.delete_folder(where, confirm=params.confirm, dry_run=params.dry_run)
        return _deleted(call, deleted, params.dry_run)
    return bulk_delete(
        call,
        TierDeletion(
            tier=params.tier,
            confirm=params.confirm,
            folder=where,
            older_than_days=params.older_than,
            skip_checkpoint=params.skip_checkpoint,
            dry_run=params.dry_run,
        ),
    )


class TierDeletion(Parameters):
    tier: Annotated[Tier, Option("Tier whose memories are deleted.")]
    confirm: Annotated[Flag, Option("Whether the deletion is confirmed.")] = False
    folder: Annotated[Folder, Option("Only the memories of this folder and below.", tool="specFolder")] = ""
    older_than_days: Annotated[
        OlderThan, Option("Only memories unchanged for this many days.", brief="Unchanged for this long")
    ] = None
    skip_checkpoint: Annotated[Flag, Option("Make no checkpoint first.")] = False
    dry_run: DryRun = False


@operation(
    "daily",
    "",
    Tool(
        "memory_bulk_delete",
        "Delete a tier",
        "Delete a tier after a checkpoint; needs confirm. memory_delete can undo it.",
        budget=BUDGET,
        lengthy=True,
    ),
    one_door="the command is `delete --tier`",
    destroys=True,
)
def bulk_delete(call: Call, params: TierDeletion) -> View:
    """Delete all memories of a tier, after a checkpoint."""
    deleted = call.memory().deletions.delete_tier(
        params.tier,
        folder=params.folder,
        older_than_days=params.older_than_days,
        confirm=params.confirm,
        skip_checkpoint=params.skip_checkpoint,
        dry_run=params.dry_run,
    )
    return _deleted(call, deleted, params.dry_run)


def _deleted(call: Call, deleted: DeletionResult, dry_run: bool) -> View:
    total, files = len(deleted.memories), plural(len(deleted.files), "file")
    memories = plural(total, "memory")
    summary = f"{memories} deleted, {files} moved aside" if total else "no such memory, nothing was deleted"
    hints = []
    if deleted.name:
        undo = call.way("to restore it: speckit-memory undelete {}", 'to undo it: memory_delete with undo="{}"')
        hints.append(undo.format(deleted.name))
    if deleted.checkpoint:
        hints.append(f"the state before it is the checkpoint {deleted.checkpoint}")
    rows = [
        {"id": one.id, "key": one.key, "title": one.title, "tier": str(one.tier)} for one in deleted.memories[:LISTED]
    ]
    return View(
        f"{memories} would be deleted, nothing was" if dry_run else summary,
        {
            "count": total,
            "dry_run": dry_run,
            "undo": deleted.name or None,
            "checkpoint": deleted.checkpoint or None,
            "files_moved": len(deleted.files),
            "memories": rows,
        },
        rows="memories",
        cells=lambda row: (row["key"], f"id {row['id']}", row["tier"]),
        hints=(*hints, *([f"and {total - LISTED} more"] if total > LISTED and not call.workspace else [])),
        reply={
            "figures_of_count": lambda _shown: {"count": total},
            "hint_of_count": lambda shown: f"{shown} of {total:,} are listed" if total > LISTED else "",
        },
    )


class Undeletion(Parameters):
    deletion: Annotated[Name | None, Option("Name of the deletion; without one, list them.", argument=True)] = None


@operation("daily", "undelete", one_door="the tool is memory_delete with `undo`")
def undelete(call: Call, params: Undeletion) -> View:
    """Restore a DELETION: memories with their learned data, and files.

    Without a name, list the deletions.
    """
    if params.deletion is not None:
        return _restored(call, params.deletion)
    rows = [
        {
            "name": one.name,
            "at": datetime.fromtimestamp(one.at, UTC).isoformat(timespec="seconds"),
            "what": one.why,
            "memories": len(one.memories),
        }
        for one in call.memory().deletions.list(LISTED)
    ]
    return View(
        f"{plural(len(rows), 'deletion')} that can be undone",
        {"deletions": rows},
        rows="deletions",
        cells=_deletion_cells,
        heads=("deletion", "at", "memories", "what"),
    )


def _deletion_cells(row: Row) -> tuple[str, ...]:
    return row["name"], row["at"], str(row["memories"]), row["what"]


def _restored(call: Call, name: str) -> View:
    from speckit_memory.engine.runtime.pending_vectors import WHO_EMBEDS

    back = call.memory().deletions.undelete(name)
    memories, files = plural(len(back.memories), "memory"), plural(len(back.files), "file")
    waiting = f"{plural(back.pending, 'passage')} without vectors: {WHO_EMBEDS}"
    found = f"lexical search finds all already; vectors follow: {WHO_EMBEDS}"
    return View(
        f"{memories} and {files} are back",
        {"undone": name, "memories": list(back.memories), "files": list(back.files), "pending": back.pending},
        hints=(call.way(waiting, found),) if back.pending else (),
    )


class ArchiveRestoration(Parameters):
    keys: Annotated[
        list[MemoryName],
        Option("Ids or keys of the memories; without one, list them.", argument=True, metavar=ID_OR_KEY),
    ] = []


@operation("daily", "unarchive", one_door="the tool is memory_validate, which restores a memory that was useful")
def unarchive(call: Call, params: ArchiveRestoration) -> View:
    """Restore archived memories for searches; without a name, list them.

    A memory that was archived because it had expired lives seven more days. An unknown name makes the whole command
    fail.
    """
    from speckit_memory.server.console.arguments.memory_names import known_key

    memory = call.memory()
    if not params.keys:
        rows = [found._asdict() for found in memory.lifecycle.archived()]
        return View(
            f"{plural(len(rows), 'memory')} archived",
            {"archived": rows},
            rows="archived",
            cells=lambda row: (row["key"], row["reason"], _day(row["archived_at"])),
            heads=("memory", "reason", "archived"),
        )
    known = [known_key(memory, name) for name in dict.fromkeys(params.keys)]
    restored = {key: memory.lifecycle.unarchive(key) for key in known}
    return View(
        f"{plural(sum(restored.values()), 'memory')} restored",
        {"restored": [key for key, was in restored.items() if was], "memories": list(restored)},
        facts={key: "found by searches again" if was else "was not archived" for key, was in restored.items()},
    )


def _day(when: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(when))
