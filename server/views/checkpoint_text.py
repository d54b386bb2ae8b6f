"""A checkpoint, and what came of bringing it back, in a line and as JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from speckit_memory.engine.runtime.vectors_to_come import WHO_EMBEDS
from speckit_memory.errors.echo import listed
from speckit_memory.server.console.output import counted
from speckit_memory.server.views.rows.rows import when

if TYPE_CHECKING:
    from speckit_memory.engine.api.checkpoints import BroughtBack
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


def told_files(done: BroughtBack, undo: str, save: str) -> str:
    """Where the store and the files differ now. The files are as they were; the store is what holds.

    `undo` is how a deletion is taken back, with the place of its name, and `save` how the text of a file is taken.
    """
    parted = done.parted
    lines = []
    if parted.differing:
        lines.append(_named(parted.differing, "memory", "differs from its file", "differ from their files"))
    if parted.without_file:
        ways = listed([undo.format(name) for name in done.aside], NAMED)
        back = f" (to bring the files back: {ways})" if ways else ""
        lines.append(f"{_named(parted.without_file, 'memory', 'has no file', 'have no file')}{back}")
    if parted.removed:
        lines.append(_named(parted.removed, "file", "has no memory any more", "have no memory any more"))
    if not lines:
        return "no file was touched, and none says something else than what came back"
    return (
        f"no file was touched, and index runs leave what came back until a file changes: {'; '.join(lines)}; "
        f"{save} takes what a file says"
    )


def _named(keys: Sequence[str], noun: str, one: str, several: str) -> str:
    return f"{counted(len(keys), noun)} {one if len(keys) == 1 else several}: {listed(keys, NAMED)}"


def parted_counts(done: BroughtBack) -> dict[str, int]:
    """How many memories and files the store and the workspace do not agree on."""
    parted = done.parted
    return {
        "differing": len(parted.differing),
        "without_file": len(parted.without_file),
        "without_memory": len(parted.removed),
    }
