"""Writes pipeline files that remove one step of another pipeline, which no option of a call can do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from speckit_memory.config.pipelines.sources import presets
from speckit_memory.config.workspace.settings import Settings
from speckit_memory.engine import components
from speckit_memory.engine.explain.changes import QueryEdit
from speckit_memory.pipeline.configuration.builder import CheckedPipeline, examine
from speckit_memory.pipeline.configuration.loading import name_of
from speckit_memory.pipeline.configuration.variants import without

CANDIDATES = ("understand", "channels", "recover")
"""The slots of stage 1, which are nested under its name."""


def with_file(change: QueryEdit, checked: CheckedPipeline, config: Settings) -> QueryEdit:
    """Adds to the removal of a step a pipeline file with the same effect, if there is one.

    `checked` is the unchanged pipeline; a file cannot extend one that was given as a value.
    """
    if change.kind != "step":
        return change
    source = name_of(checked.effective)
    slot = next(entry.step.slot for entry in checked.bound if entry.id == change.name)
    removal: dict[str, object] = {slot: {"remove": [change.name]}}
    if source not in presets():
        source = str(Path(source).absolute())
        if not Path(source).is_file():
            return change
    said = {"extends": source, **({"candidates": removal} if slot in CANDIDATES else removal)}
    plain = replace(checked.effective, changes=())
    registry = components.registry(config.environ, config.root)
    by_file, by_call = (
        examine(one, registry, config.environ_of_root) for one in (said, without(plain, change.name, forgotten=True))
    )
    if by_file.hash != by_call.hash:
        return change
    inner = f"{slot}: {{remove: [{change.name}]}}"
    body = f"candidates:\n  {inner}" if slot in CANDIDATES else inner
    return replace(change, file=f"extends: {source}\n{body}\n")
