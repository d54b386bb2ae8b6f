"""One feature flag: its name, its states in the order of its life, and the limit of active flags (features P4, P11)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from speckit_memory.config.flags.criterion import Condition
from speckit_memory.config.pipelines.shadow_entries import MODES, BesideMode
from speckit_memory.errors import Where, closest

PREFIX = "SPECKIT_"
MAX_ACTIVE = 6
State = Literal["off", "dark_run", "shadow", "enabled", "permanent"]
"""In the order of the life of a flag: it advances by one at a time, and may go back."""
STATES: tuple[State, ...] = get_args(State)

ON = ("enabled", "permanent")
"""Steps behind the flag take part in the served answer."""
ACTIVE = ("dark_run", "shadow", "enabled")
"""States that cost time or change answers, and are not final."""

WORDS = {"true": "enabled", "false": "off"}
"""Values of an environment variable accepted instead of a state."""
BY_ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag and its state in this process.

    `where` is the place of the declaration, `facts` its contents, and `of_workspace` whether it is in a file of the
    workspace. `decided` is the place that sets the state, None for the environment. `extension` is the distribution
    that declares the flag, or "".

    `criterion` is the condition for its advance. `decision` holds the details given with the state (`was`, `since`,
    `evidence`, `percent`, `reason`), and `before` the state in the layer below, "" if the declaration sets the state.
    """

    name: str
    state: str
    where: Where
    decided: Where | None
    facts: Mapping[str, object] = field(default_factory=dict)
    of_workspace: bool = False
    extension: str = ""
    criterion: tuple[Condition, ...] = ()
    decision: Mapping[str, object] = field(default_factory=dict)
    before: str = ""

    @property
    def origin(self) -> str:
        """The source of the state: a file and line, the environment or the call."""
        if self.decided is None:
            return BY_ENVIRONMENT
        return f"{self.decided.file}:{self.decided.line}" if self.decided.path is None else str(self.decided)

    @property
    def percent(self) -> int:
        """The percentage of sessions for which an enabled flag is on, 0 to 100."""
        share = self.decision.get("percent", 100)
        return share if self.state == "enabled" and isinstance(share, int) else 100

    @property
    def reason(self) -> str:
        """The purpose of a flag that no figure shows, "" if none is given."""
        return str(self.decision.get("reason") or "")

    @property
    def on(self) -> bool:
        """Whether steps with the flag take part in the served answer of every session."""
        return self.state in ON and self.percent == 100

    @property
    def beside(self) -> BesideMode | None:
        """The mode in which steps with the flag run in addition to the served pipeline, None if they do not."""
        return next((mode for mode in MODES.values() if mode == self.state), None)


def ahead(before: str, after: str) -> int:
    """How many states `after` is ahead of `before`; negative if it is behind."""
    return STATES.index(after) - STATES.index(before)


def nearest_flag_name(name: str, known: Collection[str]) -> str:
    """The known name that was most likely intended, "" if none is close.

    Names of variants and typed names have no prefix and are in lower case: "rsf_fusion", "rsf-fusion". The common
    prefix is ignored, since it would make any two names similar.
    """
    bare = {one.removeprefix(PREFIX): one for one in known}
    wanted = name.strip().replace("-", "_").upper().removeprefix(PREFIX)
    return bare.get(wanted) or bare.get(closest(wanted, bare), "")


def nearest_flag(name: str, known: Collection[str]) -> str:
    """A phrase with the intended name, or with the command that lists all names."""
    close = nearest_flag_name(name, known)
    return f"did you mean '{close}'?" if close else "see `speckit-memory flags list`"


def active_of(flags: Iterable[Flag]) -> list[Flag]:
    """The flags that count towards `MAX_ACTIVE`."""
    return [flag for flag in flags if flag.state in ACTIVE]


def surplus(flags: Sequence[Flag], most: int) -> list[Flag]:
    """The flags beyond the first `most`: those least advanced, and among them those decided on last.

    Decisions of the environment count as the last.
    """
    # Most advanced first; within a state by place, and the environment last.
    return sorted(flags, key=_seniority)[most:]


def describe_flags(flags: Iterable[Flag]) -> str:
    """Flags in order of their places: "SPECKIT_MMR shadow (.speckit/flags.yaml:3), SPECKIT_TRM dark_run (…)"."""
    return ", ".join(f"{flag.name} {flag.state} ({flag.origin})" for flag in sorted(flags, key=_place))


def ways_back(flags: Iterable[Flag]) -> tuple[str, ...]:
    """Commands that switch each of these flags off, for people to copy."""
    return tuple(
        f"unset {flag.name}" if flag.decided is None else f"`speckit-memory flags demote {flag.name}` until it is off"
        for flag in flags
    )


def _seniority(flag: Flag) -> tuple[int, bool, str, int]:
    return -STATES.index(flag.state), *_place(flag)


def _place(flag: Flag) -> tuple[bool, str, int]:
    where = flag.decided
    return where is None, where.file if where else "", where.line if where else 0
