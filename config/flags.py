"""Feature flags as read from `flags.yaml` and the environment. Read once, by the builder (features P4, P11)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import resources

from speckit_memory.config.settings import VARIABLES
from speckit_memory.config.yaml_reader import Mapping as YamlMapping
from speckit_memory.config.yaml_reader import plain, read
from speckit_memory.errors import Problem, SpeckitError, Where, closest, nearest

STATES = ("off", "enabled", "permanent")
UNBUILT = ("dark_run", "shadow")
"""States that the product knows and cannot keep: a step would neither run beside the others nor be compared."""

INSTEAD = "Switch the step on in a pipeline file of its own, and compare the two with `speckit-memory eval run`."

PREFIX = "SPECKIT_"


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag and its state in this process. `origin` says who decided: the file or the environment."""

    name: str
    state: str
    origin: str

    @property
    def on(self) -> bool:
        """True when steps behind the flag take part in the served answer."""
        return self.state in ("enabled", "permanent")


def load_flags(environ: Mapping[str, str], text: str | None = None, file: str = "config/flags.yaml") -> dict[str, Flag]:
    """The flags of the shipped file (or of `text`), overridden by the environment. Raises with all problems."""
    flags, problems = read_flags(environ, text, file)
    if problems:
        raise SpeckitError.of(problems)
    return flags


def read_flags(
    environ: Mapping[str, str], text: str | None = None, file: str = "config/flags.yaml"
) -> tuple[dict[str, Flag], list[Problem]]:
    """The flags, and everything wrong with the file and with the environment.

    A flag to which the environment gives no usable value keeps the state of the file.
    """
    if text is None:
        text = resources.files("speckit_memory.config").joinpath("flags.yaml").read_text(encoding="utf-8")
    node, problems = read(text, file)
    start = Where(file, 1, 1)
    entry = node.get("flags") if isinstance(node, YamlMapping) else None
    if entry is None or not isinstance(entry.value, YamlMapping):
        return {}, [*problems, Problem("E114", "the file must hold a mapping under 'flags'", where=start)]
    flags: dict[str, Flag] = {}
    for item in entry.value.entries:
        value = plain(item.value)
        state = value.get("state") if isinstance(value, dict) else None
        if not item.key.startswith(PREFIX):
            problems.append(Problem("E120", f"'{item.key}' must begin with {PREFIX}", where=item.where))
        elif state in UNBUILT:
            message = f"the state of '{item.key}' is '{state}', which is not built: nothing would run or be compared"
            message += f"; accepted: {', '.join(STATES)}"
            problems.append(Problem("E114", message, hint=INSTEAD, where=item.value.where))
        elif state not in STATES:
            message = f"the state of '{item.key}' is {state!r}; accepted: {', '.join(STATES)}"
            problems.append(Problem("E114", message, where=item.value.where))
        else:
            flags[item.key] = _overridden(Flag(item.key, state, f"{file}:{item.where.line}"), environ, problems)
    return flags, problems


def unknown_variables(environ: Mapping[str, str], others: Collection[str] = ()) -> list[str]:
    """A remark on each variable of the environment that begins as ours do and is neither flag nor setting.

    `others` are further names that mean something to the caller. Never a failure: another version of the product, or
    another product, may know the name.
    """
    flags, _ = read_flags({})
    known = {*flags, *VARIABLES, *others}
    strange = sorted(name for name in environ if name.startswith(PREFIX) and name not in known)
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
    return Flag(flag.name, wanted, "environment")
