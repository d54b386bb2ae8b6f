"""Feature flags: what files declare, laid upon one another, and the environment. Read once, by the builder (P4, P11).

shipped < extensions < workspace < environment. An extension declares flags of its own alone; a workspace switches those
of the product and of extensions on and off, and declares flags of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from speckit_memory.config.files.paths import resolved
from speckit_memory.config.flag_files import SHIPPED_FILE, FlagFile, shipped_flags, workspace_flags
from speckit_memory.config.settings import VARIABLES, root_named_in
from speckit_memory.config.yaml_reader import Entry, locate, plain
from speckit_memory.config.yaml_reader import Mapping as YamlMapping
from speckit_memory.errors import Problem, SpeckitError, Where, closest, nearest

STATES = ("off", "enabled", "permanent")
UNBUILT = ("dark_run", "shadow")
"""States that the product knows and cannot keep: a step would neither run beside the others nor be compared."""

INSTEAD = "Switch the step on in a pipeline file of its own, and compare the two with `speckit-memory eval run`."

PREFIX = "SPECKIT_"

UNDECLARED = "E120"
"""The code of a name that no flag has."""

STATE = "state"
FACTS = ("group", "owner", "since", "expires", "evidence")
"""What a declaration says of a flag beside its state."""

BY_ENVIRONMENT = "environment"


Offered = Callable[[], Sequence[FlagFile]]
"""Loads extensions, if that has not been done, and tells their flags."""


def nothing_offered() -> Sequence[FlagFile]:
    """The flags of no extension."""
    return ()


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag and its state in this process.

    `where` is the place of the declaration, `facts` what stands there, and `of_workspace` tells whether that is a file
    of the workspace. `decided` is the place that decided on the state, None when the environment did. `extension` is
    the distribution that declares it, "" unless one does.
    """

    name: str
    state: str
    where: Where
    decided: Where | None
    facts: Mapping[str, object] = field(default_factory=dict)
    of_workspace: bool = False
    extension: str = ""

    @property
    def origin(self) -> str:
        """Who decided on the state: a file and its line, the environment or the call."""
        if self.decided is None:
            return BY_ENVIRONMENT
        return f"{self.decided.file}:{self.decided.line}" if self.decided.path is None else str(self.decided)

    @property
    def on(self) -> bool:
        """True when steps behind the flag take part in the served answer."""
        return self.state in ("enabled", "permanent")


def load_flags(
    environ: Mapping[str, str],
    text: str | None = None,
    file: str = SHIPPED_FILE,
    extensions: Sequence[FlagFile] = (),
) -> dict[str, Flag]:
    """The flags in force, as `read_flags` has them. Raises with all problems."""
    flags, problems = read_flags(environ, text, file, extensions)
    if problems:
        raise SpeckitError.of(problems)
    return flags


def read_flags(
    environ: Mapping[str, str],
    text: str | None = None,
    file: str = SHIPPED_FILE,
    extensions: Sequence[FlagFile] = (),
) -> tuple[dict[str, Flag], list[Problem]]:
    """The flags, and everything wrong with the files and with the environment.

    The workspace is the one that this environment and the working folder name; a `text` stands in the place of all
    files. A flag to which a layer gives no usable state keeps the one below.
    """
    flags, problems = declared_flags(environ, text, file, extensions)
    return {name: _overridden(flag, environ, problems) for name, flag in flags.items()}, problems


def flags_for(
    environ: Mapping[str, str], named: Collection[str], offered: Offered
) -> tuple[dict[str, Flag], list[Problem]]:
    """The flags as `read_flags` has them, with those of extensions where somebody names a flag that is none of ours.

    `named` are the flags that steps wait for. Extensions are `offered` to be loaded, which costs time, if need be.
    """
    flags, problems = read_flags(environ)
    strange = not flags.keys() >= set(named) or any(problem.code == UNDECLARED for problem in problems)
    extensions = offered() if strange else ()
    return read_flags(environ, extensions=extensions) if extensions else (flags, problems)


def refused(others: Sequence[FlagFile], new: FlagFile) -> list[Problem]:
    """What is wrong with the flags of an extension beside those of the package and of other extensions."""
    problems: list[Problem] = []
    layered([shipped_flags()[0], *others, new], problems)
    return problems


def declared_flags(
    environ: Mapping[str, str],
    text: str | None = None,
    file: str = SHIPPED_FILE,
    extensions: Sequence[FlagFile] = (),
) -> tuple[dict[str, Flag], list[Problem]]:
    """The flags as their files have them, whatever the environment switches, and everything wrong with the files."""
    files = [shipped_flags(text, file), *((offered, list[Problem]()) for offered in extensions)]
    if text is None:
        files.append(workspace_flags(resolved(root_named_in(environ))))
    problems = [problem for _, found in files for problem in found]
    return layered([read for read, _ in files], problems), problems


def layered(files: Sequence[FlagFile], problems: list[Problem]) -> dict[str, Flag]:
    """The flags of files laid upon one another, the lowest first. What cannot be used joins the `problems`."""
    flags: dict[str, Flag] = {}
    for file in files:
        for item in file.entries:
            below = flags.get(item.key)
            found = list(_misnamed(item)) or list(_misstated(item))
            if not found and file.of_workspace:
                found = list(_beyond(item, below) if below else _undeclared(item, flags))
            if not found and file.extension and below:
                found = [_taken(item, below)]
            problems += found
            if not found:
                said = _facts(item)
                facts = {name: said[name] for name in FACTS if name in said}
                own = Flag(item.key, str(said[STATE]), item.where, item.where, facts, file.of_workspace, file.extension)
                flags[item.key] = replace(below, state=own.state, decided=item.where) if below else own
    return flags


def _facts(item: Entry) -> Mapping[str, object]:
    value = plain(item.value)
    return value if isinstance(value, dict) else {}


def _misnamed(item: Entry) -> Iterator[Problem]:
    if not item.key.startswith(PREFIX):
        yield Problem("E120", f"'{item.key}' must begin with {PREFIX}", where=item.where)
    elif item.key in VARIABLES:
        yield Problem("E120", f"'{item.key}' is the name of a setting, and no flag can have it", where=item.where)


def _misstated(item: Entry) -> Iterator[Problem]:
    state = _facts(item).get(STATE)
    if not isinstance(item.value, YamlMapping):
        message = f"'{item.key}' must be a mapping such as {{state: enabled}}; found {plain(item.value)!r}"
        yield Problem("E114", message, where=item.value.where)
    elif state in UNBUILT:
        message = f"the state of '{item.key}' is '{state}', which is not built: nothing would run or be compared"
        message += f"; accepted: {', '.join(STATES)}"
        yield Problem("E114", message, hint=INSTEAD, where=item.value.where)
    elif state not in STATES:
        message = f"the state of '{item.key}' is {state!r}; accepted: {', '.join(STATES)}"
        yield Problem("E114", message, where=item.value.where)


def _taken(item: Entry, below: Flag) -> Problem:
    message = f"two flags are called '{item.key}': {below.where} declares one, and {item.where} another"
    hint = "An extension names its flags after itself: SPECKIT_, its own name, what is switched."
    return Problem("E124", message, hint, ("rename the flag of the extension",), item.where)


def _beyond(item: Entry, below: Flag) -> Iterator[Problem]:
    """What a workspace may not say of a flag that it does not declare: anything but on or off."""
    for entry in item.value.entries if isinstance(item.value, YamlMapping) else ():
        if entry.key != STATE:
            message = f"a workspace decides only the state of '{item.key}', which {below.where} declares"
            yield Problem("E115", f"{message}; found '{entry.key}'", where=entry.where)
    state = _facts(item)[STATE]
    if (state == "permanent") != (below.state == "permanent"):
        message = f"{item.key} is permanent and cannot be switched off"
        if state == "permanent":
            message = f"{item.key} cannot be made permanent here; accepted: off, enabled"
        hint = f"What is permanent is decided where the flag is declared: {below.where}."
        actions = ("remove the entry",)
        yield Problem("E124", message, hint, actions, locate(item.value, (STATE,)))


def _undeclared(item: Entry, flags: Collection[str]) -> Iterator[Problem]:
    """What is wrong with a flag that a workspace adds. Without any facts it is a misspelt one."""
    said = _facts(item).keys()
    if not said & set(FACTS):
        message = f"no flag is called '{item.key}'; {_nearest(item.key, flags)}"
        hint = f"To declare a flag of your own, give it {', '.join(FACTS)}."
        yield Problem(UNDECLARED, message, hint=hint, where=item.where)
        return
    for entry in item.value.entries if isinstance(item.value, YamlMapping) else ():
        if entry.key not in (STATE, *FACTS):
            message = f"a flag has no key '{entry.key}'; {nearest(entry.key, (STATE, *FACTS))}"
            yield Problem("E115", message, where=entry.where)


def _nearest(name: str, known: Collection[str]) -> str:
    close = closest(name.removeprefix(PREFIX), [other.removeprefix(PREFIX) for other in known])
    return f"did you mean '{PREFIX}{close}'?" if close else "see `speckit-memory flags list`"


def unknown_variables(
    environ: Mapping[str, str],
    others: Collection[str] = (),
    offered: Offered = nothing_offered,
) -> list[str]:
    """A remark on each variable of the environment that begins as ours do and is neither flag nor setting.

    `others` are further names that mean something to the caller; extensions are `offered` when a name is none of ours.
    Never a failure: another version of the product, or another product, may know the name.
    """
    flags, _ = declared_flags(environ)
    known = {*flags, *VARIABLES, *others}
    strange = sorted(name for name in environ if name.startswith(PREFIX) and name not in known)
    if strange:
        known |= {entry.key for file in offered() for entry in file.entries}
        strange = [name for name in strange if name not in known]
    return [f"the environment variable {name} has no effect{_meant(name, known)}" for name in strange]


def _meant(name: str, known: Collection[str]) -> str:
    # the common beginning alone would make any two names similar
    close = closest(name.removeprefix(PREFIX), [other.removeprefix(PREFIX) for other in known])
    return f"; did you mean '{PREFIX}{close}'?" if close else ": no flag or setting is called so"


def _overridden(flag: Flag, environ: Mapping[str, str], problems: list[Problem]) -> Flag:
    value = environ.get(flag.name)
    if value is None:
        return flag
    word = value.strip().lower()
    wanted = {"true": "enabled", "false": "off"}.get(word)
    if word in UNBUILT:
        message = (
            f"the environment variable {flag.name} asks for '{word}', which is not built: nothing would run or be "
        )
        problems.append(Problem("E030", f"{message}compared; accepted: false, true", hint=INSTEAD))
        return flag
    if wanted is None:
        problems.append(
            Problem("E030", f"the environment variable {flag.name} is {value!r}; {nearest(value, ('true', 'false'))}")
        )
        return flag
    if flag.state == "permanent" and wanted == "off":
        problems.append(Problem("E030", f"{flag.name} is permanent and cannot be switched off"))
        return flag
    return replace(flag, state=wanted, decided=None)
