"""Feature flags: the declarations of all layers combined with the environment. Read once, by the builder (P4, P11).

shipped < extensions < workspace < environment. An extension only declares its own flags; a workspace switches those of
the product and of extensions, and declares its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache

from speckit_memory.config.files.paths import resolve_path
from speckit_memory.config.flags.criterion import criterion_of
from speckit_memory.config.flags.flag import ON, PREFIX, STATES, WORDS, Flag, nearest_flag_name
from speckit_memory.config.flags.flag_files import (
    FACTS,
    OF_STATE,
    STATE,
    UNDECLARED,
    FlagFile,
    beyond,
    check_duplicate,
    check_name,
    check_undeclared,
    check_values,
    entry_contents,
    shipped_flags,
    well_named,
    workspace_flags,
)
from speckit_memory.config.workspace.settings import VARIABLES, root_named_in
from speckit_memory.config.yaml.reader import MappingEntry, YamlMapping
from speckit_memory.errors import Problem, SpeckitError, nearest

Offered = Callable[[], Sequence[FlagFile]]
"""Loads extensions, if not yet loaded, and returns their flags."""


def nothing_offered() -> Sequence[FlagFile]:
    """No flags of extensions."""
    return ()


def load_flags(environ: Mapping[str, str], extensions: Sequence[FlagFile] = ()) -> dict[str, Flag]:
    """The flags in force, with those that `extensions` declare. Raises all problems together."""
    flags, problems = read_flags(environ, extensions)
    if problems:
        raise SpeckitError.of(problems)
    return flags


def read_flags(
    environ: Mapping[str, str], extensions: Sequence[FlagFile] = ()
) -> tuple[dict[str, Flag], list[Problem]]:
    """The flags, and all problems with files and environment.

    A flag keeps the state of the layer below if a layer gives it none that is valid.
    """
    flags, problems = declared_flags(environ, extensions)
    return {name: _overridden(flag, environ, problems) for name, flag in flags.items()}, problems


def flags_for(
    environ: Mapping[str, str], named: Collection[str], offered: Offered
) -> tuple[dict[str, Flag], list[Problem]]:
    """The flags as from `read_flags`, including those of extensions if a flag is named that is not ours.

    `named` are the flags that steps refer to. Extensions are only loaded (`offered`) if needed, as this takes time.
    """
    flags, problems = read_flags(environ)
    strange = not flags.keys() >= set(named)
    if any(problem.code == UNDECLARED for problem in problems):
        # An undeclared flag in the workspace's file may belong to an extension as well.
        strange |= not flags.keys() >= _switched(environ)
    extensions = offered() if strange else ()
    return read_flags(environ, extensions) if extensions else (flags, problems)


def extension_flag_problems(others: Sequence[FlagFile], new: FlagFile) -> list[Problem]:
    """Problems of an extension's flags in relation to those of the package and of other extensions."""
    problems: list[Problem] = []
    layer_flags([shipped_flags()[0], *others, new], problems)
    return problems


def declared_flags(
    environ: Mapping[str, str], extensions: Sequence[FlagFile] = ()
) -> tuple[dict[str, Flag], list[Problem]]:
    """The flags as declared in files, without the environment, and all problems with the files.

    `environ` and the working folder determine the workspace.
    """
    shipped, defects = _shipped()
    workspace, unusable = workspace_flags(resolve_path(root_named_in(environ)))
    problems = [*defects, *unusable]
    return layer_flags([*extensions, workspace], problems, upon=shipped), problems


@cache
def _shipped() -> tuple[dict[str, Flag], list[Problem]]:
    file, problems = shipped_flags()
    return layer_flags([file], problems), problems


def layer_flags(
    files: Sequence[FlagFile], problems: list[Problem], upon: Mapping[str, Flag] | None = None
) -> dict[str, Flag]:
    """The flags of files combined, lowest layer first, on top of the flags `upon`. Invalid entries are left out and
    added to `problems`."""
    flags = dict(upon or {})
    for file in files:
        for item in file.entries:
            below = flags.get(item.key)
            named = list(check_name(item))
            found = named or list(check_values(item))
            if file.of_workspace and not named and STATE in entry_contents(item):
                # A workspace switches declared flags, and declares its own with all facts.
                found += beyond(item, below) if below else check_undeclared(item, flags)
            if not found and file.extension and below:
                found = [check_duplicate(item, below)]
            problems += found
            if not found:
                flags[item.key] = _flag(item, file, below)
    return flags


def _flag(item: MappingEntry, file: FlagFile, below: Flag | None) -> Flag:
    """The flag from a valid entry."""
    says = entry_contents(item)
    state, decision = str(says[STATE]), {key: says[key] for key in OF_STATE if key in says}
    if below:
        return replace(below, state=state, decided=item.where, decision=decision, before=below.state)
    written = item.value.get("criterion") if isinstance(item.value, YamlMapping) else None
    return Flag(
        item.key,
        state,
        item.where,
        item.where,
        {name: says[name] for name in FACTS if name in says},
        file.of_workspace,
        file.extension,
        criterion_of(written.value)[0] if written else (),
        decision,
    )


def _switched(environ: Mapping[str, str]) -> set[str]:
    """The valid flag names that the workspace's file mentions."""
    entries = workspace_flags(resolve_path(root_named_in(environ)))[0].entries
    return {item.key for item in entries if well_named(item)}


def unknown_variables(
    environ: Mapping[str, str],
    others: Collection[str] = (),
    offered: Offered = nothing_offered,
) -> list[str]:
    """A remark on each environment variable with our prefix that is neither a flag nor a setting.

    `others` are further names known to the caller; extensions are loaded (`offered`) for an unknown name. Never an
    error: another version of the product, or another product, may know the name.
    """
    flags, _ = declared_flags(environ)
    return [remark for _, remark in _strange(environ, {*flags, *others}, offered)]


def misspelt_variables(
    environ: Mapping[str, str], flags: Collection[str], offered: Offered = nothing_offered
) -> tuple[str, ...]:
    """As `unknown_variables`, but only for variables close to one of the `flags` or a setting; for every answer."""
    return tuple(remark for close, remark in _strange(environ, flags, offered) if close)


def _strange(environ: Mapping[str, str], flags: Collection[str], offered: Offered) -> list[tuple[str, str]]:
    """For each variable without effect, the name most likely intended, "" for none, and a remark."""
    known = {*flags, *VARIABLES}
    strange = sorted(name for name in environ if name.startswith(PREFIX) and name not in known)
    if strange:
        # Extensions are loaded only now, and only if a variable is unknown.
        known |= {entry.key for file in offered() for entry in file.entries}
    found = []
    for name in (name for name in strange if name not in known):
        close = nearest_flag_name(name, known)
        perhaps = f"; did you mean '{close}'?" if close else ": no flag or setting has this name"
        found.append((close, f"the environment variable {name} has no effect{perhaps}"))
    return found


def _overridden(flag: Flag, environ: Mapping[str, str], problems: list[Problem]) -> Flag:
    value = environ.get(flag.name)
    if not value or not value.strip():  # shells may pass unset variables as empty
        return flag
    word = value.strip().lower()
    wanted = WORDS.get(word, word)
    if wanted not in STATES:
        message = f"the environment variable {flag.name} is {value!r}; {nearest(word, (*WORDS, *STATES))}"
        problems.append(Problem("E030", message))
        return flag
    if flag.state == "permanent":
        if wanted not in ON:
            problems.append(Problem("E030", f"{flag.name} is permanent and cannot be switched off"))
        return flag
    return replace(flag, state=wanted, decided=None, decision={}, before=flag.state)
