"""Resolves flags: steps behind a closed flag are left out, replacements take the place of the step they name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from speckit_memory.config.flags.flag import Flag
from speckit_memory.config.flags.flag_names import nearest_flag
from speckit_memory.config.pipelines.merging import merge_mappings
from speckit_memory.config.pipelines.pipeline_file import StepEntry
from speckit_memory.errors import Problem, nearest


def flags_resolved(
    slots: Mapping[str, tuple[StepEntry, ...]], flags: Mapping[str, Flag], problems: list[Problem]
) -> tuple[dict[str, tuple[StepEntry, ...]], tuple[StepEntry, ...]]:
    """The active and the inactive steps. Appends to `problems`."""
    inactive: list[StepEntry] = []
    resolved: dict[str, tuple[StepEntry, ...]] = {}
    for slot, steps in slots.items():
        active: list[StepEntry] = []
        for step in steps:
            for name in step.flags:
                if name not in flags:
                    message = f"the flag '{name}' is not declared; {nearest_flag(name, flags)}"
                    problems.append(Problem("E120", message, where=step.place("flag")))
            # a step behind an undeclared flag counts as active: one problem is enough
            opened = not step.flags or any(name not in flags or flags[name].on for name in step.flags)
            (active if opened else inactive).append(step)
        ids = {step.id for step in steps}
        for step in steps:
            if step.replaces and (step.replaces not in ids or step.replaces == step.id):
                message = f"'{step.id}' replaces '{step.replaces}', which is not another step of '{slot}'; "
                message += nearest(step.replaces, ids - {step.id})
                problems.append(Problem("E119", message, where=step.place("replaces")))
        # A replacement inherits parameters even from a step that is inactive itself.
        listed = {step.id: step for step in steps}
        active = [_heir(step, listed.get(step.replaces)) for step in active]
        replacing: dict[str, StepEntry] = {}
        for step in active:
            first = replacing.setdefault(step.replaces, step) if step.replaces else step
            if first is not step:
                message = f"'{step.id}' replaces '{step.replaces}', and so does '{first.id}'; keep one"
                message += _flag_hint(step, first)
                problems.append(Problem("E119", message, where=step.place("replaces")))
        inactive += [step for step in active if step.id in replacing]
        kept = [step for step in active if not step.replaces or step.replaces not in {s.id for s in active}]
        resolved[slot] = tuple(replacing.get(step.id, step) for step in kept)
    return resolved, tuple(inactive)


def _heir(step: StepEntry, replaced: StepEntry | None) -> StepEntry:
    """A replacement with the same component inherits the parameters of the replaced step that it does not set."""
    if replaced is None or replaced.use != step.use:
        return step
    return replace(step, params=merge_mappings(replaced.params, step.params))


def _flag_hint(*steps: StepEntry) -> str:
    flags = [name for step in steps for name in step.flags]
    return f" (close one of the flags {', '.join(flags)})" if flags else ""
