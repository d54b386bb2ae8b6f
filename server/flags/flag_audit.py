"""Checks all declared feature flags against the rules for flags (feature P11). An audit changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta

from speckit_memory.config.flags.flag import (
    MAX_ACTIVE,
    ON,
    STATES,
    Flag,
    active_of,
    ahead,
    describe_flags,
    surplus,
    ways_back,
)
from speckit_memory.config.flags.flag_files import FACTS, FlagFile
from speckit_memory.config.flags.flags import declared_flags, read_flags
from speckit_memory.errors import Problem

LIFE_DAYS = 90
GROUPS = ("A", "B", "C", "D")
_ZONES = timedelta(days=1)
"""Tolerance for dates: the author's day may begin earlier than the UTC day."""
_CORRECT = ("correct its entry in flags.yaml",)

Evidence = Callable[[Flag], Sequence[str]]
"""Returns the reasons why the evidence cited by an enabled flag does not support its state; empty if it does."""


@dataclass(frozen=True, slots=True)
class AuditedFlag:
    """A declared flag with its state in this process.

    `since` is the first day of its state if recorded, else of its life. `age_days` is None if `since` is missing, not a
    date, or in the future. `criterion` is in words.
    """

    name: str
    state: str
    percent: int
    origin: str
    group: str
    owner: str
    since: str
    expires: str
    evidence: str
    criterion: str
    age_days: int | None

    def as_json(self) -> dict[str, str | int | None]:
        """The flag as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Audit:
    """All declared flags, the rules they break (with positions), and remarks."""

    flags: list[AuditedFlag]
    problems: list[Problem]
    remarks: list[str]


def today() -> date:
    """Today's date in UTC."""
    return datetime.now(UTC).date()


def audit(
    environ: Mapping[str, str],
    day: date,
    *,
    strict: bool = False,
    extensions: Sequence[FlagFile] = (),
    evidence: Evidence | None = None,
) -> Audit:
    """Audits the flags of the package, of extensions and of the workspace.

    Flags that the environment sets for one process count as active and are subject to no other rule. Extensions need
    neither groups nor criteria.

    Args:
        environ: The environment variables.
        day: The date by which flags expire.
        strict: Whether expired shipped or extension flags are problems; otherwise they are remarks, since the user of
            an installed copy cannot correct them.
        extensions: Flag files of extensions.
        evidence: Judges the evidence that enabled flags cite; None to skip this.
    """
    in_force, problems = read_flags(environ, extensions)
    declared, _ = declared_flags(environ, extensions)
    flags: list[AuditedFlag] = []
    expired: list[tuple[str, str]] = []
    for name, flag in declared.items():
        flags.append(_audited(in_force[name], day))
        problems += [
            Problem("E124", f"{name} {said}", actions=actions, where=flag.where) for said, actions in _misdeclared(flag)
        ]
        problems += [
            Problem("E124", f"{name} {said}", actions=actions, where=flag.decided)
            for said, actions in _misdecided(flag, evidence)
        ]
        since = _date(flag.decision.get("since") or flag.facts.get("since"))
        if since is not None and since > day + _ZONES and (flag.of_workspace or flag.decided != flag.where):
            message = f"{name} begins on {since}, which is still to come"
            problems.append(Problem("E124", message, actions=_CORRECT, where=flag.decided or flag.where))
        expires = _date(flag.facts.get("expires"))
        if expires is not None and expires < day and flag.state != "permanent":
            if not strict and not flag.of_workspace:
                # collected to report one remark per origin and date
                expired.append((flag.extension, f"expired on {expires}"))
            else:
                problems.append(Problem("E124", f"{name} expired on {expires}", where=flag.where))
    active = active_of(in_force.values())
    if many := surplus(active, MAX_ACTIVE):
        message = f"{len(active)} flags are active, accepted: at most {MAX_ACTIVE}; active: {describe_flags(active)}"
        where = next((flag.decided for flag in many if flag.decided), None)
        problems.append(Problem("E124", message, actions=ways_back(many), where=where))
    return Audit(flags, problems, _expiries(expired))


def expiry_of(flag: Flag, day: date) -> date | None:
    """The expiry date of a workspace flag that has expired by `day`; None for a live or permanent flag."""
    expires = _date(flag.facts.get("expires"))
    lives = expires is None or expires >= day or flag.state == "permanent" or not flag.of_workspace
    return None if lives else expires


def _audited(flag: Flag, day: date) -> AuditedFlag:
    said = {name: str(flag.decision.get(name) or flag.facts.get(name) or "") for name in FACTS}
    since = _date(said["since"])
    criterion = "; ".join(map(str, flag.criterion))
    return AuditedFlag(
        name=flag.name,
        state=flag.state,
        percent=flag.percent,
        origin=flag.origin,
        **said | {"criterion": criterion},
        age_days=(day - since).days if since and since <= day + _ZONES else None,
    )


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


def _misdeclared(flag: Flag) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Problems of a declaration apart from its state, each with actions."""
    facts = flag.facts
    since, expires = _date(facts.get("since")), _date(facts.get("expires"))
    if not facts.get("owner"):
        yield "names no owner", _CORRECT
    if not flag.criterion and not flag.extension:
        yield "has no criterion by which a comparison could be judged", _CORRECT
    if (group := facts.get("group")) not in GROUPS and not flag.extension:
        found = "belongs to no group" if group is None else f"belongs to group {group!r}"
        yield f"{found}, accepted: {', '.join(GROUPS)}", _CORRECT
    for name, value in (("since", since), ("expires", expires)):
        if value is None:
            yield f"has no date (YYYY-MM-DD) in '{name}'", _CORRECT
    if flag.state != "permanent" and since and expires and (expires - since).days > LIFE_DAYS:
        yield f"may live {(expires - since).days} days, accepted: at most {LIFE_DAYS}", _CORRECT


def _misdecided(flag: Flag, evidence: Evidence | None) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Problems of the state set in a file, each with actions."""
    anew = (f"`speckit-memory flags demote {flag.name}`, and promote it by a comparison that meets its criterion",)
    before = str(flag.decision.get("was") or flag.before or "off")
    # one step ahead is a normal promotion; more skip states that require evidence
    steps = ahead(before, flag.state)
    if steps > 1:
        skipped = ", ".join(STATES[STATES.index(before) + 1 : STATES.index(flag.state)])
        told = f"jumps from {before} to {flag.state} and skips {skipped}; `flags promote` goes one state at a time"
        yield told, (f"set it back to {before}, then `speckit-memory flags promote {flag.name}`",)
    if flag.state not in ON:
        return
    cited = flag.decision.get("evidence") or flag.facts.get("evidence")
    if not cited:
        yield f"is {flag.state} without evidence; `flags promote` records the comparison that justifies it", anew
    elif evidence is not None and (flag.of_workspace or flag.decided != flag.where):
        yield from ((said, anew) for said in evidence(flag))
