"""Applies a pipeline file to what it inherits (feature P2).

Values that a file does not name are inherited. A slot that it lists has exactly the listed steps; a slot that it edits
(`config.pipelines.slot_edits`) has the inherited steps with additions, changes and removals.
"""

from __future__ import annotations

from collections import abc
from dataclasses import replace

from speckit_memory.config.pipelines.pipeline_file import NEVER_INHERITED, SLOTS, PipelineFile, StepEntry
from speckit_memory.config.pipelines.slot_edits import edit_slot
from speckit_memory.config.yaml.reader import Node, Sequence, YamlMapping, merge_mappings
from speckit_memory.errors import Problem, Where


def slots_of(files: abc.Sequence[PipelineFile], problems: list[Problem]) -> dict[str, tuple[StepEntry, ...]]:
    """The steps of a file and of those it extends, nearest first. Invalid edits are added to `problems`.

    The nearest file that lists a slot decides on its steps, their order and their flags; nearer files may edit them. A
    step with the same id and component as in the file below only gives the differences.
    """
    slots: dict[str, tuple[StepEntry, ...]] = dict.fromkeys(SLOTS, ())
    # From the farthest parent to the file itself: each layer refines the one before.
    for file in reversed(files):
        for slot, steps in file.slots.items():
            if steps is not None:
                slots[slot] = tuple(_heir(step, slots[slot]) for step in steps)
        for slot, edits in file.edits.items():
            slots[slot] = edit_slot(slots[slot], edits, slot, problems)
    return slots


def _heir(step: StepEntry, inherited: abc.Sequence[StepEntry]) -> StepEntry:
    """The step, with unset values taken from the inherited step that it restates."""
    below = next((other for other in inherited if (other.id, other.use) == (step.id, step.use)), None)
    if below is None:
        return step
    return replace(
        step,
        # A restated step of the same component inherits parameters that it does not name.
        params=merge_mappings(below.params, step.params),
        optional=step.optional if "optional" in step.places else below.optional,
        places={key: at for key, at in below.places.items() if key not in NEVER_INHERITED} | step.places,
    )


def holds(node: Node | StepEntry, where: Where) -> bool:
    """Whether a value written at this place is part of a value, or of the parameters of a step."""
    match node:
        case StepEntry(params=params):
            return holds(params, where)
        case YamlMapping(entries=entries):
            return any(where in (entry.where, entry.value.where) or holds(entry.value, where) for entry in entries)
        case Sequence(items=items):
            return any(item.where == where or holds(item, where) for item in items)
    return False
