"""How many flags may be active at once, and which of too many are to give way (feature P11)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from speckit_memory.config.flags.flag import Flag
from speckit_memory.config.flags.flag_states import ACTIVE, STATES

MAX_ACTIVE = 6


def active_of(flags: Iterable[Flag]) -> list[Flag]:
    """The flags that count towards `MAX_ACTIVE`."""
    return [flag for flag in flags if flag.state in ACTIVE]


def surplus(flags: Sequence[Flag], most: int) -> list[Flag]:
    """Which of these flags are beyond `most`: those that have come least far, and of them the last that were decided.

    What the environment decides came last of all.
    """
    return sorted(flags, key=_seniority)[most:]


def told(flags: Iterable[Flag]) -> str:
    """Flags in the order of their places: "SPECKIT_MMR shadow (.speckit/flags.yaml:3), SPECKIT_TRM dark_run (…)"."""
    return ", ".join(f"{flag.name} {flag.state} ({flag.origin})" for flag in sorted(flags, key=_place))


def ways_back(flags: Iterable[Flag]) -> tuple[str, ...]:
    """What takes each of these flags off, for people to copy."""
    return tuple(
        f"unset {flag.name}" if flag.decided is None else f"`speckit-memory flags demote {flag.name}` until it is off"
        for flag in flags
    )


def _seniority(flag: Flag) -> tuple[int, bool, str, int]:
    return -STATES.index(flag.state), *_place(flag)


def _place(flag: Flag) -> tuple[bool, str, int]:
    where = flag.decided
    return where is None, where.file if where else "", where.line if where else 0
