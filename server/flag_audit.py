"""The rules that feature flags live by, checked against `flags.yaml` (feature P11). An audit changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from importlib import resources

from config.errors import Problem, Where
from config.flags import load_flags
from config.yaml_reader import Mapping as YamlMapping
from config.yaml_reader import plain, read

FILE = "config/flags.yaml"
ACTIVE = ("dark_run", "shadow", "enabled")
MAX_ACTIVE = 6
LIFE_DAYS = 90
GROUPS = ("A", "B", "C", "D")
TEXTS = ("owner", "evidence")


@dataclass(frozen=True, slots=True)
class AuditedFlag:
    """A flag as declared, with its state in this process. `age_days` is None when `since` is missing or no date."""

    name: str
    state: str
    origin: str
    group: str
    owner: str
    since: str
    expires: str
    evidence: str
    age_days: int | None

    def as_json(self) -> dict[str, str | int | None]:
        """The flag as plain data."""
        return {name: getattr(self, name) for name in self.__slots__}


def audit(environ: Mapping[str, str], today: date, text: str | None = None) -> tuple[list[AuditedFlag], list[Problem]]:
    """All declared flags, and every rule they break (code E124, by position).

    `text` stands for the shipped `flags.yaml`. Raises SpeckitError when the file cannot be understood at all.
    """
    if text is None:
        text = resources.files("config").joinpath("flags.yaml").read_text(encoding="utf-8")
    states = load_flags(environ, text, FILE)
    node, _ = read(text, FILE)
    entry = node.get("flags") if isinstance(node, YamlMapping) else None
    declared = entry.value.entries if entry is not None and isinstance(entry.value, YamlMapping) else ()
    flags: list[AuditedFlag] = []
    problems: list[Problem] = []
    for item in declared:
        facts = plain(item.value)
        assert isinstance(facts, dict)  # load_flags refuses everything else
        since, expires = _date(facts.get("since")), _date(facts.get("expires"))
        state = states[item.key].state
        flags.append(
            AuditedFlag(
                name=item.key,
                state=state,
                origin=states[item.key].origin,
                **{name: str(facts.get(name) or "") for name in ("group", "owner", "since", "expires", "evidence")},
                age_days=(today - since).days if since else None,
            )
        )
        broken = _broken(facts, since, expires, state, today)
        problems += [Problem("E124", f"{item.key} {message}", where=item.where) for message in broken]
    active = [flag.name for flag in flags if flag.state in ACTIVE]
    if len(active) > MAX_ACTIVE:
        message = f"{len(active)} flags are active, accepted: at most {MAX_ACTIVE}; active: {', '.join(active)}"
        problems.append(Problem("E124", message, where=Where(FILE, 1, 1)))
    return flags, problems


def _date(value: object) -> date | None:
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        return None


def _broken(
    facts: Mapping[str, object], since: date | None, expires: date | None, state: str, today: date
) -> list[str]:
    broken = [f"names no {name}" for name in TEXTS if not facts.get(name)]
    if facts.get("group") not in GROUPS:
        broken.append(f"belongs to group {facts.get('group')!r}, accepted: {', '.join(GROUPS)}")
    broken += [
        f"has no date (YYYY-MM-DD) in '{name}'" for name, value in (("since", since), ("expires", expires)) if not value
    ]
    if state == "permanent" or since is None or expires is None:
        return broken
    if (expires - since).days > LIFE_DAYS:
        broken.append(f"may live {(expires - since).days} days, accepted: at most {LIFE_DAYS}")
    if expires < today:
        broken.append(f"expired on {expires}")
    return broken
