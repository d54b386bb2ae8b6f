"""Parses the start of a period: a date, a time, or an age such as "7d"."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from speckit_memory.errors import SpeckitError

_AGO = re.compile(r"(\d{1,6})\s*([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def since(text: str, now: float) -> float:
    """Parses a time and returns epoch seconds; ages such as "7d" are relative to `now`.

    Dates and times without a zone are local. Raises E030 for anything else, and for the future.
    """
    if ago := _AGO.fullmatch(text.strip().lower()):
        return now - int(ago[1]) * _SECONDS[ago[2]]
    try:
        # astimezone() interprets naive times as local ones
        moment = datetime.fromisoformat(text.strip()).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        raise SpeckitError(
            "E030",
            f"--since is '{text}', which is not a time",
            hint="Accepted are an age (90s, 90m, 24h, 7d, 2w) and a date or time in ISO 8601.",
            actions=("write --since 7d", "write --since 2026-01-31, or 2026-01-31T09:00"),
        ) from None
    if moment > now:
        raise SpeckitError("E030", f"--since is '{text}', which is in the future", actions=("write --since 7d",))
    return moment


def iso(moment: float) -> str:
    """The time in ISO 8601, UTC."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
