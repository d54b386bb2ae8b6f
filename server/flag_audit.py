"""The rules that feature flags live by, checked for all that are declared (feature P11). An audit changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from speckit_memory.config.flag_files import SHIPPED_FILE, FlagFile
from speckit_memory.config.flags import FACTS, Flag, load_flags
from speckit_memory.errors import Problem, Where

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


def audit(
    environ: Mapping[str, str],
    day: date,
    text: str | None = None,
    *,
    strict: bool = False,
    extensions: Sequence[FlagFile] = (),
) -> Audit:
    """The flags as they stand on a day.

    They are those of the package, of extensions and of the workspace, or of a `text` in their place. That shipped flags
    have expired, or those of an extension, is the affair of who makes it, which nobody can mend in an installed copy:
    it breaks a rule only when `strict`, as a project's own checks are. The groups of an extension are its own affair.
    Raises SpeckitError when a file cannot be understood at all.
    """
    lenient = text is None and not strict
    flags: list[AuditedFlag] = []
    problems: list[Problem] = []
    expired: list[tuple[str, str]] = []
    loaded = load_flags(environ, text, extensions=extensions).values()
    for flag in loaded:
        since, expires = _date(flag.facts.get("since")), _date(flag.facts.get("expires"))
        flags.append(
            AuditedFlag(
                name=flag.name,
                state=flag.state,
                origin=flag.origin,
                **{name: str(flag.facts.get(name) or "") for name in FACTS},
                age_days=(day - since).days if since else None,
            )
        )
        broken = _broken(flag, since, expires)
        if expires is not None and expires < day and flag.state != "permanent":
            if lenient and not flag.of_workspace:
                expired.append((flag.extension, f"expired on {expires}"))
            else:
                broken.append(f"expired on {expires}")
        problems += [Problem("E124", f"{flag.name} {message}", where=flag.where) for message in broken]
    active = [flag for flag in loaded if flag.state in ACTIVE]
    if len(active) > MAX_ACTIVE:
        names = ", ".join(flag.name for flag in active)
        message = f"{len(active)} flags are active, accepted: at most {MAX_ACTIVE}; active: {names}"
        in_workspace = [f.decided for f in active if f.decided and f.decided.file != SHIPPED_FILE]
        problems.append(Problem("E124", message, where=max(in_workspace, default=Where(SHIPPED_FILE, 1, 1))))
    return Audit(flags, problems, _expiries(expired))


def _expiries(expired: list[tuple[str, str]]) -> list[str]:
    return [
        f"{count} {extension or 'shipped'} flag{'s' if count > 1 else ''} {when}; they work as before, a later version "
        "settles them"
        for (extension, when), count in Counter(expired).items()
    ]


def _date(value: object) -> date | None:
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        return None


def _broken(flag: Flag, since: date | None, expires: date | None) -> list[str]:
    facts = flag.facts
    broken = [f"names no {name}" for name in TEXTS if not facts.get(name)]
    if facts.get("group") not in GROUPS and not flag.extension:
        broken.append(f"belongs to group {facts.get('group')!r}, accepted: {', '.join(GROUPS)}")
    broken += [
        f"has no date (YYYY-MM-DD) in '{name}'" for name, value in (("since", since), ("expires", expires)) if not value
    ]
    if flag.state == "permanent" or since is None or expires is None:
        return broken
    if (expires - since).days > LIFE_DAYS:
        broken.append(f"may live {(expires - since).days} days, accepted: at most {LIFE_DAYS}")
    return broken
