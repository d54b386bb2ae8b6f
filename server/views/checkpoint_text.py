"""Describes a checkpoint, and the outcome of restoring it, in a line and as JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from speckit_memory.engine.runtime.pending_vectors import WHO_EMBEDS
from speckit_memory.errors.echo import list_names, plural
from speckit_memory.server.views.rows.rows import when

if TYPE_CHECKING:
    from speckit_memory.engine.api.checkpoints import RestoreResult
    from speckit_memory.memory.store.checkpoints.folder import Checkpoint
    from speckit_memory.memory.store.checkpoints.restoring import RestoreReport

NAMED = 3
SHORT_METADATA = 400
"""Longest metadata (characters of JSON) that a model is sent."""
_KEYS = ("name", "created_at", "folder", "metadata", "bytes", "schema", "rows", "faults", "problem")


def as_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """A checkpoint as plain data; `problem` is None if it can be restored."""
    whole = asdict(checkpoint)
    fields: dict[str, Any] = {key: whole[key] for key in _KEYS}
    return fields | {"memories": checkpoint.memories, "problem": checkpoint.problem or None}


def as_row(checkpoint: Checkpoint) -> dict[str, Any]:
    """A checkpoint for a model: without row counts per table, long metadata and empty fields."""
    # ISO 8601 instead of epoch seconds
    short = as_json(checkpoint) | {"created_at": when(checkpoint.created_at) if checkpoint.created_at else ""}
    del short["rows"], short["schema"]
    if len(json.dumps(checkpoint.metadata)) > SHORT_METADATA:
        short["metadata"] = {"left_out": "too long; `speckit-memory checkpoint list --json` shows it"}
    return {key: value for key, value in short.items() if value or key == "memories"}


def describe_checkpoint(checkpoint: Checkpoint) -> str:
    """The date, contents and size of a checkpoint."""
    if checkpoint.problem:
        return f"cannot be restored: {checkpoint.problem}"
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(checkpoint.created_at))
    where = f" of {checkpoint.folder}" if checkpoint.folder else ""
    return f"{when}, {plural(checkpoint.memories, 'memory')}{where}, {checkpoint.bytes / (1 << 20):.1f} MB"


def told_restore(result: RestoreReport) -> str:
    """Describes what a restore did."""
    parts = [f"{result.returned} came back", f"{result.set_back} set back", f"{result.removed} removed"]
    if result.pending:
        waiting = plural(result.pending, "passage")
        parts.append(f"{waiting} without vectors of this embedding model: {WHO_EMBEDS}")
    if result.faults:
        parts.append(f"it was made from a store with faults: {result.faults[0]}")
    return f"{result.checkpoint.name}: {', '.join(parts)}"


def told_files(done: RestoreResult, undo: str, save: str) -> str:
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


def parted_counts(done: RestoreResult) -> dict[str, int]:
    """Counts the memories and files on which store and workspace disagree."""
    parted = done.parted
    return {
        "differing": len(parted.differing),
        "without_file": len(parted.without_file),
        "without_memory": len(parted.removed),
    }
