"""Pass 3: fill. Merges the layers of configuration and remembers where every value came from (DESIGN: layers).

package default < user file < environment < call. A slot that a file does not mention is inherited from the pipeline it
extends; the environment decides flags; the call overrides single parameters (`step.parameter=value`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from config.errors import Problem, SpeckitError, Where, nearest
from config.flags import Flag, read_flags
from config.pipeline_file import BUDGETS_MS, SLOTS, PipelineFile, Step, shape
from config.sources import DEFAULT, pipeline_text
from config.yaml_reader import Entry, read
from config.yaml_reader import Mapping as YamlMapping


@dataclass(frozen=True, slots=True)
class Effective:
    """A pipeline with all slots filled, and everything found wrong on the way."""

    file: str
    name: str
    description: str
    budgets_ms: dict[str, float]
    slots: dict[str, tuple[Step, ...]]
    places: dict[str, Where]
    """Where each slot stands, for problems of a slot as a whole."""
    inactive: tuple[Step, ...]
    """Steps whose flag is off, or that an active step replaces."""
    flags: dict[str, Flag]
    problems: tuple[Problem, ...]
    overridden: frozenset[tuple[str, str]] = frozenset()
    """(step, parameter) pairs that the call decided."""

    def steps(self) -> list[Step]:
        """All active steps in running order."""
        return [step for slot in SLOTS for step in self.slots[slot]]


def load(source: str, environ: Mapping[str, str], overrides: Mapping[str, str] | None = None) -> Effective:
    """Reads a pipeline by path or preset name and fills what it leaves open. Problems are collected, not raised.

    Raises SpeckitError only when there is no text to read at all. `overrides` maps "step.parameter" to YAML text.
    """
    files, problems = _chain(source)
    slots: dict[str, tuple[Step, ...]] = {}
    places: dict[str, Where] = {}
    for slot in SLOTS:
        source_of_slot = next((file for file in files if file.slots[slot] is not None), files[0])
        slots[slot] = source_of_slot.slots[slot] or ()
        places[slot] = source_of_slot.places[slot]
    flags, misread = read_flags(environ)
    problems += misread
    slots, inactive = _resolve_flags(slots, flags, problems)
    slots, overridden = _override(slots, inactive, overrides or {}, problems)
    first = files[0]
    budgets = next((file.budgets_ms for file in files if file.budgets_ms is not None), BUDGETS_MS)
    return Effective(
        file=first.file,
        name=first.name or source,
        description=first.description,
        budgets_ms=dict(budgets),
        slots=slots,
        places=places,
        inactive=inactive,
        flags=flags,
        problems=tuple(problems),
        overridden=overridden,
    )


def _chain(source: str) -> tuple[list[PipelineFile], list[Problem]]:
    """The file and those it extends, the nearest first; a file that cannot be extended gives way to the default."""
    text, name = pipeline_text(source)
    files: list[PipelineFile] = []
    problems: list[Problem] = []
    while True:
        node, found = read(text, name)
        file, misshapen = shape(node, name)
        problems += [*found, *misshapen]
        files.append(file)
        complete = all(steps is not None for steps in file.slots.values())
        if complete or source == DEFAULT:
            return files, problems
        source = file.extends
        try:
            text, name = pipeline_text(source, name)
        except SpeckitError as error:
            problems += [replace(problem, where=file.extends_where) for problem in error.problems]
            source = DEFAULT
            text, name = pipeline_text(source)
        if name in [earlier.file for earlier in files]:
            problems.append(Problem("E114", f"'{name}' extends itself", where=file.extends_where))
            source = DEFAULT
            text, name = pipeline_text(source)


def _resolve_flags(
    slots: dict[str, tuple[Step, ...]], flags: dict[str, Flag], problems: list[Problem]
) -> tuple[dict[str, tuple[Step, ...]], tuple[Step, ...]]:
    """Flags become structure: a step behind a closed flag is left out, a replacement takes the place it names."""
    inactive: list[Step] = []
    resolved: dict[str, tuple[Step, ...]] = {}
    for slot, steps in slots.items():
        active: list[Step] = []
        for step in steps:
            if step.flag and step.flag not in flags:
                message = f"the flag '{step.flag}' is not declared; {nearest(step.flag, flags)}"
                problems.append(Problem("E120", message, where=step.place("flag")))
            # a step behind an undeclared flag counts as active: one problem is enough
            (active if not step.flag or step.flag not in flags or flags[step.flag].on else inactive).append(step)
        ids = {step.id for step in steps}
        for step in steps:
            if step.replaces and (step.replaces not in ids or step.replaces == step.id):
                message = f"'{step.id}' replaces '{step.replaces}', which is no other step of '{slot}'; "
                message += nearest(step.replaces, ids - {step.id})
                problems.append(Problem("E119", message, where=step.place("replaces")))
        replacing: dict[str, Step] = {}
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


def _flag_hint(*steps: Step) -> str:
    flags = [step.flag for step in steps if step.flag]
    return f" (close one of the flags {', '.join(flags)})" if flags else ""


def _override(
    slots: dict[str, tuple[Step, ...]],
    inactive: tuple[Step, ...],
    overrides: Mapping[str, str],
    problems: list[Problem],
) -> tuple[dict[str, tuple[Step, ...]], frozenset[tuple[str, str]]]:
    done: set[tuple[str, str]] = set()
    for path, text in overrides.items():
        where = Where(f"--set {path}", 1, 1)
        step_id, dot, key = path.partition(".")
        active = [step for steps in slots.values() for step in steps]
        ids = [step.id for step in active]
        absent = next((step for step in inactive if step.id == step_id), None)
        if not dot or step_id not in ids:
            message = f"no step '{step_id}' to set '{path}' on; {nearest(step_id, ids)}"
            if dot and absent:
                message = f"'{path}' has no effect: {_why_absent(absent, active)}"
            problems.append(Problem("E030", message, hint="Write step.parameter=value.", where=where))
            continue
        node, found = read(text, where.file)
        problems += found
        if node is None:
            continue
        done.add((step_id, key))
        slots = {
            slot: tuple(
                _with_param(step, key, Entry(key, where, node)) if step.id == step_id else step for step in steps
            )
            for slot, steps in slots.items()
        }
    return slots, frozenset(done)


def _why_absent(step: Step, active: list[Step]) -> str:
    instead = next((other for other in active if other.replaces == step.id), None)
    if instead is None:
        return f"the step '{step.id}' waits for the flag {step.flag}"
    flag = f" (flag {instead.flag})" if instead.flag else ""
    return f"'{instead.id}'{flag} stands in the place of '{step.id}'; set it on '{instead.id}'"


def _with_param(step: Step, key: str, entry: Entry) -> Step:
    others = tuple(e for e in step.params.entries if e.key != key)
    return replace(step, params=YamlMapping((*others, entry), step.params.where))
