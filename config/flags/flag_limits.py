"""The limit of active flags, and the choice of flags to switch off when there are too many (feature P11)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from speckit_memory.config.flags.flag import Flag
from speckit_memory.config.flags.flag_states import ACTIVE, STATES

MAX_ACTIVE = 6


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
