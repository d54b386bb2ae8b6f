"""Checks one entry of a flag file, on its own and against the layers below."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from speckit_memory.config.flags.criterion import criterion_of
from speckit_memory.config.flags.flag_names import PREFIX, nearest_flag
from speckit_memory.config.flags.flag_states import ON, STATES
from speckit_memory.config.workspace.settings import VARIABLES
from speckit_memory.config.yaml.reader import MappingEntry, YamlMapping, locate, plain
from speckit_memory.errors import Problem, nearest

if TYPE_CHECKING:
    from speckit_memory.config.flags.flag import Flag

STATE = "state"
FACTS = ("group", "owner", "since", "expires", "evidence", "criterion")
"""The keys of a declaration other than the state."""
OF_STATE = ("was", "since", "evidence", "percent", "reason")
"""The details of a decision on a state: the previous state, its first day, its evidence, its share, and the purpose of
the flag if no figure shows that."""
KEYS = tuple(dict.fromkeys((STATE, *FACTS, *OF_STATE)))
SEE = ("see `speckit-memory flags list`, and docs/flags.md for the form of an entry",)
"""The remedy for an entry of the wrong form: the schema of pipelines does not describe flags."""
UNDECLARED = "E120"
"""The code for the name of an undeclared flag."""
"""The code of a name that no flag has."""


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


def check_state(item: MappingEntry) -> Iterator[Problem]:
    """Problems with the state of an entry."""
    if not isinstance(item.value, YamlMapping):
        message = f"'{item.key}' must be a mapping such as {{state: enabled}}; found {plain(item.value)!r}"
        yield Problem("E114", message, actions=SEE, where=item.value.where)
    elif item.value.get(STATE) is None:
        unknown = list(_unknown(item))
        yield from unknown
        if not unknown:
            message = f"'{item.key}' has no state; accepted: {', '.join(STATES)}"
            yield Problem("E114", message, actions=SEE, where=item.value.where)
    elif (state := entry_contents(item)[STATE]) not in STATES:
        close = nearest(state, STATES) if isinstance(state, str) else f"accepted: {', '.join(STATES)}"
        message = f"the state of '{item.key}' is {state!r}; {close}"
        yield Problem("E114", message, actions=SEE, where=locate(item.value, (STATE,)))


def check_values(item: MappingEntry) -> Iterator[Problem]:
    """Problems with the other values of an entry."""
    if not isinstance(item.value, YamlMapping):
        return
    if (was := item.value.get("was")) and plain(was.value) not in STATES:
        message = f"'was' of '{item.key}' is {plain(was.value)!r}; {nearest(str(plain(was.value)), STATES)}"
        yield Problem("E114", message, actions=SEE, where=was.value.where)
    if percent := item.value.get("percent"):
        share = plain(percent.value)
        if isinstance(share, bool) or not isinstance(share, int) or not 0 <= share <= 100:
            message = f"'percent' of '{item.key}' must be a whole number from 0 to 100; found {share!r}"
            yield Problem("E114", message, actions=SEE, where=percent.value.where)
    if (reason := item.value.get("reason")) and not (isinstance(why := plain(reason.value), str) and why.strip()):
        message = f"'reason' of '{item.key}' must be a sentence that says what the flag is for; found {why!r}"
        yield Problem("E114", message, actions=SEE, where=reason.value.where)
    if criterion := item.value.get("criterion"):
        yield from (replace(problem, actions=SEE) for problem in criterion_of(criterion.value)[1])


def _unknown(item: MappingEntry, accepted: Collection[str] = KEYS) -> Iterator[Problem]:
    for entry in item.value.entries if isinstance(item.value, YamlMapping) else ():
        if entry.key not in accepted:
            message = f"a flag has no key '{entry.key}'; {nearest(entry.key, accepted)}"
            yield Problem("E115", message, where=entry.where)


def check_duplicate(item: MappingEntry, below: Flag) -> Problem:
    """The problem of an extension that declares a flag already declared elsewhere."""
    message = f"two flags are called '{item.key}': {below.where} declares one, and {item.where} another"
    hint = "Extensions put their own name into their flags: SPECKIT_, the extension's name, the feature."
    return Problem("E124", message, hint, ("rename the flag of the extension",), item.where)


def beyond(item: MappingEntry, below: Flag) -> Iterator[Problem]:
    """Problems of a workspace entry for a flag declared elsewhere: it may only decide on the state."""
    for entry in item.value.entries if isinstance(item.value, YamlMapping) else ():
        if entry.key not in (STATE, *OF_STATE):
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
        return
    yield from _unknown(item)
