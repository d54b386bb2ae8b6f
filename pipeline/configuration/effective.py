"""Pass 3: fill. Merges a document with the documents it extends, and records the origin of every value.

package default < user file < environment < call. A slot that a document does not mention is inherited from the pipeline
it extends, and so are the settings that a listed step leaves out (`config.pipelines.layering`); the environment decides
flags; the call changes single values and disables steps. `pipeline.configuration.variants` derives one effective
pipeline from another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from speckit_memory.config.flags.flag import Flag, nearest_flag
from speckit_memory.config.flags.flags import Offered, flags_for
from speckit_memory.config.pipelines.document import ConfigDocument, with_extended
from speckit_memory.config.pipelines.layering import slots_of
from speckit_memory.config.pipelines.pipeline_file import BUDGETS_MS, SLOTS, StepEntry
from speckit_memory.config.pipelines.shadow_entries import MODES, ShadowEntry
from speckit_memory.config.yaml.reader import merge_mappings
from speckit_memory.errors import Problem, Where, nearest
from speckit_memory.pipeline.configuration.overrides import Override


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


@dataclass(frozen=True, slots=True)
class Effective:
    """A pipeline with all slots filled, and all problems found so far.

    The active steps follow from the listed steps, the flags and the changes, also after `dataclasses.replace`.
    """

    documents: tuple[ConfigDocument, ...]
    """The requested document and those that it extends, nearest first."""
    name: str
    listed: dict[str, tuple[StepEntry, ...]]
    """All steps of each slot, active or not."""
    flags: dict[str, Flag]
    misread: tuple[Problem, ...]
    """Problems of the documents and flags themselves."""
    changes: tuple[Override, ...] = ()
    """The changes made by the call, in order."""
    slots: dict[str, tuple[StepEntry, ...]] = field(init=False)
    """The active steps of each slot."""
    inactive: tuple[StepEntry, ...] = field(init=False)
    """Steps whose flag is off, or that an active step replaces."""
    problems: tuple[Problem, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Determines the active steps and their values."""
        problems = list(self.misread)
        slots, inactive = flags_resolved(self.listed, self.flags, problems)
        for change in self.changes:
            slots = change.applied(slots, inactive, problems)
        object.__setattr__(self, "slots", slots)
        object.__setattr__(self, "inactive", inactive)
        object.__setattr__(self, "problems", tuple(problems))

    @property
    def file(self) -> str:
        """The file name by which positions refer to the requested document."""
        return self.documents[0].file

    @property
    def description(self) -> str:
        """The description in the requested document."""
        return self.documents[0].said.description

    @property
    def budgets_ms(self) -> dict[str, float]:
        """The latency budget of each complexity."""
        said = (document.said.budgets_ms for document in reversed(self.documents))
        return {name: value for budgets in (BUDGETS_MS, *said) for name, value in budgets.items()}

    @property
    def budget_places(self) -> dict[str, Where]:
        """The position of each budget that a document sets."""
        said = (document.said for document in reversed(self.documents))
        return {name: file.places[name] for file in said for name in file.budgets_ms}

    @property
    def beside(self) -> tuple[ShadowEntry, ...]:
        """The shadow pipelines; each key comes from the nearest document that sets it."""
        said = [document.said.beside for document in self.documents]
        written = (next((one[key] for one in said if one.get(key) is not None), None) for key in MODES)
        return tuple(entry for entries in written for entry in entries or ())

    @property
    def places(self) -> dict[str, Where]:
        """The position of each slot, for problems of a slot as a whole."""
        files = [document.said for document in self.documents]
        return {s: next((f for f in files if f.mentions(s)), files[0]).places[s] for s in SLOTS}

    def steps(self) -> list[StepEntry]:
        """All active steps in running order."""
        return [step for slot in SLOTS for step in self.slots[slot]]

    def left_out(self, channel: str, where: Where) -> bool:
        """Whether a setting for a channel at this position is unused, because the channel is.

        Either the channel's flag is off, or a nearer document replaced the channel list that contained it, and the
        setting was inherited.
        """
        below = self.documents[1:]
        listed = {step.id for step in self.listed["channels"]}
        unlisted = {step.id for document in below for step in document.said.steps("channels")} - listed
        waiting = any(step.slot == "channels" and step.id == channel for step in self.inactive)
        return waiting or (channel in unlisted and any(document.file == where.file for document in below))


def fill_document(document: ConfigDocument, environ: Mapping[str, str], offered: Offered) -> Effective:
    """A document merged with those that it extends, with the flags set by the environment.

    `offered` yields the flags of extensions, for flags that the product does not declare.
    """
    documents, unextended = with_extended(document)
    unedited: list[Problem] = []
    listed = slots_of([one.said for one in documents], unedited)
    flags, misread = flags_for(
        environ, {name for steps in listed.values() for step in steps for name in step.flags}, offered
    )
    problems = (*(problem for one in documents for problem in one.problems), *unextended, *unedited, *misread)
    return Effective(
        documents=documents,
        name=document.said.name or document.source,
        listed=listed,
        flags=flags,
        misread=problems,
    )
