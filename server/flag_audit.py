"""The rules that feature flags live by, checked against `flags.yaml` (feature P11). An audit changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib import resources

from speckit_memory.config.flags import load_flags
from speckit_memory.config.yaml_reader import Mapping as YamlMapping
from speckit_memory.config.yaml_reader import plain, read
from speckit_memory.errors import Problem, Where

FILE = "config/flags.yaml"
ACTIVE = ("enabled",)
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


@dataclass(frozen=True, slots=True)
class Audit:
    """All declared flags, every rule they break (code E124, by position), and what is only worth knowing."""

    flags: list[AuditedFlag]
    problems: list[Problem]
    remarks: list[str]


def today() -> date:
    """The day by which flags are judged."""
    return datetime.now(UTC).date()


def audit(environ: Mapping[str, str], day: date, text: str | None = None, *, strict: bool = False) -> Audit:
    """The flags as they stand on a day.

    `text` is a file of one's own in place of the shipped `flags.yaml`. That shipped flags have expired is the product's
    affair, which nobody can mend in an installed copy: it breaks a rule only when `strict`, as the project's own checks
    are. Raises SpeckitError when the file cannot be understood at all.
    """
    lenient = text is None and not strict
    if text is None:
        text = resources.files("speckit_memory.config").joinpath("flags.yaml").read_text(encoding="utf-8")
    states = load_flags(environ, text, FILE)
    node, _ = read(text, FILE)
    entry = node.get("flags") if isinstance(node, YamlMapping) else None
    declared = entry.value.entries if entry is not None and isinstance(entry.value, YamlMapping) else ()
    flags: list[AuditedFlag] = []
    problems: list[Problem] = []
    expired: list[str] = []
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
                age_days=(day - since).days if since else None,
            )
        )
        broken = _broken(facts, since, expires, state)
        if expires is not None and expires < day and state != "permanent":
            (expired if lenient else broken).append(f"expired on {expires}")
        problems += [Problem("E124", f"{item.key} {message}", where=item.where) for message in broken]
    active = [flag.name for flag in flags if flag.state in ACTIVE]
    if len(active) > MAX_ACTIVE:
        message = f"{len(active)} flags are active, accepted: at most {MAX_ACTIVE}; active: {', '.join(active)}"
        problems.append(Problem("E124", message, where=Where(FILE, 1, 1)))
    return Audit(flags, problems, _expiries(expired))


def _expiries(expired: list[str]) -> list[str]:
    return [
        f"{count} shipped flag{'s' if count > 1 else ''} {when}; they work as before, a later version settles them"
        for when, count in Counter(expired).items()
    ]


def _date(value: object) -> date | None:
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        return None


def _broken(facts: Mapping[str, object], since: date | None, expires: date | None, state: str) -> list[str]:
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
    return broken
