"""Pass 2: from positioned values to the structure of a pipeline file (features P1, P2).

This pass knows the four stages and the keys common to all steps. It knows no component: parameters stay positioned
values until the pipeline package binds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from speckit_memory.config.pipelines.shadow_entries import MODES, ShadowEntry, shadow_entries
from speckit_memory.config.pipelines.sources import DEFAULT
from speckit_memory.config.yaml.reader import MappingEntry, Node, Scalar, Sequence, YamlMapping, plain
from speckit_memory.errors import Problem, Where, nearest
from speckit_memory.errors.echo import LISTED, abridge, list_names

SLOTS = ("understand", "channels", "recover", "fusion", "rerank", "annotate")
"""The parts that contain steps, in order of execution. The first three make up the stage `candidates`."""

CANDIDATE_SLOTS = SLOTS[:3]

NEVER_INHERITED = ("flag", "replaces")
"""Keys that decide whether a listed step takes part: only the list itself sets them."""

LONGEST_BUDGET = 86_400_000
"""One day in milliseconds."""
BUDGETS_MS = {"simple": 30.0, "moderate": 100.0, "complex": 300.0, "shadow": 500.0}
"""Latency budgets per complexity (feature P10)."""

MOST_STEPS = 200
"""Maximum number of steps in a list. Each is checked against each other; shipped pipelines have up to twenty."""

_STAGES = ("candidates", "fusion", "rerank", "annotate")
_TOP_KEYS = ("pipeline", "description", "extends", *MODES, "budgets_ms", *_STAGES)
STEP_KEYS = ("use", "id", "flag", "optional", "replaces")
"""The keys of a step that are the same for all components; all other keys are the component's."""
PLACEMENT_KEYS = ("before", "after")
"""Additional keys of an added or changed step: the step before or after which it goes."""
INSTRUCTIONS = ("add", "change", "remove")
"""The keys of a slot with edits instead of a list of steps."""
_HOW = {
    "change: [{id: ID, before: OTHER}] moves a step": ("move", "reorder", "order", "place", "before", "after"),
    "change: [{id: ID, PARAM: VALUE}] changes a step": ("replace", "override", "set", "update", "edit", "modify"),
    "add: [{use: NAME, before: OTHER}] adds a step": ("insert", "append", "prepend"),
    "remove: [ID] leaves a step out": ("disable", "disabled", "drop", "delete", "skip", "exclude", "without"),
}
"""The right syntax for words that other tools use for the same edits."""
_SWITCHES = ("enabled", "enable", "active", "disabled", "disable", "skip", "on", "off")
LEAVE_OUT = "leave out the key to inherit the steps"
"""The remedy for a part without a value."""


@dataclass(frozen=True, slots=True)
class StepEntry:
    """One step as written. `params` are the component's keys.

    With `flags`, the step takes part only while one of them is on.
    """

    slot: str
    use: str
    id: str
    where: Where
    params: YamlMapping
    flags: tuple[str, ...] = ()
    optional: bool = False
    replaces: str = ""
    places: dict[str, Where] = field(default_factory=dict)
    """The place of each common key."""
    before: str = ""
    after: str = ""
    """Id of the step before or after which an added or changed step goes; "" in lists."""

    @property
    def waits_for(self) -> str:
        """Its flags for display; "none" without flags."""
        return " or ".join(self.flags) or "none"

    def place(self, key: str) -> Where:
        """The place of a common key, or of the step if the key is absent."""
        return self.places.get(key, self.where)


@dataclass(frozen=True, slots=True)
class Edits:
    """The edits of a file to the inherited steps of one slot. An entry of `change` needs only the id."""

    add: tuple[StepEntry, ...] = ()
    change: tuple[StepEntry, ...] = ()
    remove: tuple[tuple[str, Where], ...] = ()


@dataclass(frozen=True, slots=True)
class PipelineFile:
    """One pipeline file as written; a slot is None if the file does not list its steps."""

    file: str
    name: str
    description: str
    extends: str
    extends_where: Where
    budgets_ms: dict[str, float]
    """The budgets in the file."""
    slots: dict[str, tuple[StepEntry, ...] | None]
    places: dict[str, Where]
    """The place of each slot, or of the file for absent ones, and of each budget in the file."""
    edits: dict[str, Edits] = field(default_factory=dict)
    """Edits to the slots that it does not list."""
    beside: dict[str, tuple[ShadowEntry, ...] | None] = field(default_factory=dict)
    """Shadows and dark runs by key; None for an absent key."""

    def mentions(self, slot: str) -> bool:
        """Whether the file lists or edits a slot."""
        return self.slots[slot] is not None or slot in self.edits

    def written(self) -> Iterator[StepEntry]:
        """Every step that the file lists, adds or changes."""
        for slot in SLOTS:
            yield from self.steps(slot)
            if slot in self.edits:
                yield from self.edits[slot].change

    def steps(self, slot: str) -> tuple[StepEntry, ...]:
        """The steps that the file lists in a slot or adds to it."""
        return self.edits[slot].add if slot in self.edits else self.slots[slot] or ()


def shape(node: Node | None, file: str) -> tuple[PipelineFile, list[Problem]]:
    """The structure of a pipeline file and all its problems. An invalid part counts as absent."""
    problems: list[Problem] = []
    start = Where(file, 1, 1)
    if node is None:
        node = YamlMapping((), start)
    if not isinstance(node, YamlMapping):
        problems.append(_form(node.where, "a pipeline file", "a mapping of stages", node))
        node = YamlMapping((), start)
    _report_unknown(node.entries, _TOP_KEYS, "a pipeline file", problems)
    candidates = _candidates(node.get("candidates"), problems)
    # The first three slots are nested below `candidates`, the others are at the top level.
    sources = {
        slot: (candidates.get(slot) if candidates else None) if slot in CANDIDATE_SLOTS else node.get(slot)
        for slot in SLOTS
    }
    # A mapping is a set of edits unless it has the key `use`: then it is a single step, which should be a list item.
    edits = {
        slot: _edits(slot, entry.value, problems)
        for slot, entry in sources.items()
        if entry is not None and isinstance(entry.value, YamlMapping) and not entry.value.get("use")
    }
    slots = {slot: None if slot in edits else _steps(slot, entry, problems) for slot, entry in sources.items()}
    budgets = _budgets(node.get("budgets_ms"), problems)
    return (
        PipelineFile(
            file=file,
            name=_text(node.get("pipeline"), "", problems),
            description=_text(node.get("description"), "", problems),
            extends=_text(node.get("extends"), DEFAULT, problems),
            extends_where=extends.value.where if (extends := node.get("extends")) else node.where,
            budgets_ms={name: value for name, (value, _) in budgets.items()},
            slots=slots,
            places={slot: entry.where if entry else node.where for slot, entry in sources.items()}
            | {name: where for name, (_, where) in budgets.items()},
            edits=edits,
            beside={key: shadow_entries(node.get(key), problems) for key in MODES},
        ),
        problems,
    )


def _form(where: Where, what: str, expected: str, found: Node) -> Problem:
    return Problem("E114", f"{what} must be {expected}; found {_describe_node(found)}", where=where)


def _describe_node(node: Node) -> str:
    if isinstance(node, Scalar):
        return "nothing" if node.value is None else abridge(repr(node.value))
    return "a list" if isinstance(node, Sequence) else "a mapping"


def _how(key: str) -> str:
    return next((how for how, words in _HOW.items() if key in words), "")


def instead_of_switch(key: str, step: StepEntry) -> str:
    """How to switch a step on or off, for an invalid key that tries to; "" for any other key."""
    if key.lower() not in _SWITCHES:
        return ""
    edit = f"{step.slot}: {{remove: [{step.id}]}}"
    edit = f"candidates: {{{edit}}}" if step.slot in CANDIDATE_SLOTS else edit
    return f"a step in the file takes part, and {edit} leaves an inherited one out"


def _report_unknown(
    entries: Iterable[MappingEntry],
    accepted: Iterable[str],
    owner: str,
    problems: list[Problem],
    how: Callable[[str], str] = lambda _: "",
) -> None:
    names = tuple(accepted)
    unknown = [entry for entry in entries if entry.key not in names]
    for entry in unknown[:LISTED]:
        message = f"{owner} has no key '{abridge(entry.key)}'; {how(entry.key) or nearest(entry.key, names)}"
        problems.append(Problem("E115", message, where=entry.where))
    if further := unknown[LISTED:]:
        message = f"{owner} does not have {len(further):,} of the following keys either"
        problems.append(Problem("E115", message, where=further[0].where))


def _text(entry: MappingEntry | None, default: str, problems: list[Problem]) -> str:
    if entry is None:
        return default
    if isinstance(entry.value, Scalar) and isinstance(entry.value.value, str):
        return entry.value.value
    problems.append(_form(entry.value.where, f"'{entry.key}'", "a text", entry.value))
    return default


def _budgets(entry: MappingEntry | None, problems: list[Problem]) -> dict[str, tuple[float, Where]]:
    budgets: dict[str, tuple[float, Where]] = {}
    if entry is None:
        return budgets
    if not isinstance(entry.value, YamlMapping):
        problems.append(
            _form(entry.value.where, "'budgets_ms'", "a mapping of complexity to milliseconds", entry.value)
        )
        return budgets
    _report_unknown(entry.value.entries, BUDGETS_MS, "'budgets_ms'", problems)
    for item in entry.value.entries:
        value = plain(item.value)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= LONGEST_BUDGET:
            accepted = f"a number of milliseconds above 0, up to {LONGEST_BUDGET:,}"
            message = f"the budget '{item.key}' must be {accepted}; found {abridge(repr(value))}"
            problems.append(Problem("E114", message, where=item.value.where))
        elif item.key in BUDGETS_MS:
            budgets[item.key] = float(value), item.value.where
    return budgets


def _candidates(entry: MappingEntry | None, problems: list[Problem]) -> YamlMapping | None:
    if entry is None:
        return None
    if not isinstance(entry.value, YamlMapping):
        expected = "a mapping with 'understand', 'channels' and 'recover'"
        problems.append(_form(entry.value.where, "'candidates'", expected, entry.value))
        return None
    _report_unknown(entry.value.entries, CANDIDATE_SLOTS, "'candidates'", problems)
    return entry.value


def _steps(slot: str, entry: MappingEntry | None, problems: list[Problem]) -> tuple[StepEntry, ...] | None:
    if entry is None:
        return None
    if not isinstance(entry.value, Sequence):
        expected = f"a list of steps, or a mapping with {list_names(INSTRUCTIONS)}"
        wrong = _form(entry.value.where, f"'{slot}'", expected, entry.value)
        nothing = isinstance(entry.value, Scalar) and entry.value.value is None
        problems.append(replace(wrong, actions=(f"write {slot}: [] for no steps", LEAVE_OUT)) if nothing else wrong)
        return None
    if len(entry.value.items) > MOST_STEPS:
        message = f"'{slot}' lists {len(entry.value.items):,} steps; at most {MOST_STEPS} are accepted"
        problems.append(Problem("E114", message, where=entry.value.items[MOST_STEPS].where))
        return None
    return tuple(_each_step(slot, entry.value, problems))


def _edits(slot: str, node: YamlMapping, problems: list[Problem]) -> Edits:
    _report_unknown(node.entries, INSTRUCTIONS, f"'{slot}'", problems, _how)
    said: dict[str, tuple[Node, ...]] = {}
    for name in INSTRUCTIONS:
        entry = node.get(name)
        items = entry.value.items if entry and isinstance(entry.value, Sequence) else ()
        if entry and not isinstance(entry.value, Sequence) and plain(entry.value) is not None:
            problems.append(_form(entry.value.where, f"'{name}' of '{slot}'", "a list", entry.value))
        if len(items) > MOST_STEPS:
            message = f"'{name}' of '{slot}' lists {len(items):,} steps; at most {MOST_STEPS} are accepted"
            problems.append(Problem("E114", message, where=items[MOST_STEPS].where))
            items = ()
        said[name] = items
    removed: list[tuple[str, Where]] = []
    for item in said["remove"]:
        if isinstance(item, Scalar) and isinstance(item.value, str):
            removed.append((item.value, item.where))
        else:
            problems.append(_form(item.where, f"'remove' of '{slot}'", "a list of ids", item))
    return Edits(
        add=tuple(_each_step(slot, Sequence(said["add"], node.where), problems, "add")),
        change=tuple(_each_step(slot, Sequence(said["change"], node.where), problems, "change")),
        remove=tuple(removed),
    )


def _each_step(slot: str, sequence: Sequence, problems: list[Problem], instruction: str = "") -> Iterator[StepEntry]:
    """The steps of a whole slot or of one instruction."""
    keys = (*STEP_KEYS, *PLACEMENT_KEYS) if instruction else STEP_KEYS
    naming = ("id", "use") if instruction == "change" else ("use",)
    for item in sequence.items:
        if isinstance(item, Scalar) and isinstance(item.value, str) and instruction != "change":
            item = YamlMapping((MappingEntry("use", item.where, item),), item.where)  # noqa: PLW2901 - shorthand: `- mmr`
        if not isinstance(item, YamlMapping):
            problems.append(_form(item.where, f"a step of '{slot}'", f"a mapping with the key '{naming[0]}'", item))
            continue
        if not any(item.get(key) for key in naming):
            found = list_names([entry.key for entry in item.entries]) or "nothing"
            message = f"a step of '{slot}' needs the key '{naming[0]}'; found {found}"
            problems.append(Problem("E114", message, where=item.where))
            continue
        read = _StepKeys(item, problems)
        name = read.text("use", "")
        yield StepEntry(
            slot=slot,
            use=name,
            id=read.text("id", name),
            where=item.where,
            params=replace(item, entries=tuple(e for e in item.entries if e.key not in keys)),
            flags=read.names("flag"),
            optional=read.switch("optional"),
            replaces=read.name("replaces"),
            places={e.key: e.value.where for e in item.entries if e.key in keys},
            before=read.name("before") if instruction else "",
            after=read.name("after") if instruction else "",
        )


class _StepKeys:
    """Reads the common keys of a step, reporting values of a wrong type."""

    def __init__(self, step: YamlMapping, problems: list[Problem]) -> None:
        self.step = step
        self.problems = problems

    def text(self, key: str, default: str) -> str:
        """A text key."""
        return _text(self.step.get(key), default, self.problems)

    def name(self, key: str) -> str:
        """A key with the name of a flag or a step, "" if absent. An empty value is an error, as it has no effect."""
        name = self.text(key, "")
        if (entry := self.step.get(key)) and plain(entry.value) == "":
            self.problems.append(_form(entry.value.where, f"'{key}'", "a name", entry.value))
        return name

    def names(self, key: str) -> tuple[str, ...]:
        """A key with one name or a list of names."""
        entry = self.step.get(key)
        if entry is None or not isinstance(entry.value, Sequence):
            name = self.name(key)
            return (name,) if name else ()
        names = [plain(item) for item in entry.value.items]
        if names and len(set(map(str, names))) == len(names) and all(isinstance(name, str) and name for name in names):
            return tuple(map(str, names))
        message = f"'{key}' must be a name or a list of different names; found {names!r}"
        self.problems.append(Problem("E114", message, where=entry.value.where))
        return ()

    def switch(self, key: str) -> bool:
        """A true/false key, false when absent."""
        entry = self.step.get(key)
        if entry is None:
            return False
        value = plain(entry.value)
        if not isinstance(value, bool):
            self.problems.append(_form(entry.value.where, f"'{key}'", "true or false", entry.value))
            return False
        return value
