"""Checks one entry of a flag file, on its own and against the layers below."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from annotated_types import Interval

from speckit_memory.config.flags.criterion import criterion_of
from speckit_memory.config.flags.flag import ON, PREFIX, Flag, State, nearest_flag
from speckit_memory.config.workspace.settings import VARIABLES
from speckit_memory.config.yaml.accepted import Accepted
from speckit_memory.config.yaml.binding import bind_whole
from speckit_memory.config.yaml.reader import MappingEntry, YamlMapping, locate, plain
from speckit_memory.errors import Problem


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
