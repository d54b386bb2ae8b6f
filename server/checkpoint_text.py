"""A checkpoint, and what came of bringing it back, in a line and as JSON."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from speckit_memory.engine.vectors_to_come import WHO_EMBEDS
from speckit_memory.errors.echo import listed
from speckit_memory.server.output import counted
from speckit_memory.server.tools.rows import when

if TYPE_CHECKING:
    from speckit_memory.engine.checkpointing import BroughtBack
    from speckit_memory.memory.store.checkpoints.folder import Checkpoint
    from speckit_memory.memory.store.checkpoints.restoring import Restored

NAMED = 3
SHORT_METADATA = 400
"""Characters of JSON up to which a model is told the metadata."""
_KEYS = ("name", "created_at", "folder", "metadata", "bytes", "schema", "rows", "faults", "problem")


def as_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """What is told of a checkpoint; `problem` is None for one that may be restored."""
    whole = asdict(checkpoint)
    told: dict[str, Any] = {key: whole[key] for key in _KEYS}
    return told | {"memories": checkpoint.memories, "problem": checkpoint.problem or None}


def as_row(checkpoint: Checkpoint) -> dict[str, Any]:
    """The same for a model: without the rows of each table and long metadata; what is empty is left out."""
    short = as_json(checkpoint) | {"created_at": when(checkpoint.created_at) if checkpoint.created_at else ""}
    del short["rows"], short["schema"]
    if len(json.dumps(checkpoint.metadata)) > SHORT_METADATA:
        short["metadata"] = {"left_out": "too long; `speckit-memory checkpoint list --json` tells it"}
    return {key: value for key, value in short.items() if value or key == "memories"}


def told(checkpoint: Checkpoint) -> str:
    """Of when, of what and how much."""
    if checkpoint.problem:
        return f"cannot be restored: {checkpoint.problem}"
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(checkpoint.created_at))
    where = f" of {checkpoint.folder}" if checkpoint.folder else ""
    return f"{when}, {counted(checkpoint.memories, 'memory')}{where}, {checkpoint.bytes / (1 << 20):.1f} MB"


def told_restore(result: Restored) -> str:
    """What a restore did."""
    parts = [f"{result.returned} came back", f"{result.set_back} set back", f"{result.removed} removed"]
    if result.pending:
        waiting = counted(result.pending, "passage")
        parts.append(f"{waiting} without vectors of this embedding model: {WHO_EMBEDS}")
    if result.faults:
        parts.append(f"it was made of a store with faults: {result.faults[0]}")
    return f"{result.checkpoint.name}: {', '.join(parts)}"


def told_absent(done: BroughtBack, undo: str) -> str:
    """That memories came back without their files, and what brings those back, "" where all have theirs.

    `undo` is how a deletion is taken back, with the place of its name.
    """
    if not done.absent:
        return ""
    gone = counted(len(done.absent), "memory")
    them = "it" if len(done.absent) == 1 else "them"
    ways = listed([undo.format(name) for name in done.aside], NAMED)
    back = f"to bring the files back: {ways}" if ways else "put their files back before that"
    return (
        f"{gone} came back without a file, and the next index run deletes {them} again: "
        f"{listed(done.absent, NAMED)}; {back}"
    )
