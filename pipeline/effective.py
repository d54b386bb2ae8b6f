"""Pass 3: fill. Merges the layers of configuration and remembers where every value came from (DESIGN: layers).

package default < user file < environment < call. A slot that a file does not mention is inherited from the pipeline it
extends, and so is what a listed step does not say about itself (`config.layering`); the environment decides flags; the
call overrides single values (`step.parameter=value`, `step.parameter.key=value`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from speckit_memory.config.flags import Flag, read_flags
from speckit_memory.config.layering import slots_of
from speckit_memory.config.pipeline_file import BUDGETS_MS, SLOTS, PipelineFile, Step, shape
from speckit_memory.config.sources import DEFAULT, NOTHING, pipeline_text, presets
from speckit_memory.config.yaml_reader import read
from speckit_memory.errors import Problem, SpeckitError, Where, nearest
from speckit_memory.pipeline.overriding import overridden


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
    budget_places: dict[str, Where] = field(default_factory=dict)
    """Where each budget stands that a file mentions."""
    extended: frozenset[str] = frozenset()
    """The files that `file` extends."""
    unlisted: frozenset[str] = frozenset()
    """Channels of those files that are left out of the list that stands nearer."""

    def steps(self) -> list[Step]:
        """All active steps in running order."""
        return [step for slot in SLOTS for step in self.slots[slot]]

    def left_out(self, channel: str, where: Where) -> bool:
        """Whether what is said about a channel at this place is out of use, because the channel is.

        It waits for a flag; or the list of channels in which it stood gave way to a nearer one, and what is said about
        it was inherited.
        """
        waiting = any(step.slot == "channels" and step.id == channel for step in self.inactive)
        return waiting or (channel in self.unlisted and where.file in self.extended)


def load(source: str, environ: Mapping[str, str], overrides: Mapping[str, str] | None = None) -> Effective:
    """Reads a pipeline by path or preset name and fills what it leaves open. Problems are collected, not raised.

    Raises SpeckitError only when there is no text to read at all. `overrides` maps "step.parameter" or
    "step.parameter.key" to YAML text.
    """
    files, problems = _chain(source)
    slots = slots_of(files, problems)
    places = {slot: next((file for file in files if file.mentions(slot)), files[0]).places[slot] for slot in SLOTS}
    budgets = dict(BUDGETS_MS)
    budget_places: dict[str, Where] = {}
    for file in reversed(files):
        budgets |= file.budgets_ms
        budget_places |= {name: file.places[name] for name in file.budgets_ms}
    listed = {step.id for step in slots["channels"]}
    flags, misread = read_flags(environ)
    problems += misread
    slots, inactive = _resolve_flags(slots, flags, problems)
    slots = overridden(slots, inactive, overrides or {}, problems)
    first = files[0]
    return Effective(
        file=first.file,
        name=first.name or source,
        description=first.description,
        budgets_ms=budgets,
        slots=slots,
        places=places,
        inactive=inactive,
        flags=flags,
        problems=tuple(problems),
        budget_places=budget_places,
        extended=frozenset(file.file for file in files[1:]),
        unlisted=frozenset(step.id for file in files[1:] for step in file.steps("channels")) - listed,
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
        if file.extends == NOTHING:
            return files, problems
        source = file.extends
        try:
            text, name = pipeline_text(source, name)
        except SpeckitError as error:
            problems += [_no_parent(problem, file) for problem in error.problems]
            source = DEFAULT
            text, name = pipeline_text(source)
        if name in [earlier.file for earlier in files]:
            problems.append(Problem("E114", f"'{name}' extends itself", where=file.extends_where))
            source = DEFAULT
            text, name = pipeline_text(source)


def _no_parent(problem: Problem, file: PipelineFile) -> Problem:
    """That the file extended is not there, with everything that could be meant."""
    if problem.code == "E121":
        meant = nearest(file.extends, [*presets(), NOTHING])
        problem = replace(problem, message=f"'{file.extends}' is neither a file nor a preset; {meant}")
    return replace(problem, where=file.extends_where)


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
