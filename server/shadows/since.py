"""From when on: a date, a moment, or how long ago."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from speckit_memory.errors import SpeckitError

_AGO = re.compile(r"(\d{1,6})\s*([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def since(text: str, now: float) -> float:
    """The moment that a text names, in epoch seconds; `now` is what "7d" counts back from.

    A date or time without a zone is that of this machine. Raises E030 for anything else, and for the future.
    """
    if ago := _AGO.fullmatch(text.strip().lower()):
        return now - int(ago[1]) * _SECONDS[ago[2]]
    try:
        moment = datetime.fromisoformat(text.strip()).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        raise SpeckitError(
            "E030",
            f"--since is '{text}', which names no time",
            hint="Accepted are how long ago (90s, 90m, 24h, 7d, 2w) and a date or time as ISO 8601 writes it.",
            actions=("write --since 7d", "write --since 2026-01-31, or 2026-01-31T09:00"),
        ) from None
    if moment > now:
        raise SpeckitError("E030", f"--since is '{text}', which is still to come", actions=("write --since 7d",))
    return moment


def iso(moment: float) -> str:
    """A moment as a program reads it, UTC."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
