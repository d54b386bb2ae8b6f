"""Reads and checks the declarations of feature flags: in the package, in extensions, and in `.speckit/flags.yaml`.

The entries read here are combined by `config.flags.flags`.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, ClassVar

from annotated_types import Interval

from speckit_memory.config.files.regular_file import workspace_text
from speckit_memory.config.flags.criterion import criterion_of
from speckit_memory.config.flags.flag import ON, PREFIX, Flag, State, nearest_flag
from speckit_memory.config.workspace.settings import FLAGS_FILE, VARIABLES
from speckit_memory.config.yaml.accepted import Accepted
from speckit_memory.config.yaml.binding import bind_whole
from speckit_memory.config.yaml.reader import MappingEntry, Node, Scalar, YamlMapping, locate, plain, read
from speckit_memory.errors import Problem, Where, nearest

SHIPPED_FILE = "config/flags.yaml"
"""The name in positions of the package's file."""


@dataclass(frozen=True, slots=True)
class FlagFile:
    """The entries of one file, and whether it belongs to a workspace.

    Declarations in the code of an `extension` count as a file, with the code as position; "" for all others.
    """

    file: str
    entries: tuple[MappingEntry, ...]
    of_workspace: bool = False
    extension: str = ""


def said_in_code(name: str, facts: abc.Mapping[str, str], where: Where) -> MappingEntry:
    """The entry for a flag that an extension declares in code."""
    said = tuple(MappingEntry(key, where, Scalar(value, where)) for key, value in facts.items())
    return MappingEntry(name, where, YamlMapping(said, where))


def shipped_flags() -> tuple[FlagFile, list[Problem]]:
    """The package's file, and all problems with its form."""
    text = resources.files("speckit_memory.config").joinpath("flags.yaml").read_text(encoding="utf-8")
    return _flag_file(text, SHIPPED_FILE, of_workspace=False)


def workspace_flags(root: Path) -> tuple[FlagFile, list[Problem]]:
    """The file of a workspace, empty if there is none, and all problems with its form."""
    file = root / FLAGS_FILE
    text, unread = workspace_text(file)
    if text is None:
        return FlagFile(str(file), (), of_workspace=True), unread
    return _flag_file(text, str(file), of_workspace=True)


def _flag_file(text: str, file: str, *, of_workspace: bool) -> tuple[FlagFile, list[Problem]]:
    """The entries of a file, and all problems with its form."""
    nothing = FlagFile(file, (), of_workspace)
    node, problems = _read(text, file)
    if node is None or _empty(node):
        return nothing, problems
    if not isinstance(node, YamlMapping):
        return nothing, [*problems, _form(node.where, "the file must be a mapping with the key 'flags'")]
    for other in (entry for entry in node.entries if entry.key != "flags"):
        message = f"the file has no key '{other.key}'; {nearest(other.key, ('flags',))}"
        if isinstance(other.value, YamlMapping) and other.key.startswith(PREFIX):
            message = f"'{other.key}' is a flag; write it, indented, below a line 'flags:'"
        problems.append(Problem("E115", message, where=other.where))
    entry = node.get("flags")
    if entry is None or _empty(entry.value):
        return nothing, problems
    if not isinstance(entry.value, YamlMapping):
        return nothing, [*problems, _form(entry.value.where, "'flags' must be a mapping of names to flags")]
    return FlagFile(file, entry.value.entries, of_workspace), problems


def _read(text: str, file: str) -> tuple[Node | None, list[Problem]]:
    """Parse a text. The state `off` needs no quotes, since it is unambiguous here."""
    node, problems = read(text, file)
    entry = node.get("flags") if isinstance(node, YamlMapping) else None
    flags = [one.value for one in entry.value.entries] if entry and isinstance(entry.value, YamlMapping) else []
    states = {
        said.value.where
        for flag in flags
        if isinstance(flag, YamlMapping)
        for said in flag.entries
        if said.key in ("state", "was") and isinstance(said.value, Scalar) and said.value.value == "off"
    }
    return node, [problem for problem in problems if problem.code != "E113" or problem.where not in states]


def _empty(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is None


def _form(where: Where, message: str) -> Problem:
    hint = "For example: flags: {SPECKIT_NOVELTY_BOOST: {state: enabled}}"
    return Problem("E114", message, hint, ("see docs/workspace.md",), where)


def _sentence(value: Any) -> str:
    if not (isinstance(value, str) and value.strip()):
        raise ValueError
    return str(value)


@dataclass(frozen=True, slots=True)
class FlagEntry:
    """The keys of a flag in a file. The audit judges the facts of declarations; a criterion is bound on its own."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}
    EXAMPLE: ClassVar = "{state: enabled}"

    state: State
    group: Any = None
    owner: Any = None
    since: Any = None
    expires: Any = None
    evidence: Any = None
    criterion: Any = None
    was: State = "off"
    percent: Annotated[int, Interval(ge=0, le=100), Accepted("a whole number from 0 to 100")] = 100
    reason: Annotated[str, Accepted("a sentence that says what the flag is for", _sentence)] = ""


STATE = "state"
FACTS = ("group", "owner", "since", "expires", "evidence", "criterion")
"""The keys of a declaration other than the state."""
OF_STATE = ("was", "since", "evidence", "percent", "reason")
"""The details of a decision on a state: the previous state, its first day, its evidence, its share, and the purpose of
the flag if no figure shows that."""
SEE = ("see `speckit-memory flags list`, and docs/flags.md for the form of an entry",)
"""The remedy for an entry of the wrong form: the schema of pipelines does not describe flags."""
UNDECLARED = "E120"
"""The code for the name of an undeclared flag."""


def entry_contents(item: MappingEntry) -> Mapping[str, object]:
    """The contents of an entry; empty if it is not a mapping."""
    value = plain(item.value)
    return value if isinstance(value, dict) else {}


def well_named(item: MappingEntry) -> bool:
    """Whether a flag may have this name."""
    return item.key.startswith(PREFIX) and item.key not in VARIABLES


def check_name(item: MappingEntry) -> Iterator[Problem]:
    """Problems with the name of an entry."""
    if not item.key.startswith(PREFIX):
        yield Problem("E120", f"'{item.key}' must begin with {PREFIX}", where=item.where)
    elif item.key in VARIABLES:
        yield Problem("E120", f"'{item.key}' is the name of a setting, and no flag can have it", where=item.where)


def check_values(item: MappingEntry) -> Iterator[Problem]:
    """Problems with the values of an entry."""
    name = f"'{item.key}'"
    yield from bind_whole(FlagEntry, item.value, name, f" of {name}", SEE)[1]
    criterion = item.value.get("criterion") if isinstance(item.value, YamlMapping) else None
    if criterion:
        yield from (replace(problem, actions=SEE) for problem in criterion_of(criterion.value)[1])


def check_duplicate(item: MappingEntry, below: Flag) -> Problem:
    """The problem of an extension that declares a flag already declared elsewhere."""
    message = f"two flags are called '{item.key}': {below.where} declares one, and {item.where} another"
    hint = "Extensions put their own name into their flags: SPECKIT_, the extension's name, the feature."
    return Problem("E124", message, hint, ("rename the flag of the extension",), item.where)


def beyond(item: MappingEntry, below: Flag) -> Iterator[Problem]:
    """Problems of a workspace entry for a flag declared elsewhere: it may only decide on the state."""
    for entry in item.value.entries if isinstance(item.value, YamlMapping) else ():
        if entry.key in FACTS and entry.key not in OF_STATE:
            message = f"a workspace decides only the state of '{item.key}', which {below.where} declares"
            yield Problem("E115", f"{message}; found '{entry.key}'", where=entry.where)
    if below.state == "permanent" and entry_contents(item)[STATE] != "permanent":
        message = f"{item.key} is permanent and cannot be switched off"
        hint = f"Only the declaration of a permanent flag can change it: {below.where}."
        yield Problem("E124", message, hint, ("remove the entry",), locate(item.value, (STATE,)))


def check_undeclared(item: MappingEntry, flags: Collection[str]) -> Iterator[Problem]:
    """Problems with a flag that a workspace adds. Without any facts it is taken for a misspelt one."""
    if not entry_contents(item).keys() & (set(FACTS) - set(OF_STATE)):
        message = f"no flag is called '{item.key}'; {nearest_flag(item.key, flags)}"
        facts = [fact for fact in FACTS if fact != "evidence" or entry_contents(item)[STATE] in ON]
        hint = f"To declare a flag of your own, give it {', '.join(facts)}."
        yield Problem(UNDECLARED, message, hint=hint, where=item.where)
