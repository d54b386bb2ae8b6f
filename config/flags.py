"""Feature flags as read from `flags.yaml` and the environment. Read once, by the builder (features P4, P11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from config.errors import Problem, SpeckitError, Where, nearest
from config.yaml_reader import Mapping as YamlMapping
from config.yaml_reader import plain, read

STATES = ("off", "dark_run", "shadow", "enabled", "permanent")
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
    if text is None:
        text = resources.files("config").joinpath("flags.yaml").read_text(encoding="utf-8")
    node, problems = read(text, file)
    start = Where(file, 1, 1)
    entry = node.get("flags") if isinstance(node, YamlMapping) else None
    if entry is None or not isinstance(entry.value, YamlMapping):
        raise SpeckitError.of([*problems, Problem("E114", "the file must hold a mapping under 'flags'", where=start)])
    flags: dict[str, Flag] = {}
    for item in entry.value.entries:
        value = plain(item.value)
        state = value.get("state") if isinstance(value, dict) else None
        if not item.key.startswith(PREFIX):
            problems.append(Problem("E120", f"'{item.key}' must begin with {PREFIX}", where=item.where))
        elif state not in STATES:
            message = f"the state of '{item.key}' is {state!r}; accepted: {', '.join(STATES)}"
            problems.append(Problem("E114", message, where=item.value.where))
        else:
            flags[item.key] = _overridden(Flag(item.key, state, f"{file}:{item.where.line}"), environ, problems)
    if problems:
        raise SpeckitError.of(problems)
    return flags


def _overridden(flag: Flag, environ: Mapping[str, str], problems: list[Problem]) -> Flag:
    value = environ.get(flag.name)
    if value is None:
        return flag
    wanted = {"true": "enabled", "false": "off"}.get(value.strip().lower())
    if wanted is None:
        problems.append(
            Problem("E030", f"the environment variable {flag.name} is {value!r}; {nearest(value, ('true', 'false'))}")
        )
        return flag
    if flag.state == "permanent" and wanted == "off":
        problems.append(Problem("E030", f"{flag.name} is permanent and cannot be switched off"))
        return flag
    return Flag(flag.name, wanted, "environment")
