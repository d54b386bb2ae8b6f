"""Parses dates as people write them: days, months and times in English and ISO 8601."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import NamedTuple

from speckit_memory.memory.store.records import known_time

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_MONTH = (
    r"(?P<name{0}>Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b\.?"
)
_DAY = r"(?P<day{0}>[0-3]?\d)(?:st|nd|rd|th)?(?!\d)"
DATE = re.compile(
    r"(?<![\w-])(?:"
    r"(?P<year1>\d{4})(?P<sign>[-/.])(?P<month1>\d{1,2})(?P=sign)(?P<day1>\d{1,2})"
    rf"|{_DAY.format(2)}(?:[- ]|[ ]of[ ]){_MONTH.format(2)}(?:,?[- ](?P<year2>\d{{4}}))?"
    rf"|{_MONTH.format(3)}[- ]{_DAY.format(3)}(?:,?[- ](?P<year3>\d{{4}}))?"
    rf"|{_MONTH.format(4)},?[ ](?P<year4>\d{{4}})"
    r"|(?P<year5>\d{4})-(?P<month5>\d{2})"
    r")(?=T\d|\W|_|\Z)",
    re.IGNORECASE,
)
"""A day or a month; the year of a day may be missing."""
_TIME = r"(?P<hour>[0-2]?\d):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?(?:\.\d+)?(?:[ ]?(?P<half>[ap])\.?m\b\.?)?"
_BEFORE = re.compile(rf"(?:{_TIME}[ ,]*)?(?:on[ ])?(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?[ ])?", re.IGNORECASE)
_BEHIND = re.compile(rf"(?:T|,?[ ](?:at[ ])?){_TIME}", re.IGNORECASE)
_OPENING = re.compile(r"[\s#>*_~=-]*(?:[^\n:()\[\]]{1,40}[ ]?[(\[]|[(\[])?[ ]*")
"""Text that may precede the date of a note: Markdown markers and a speaker, as in `Ann (8 May 2023): …`."""
_FARTHEST = 48
"""Characters allowed between the opening and the date, for a time of day and a weekday."""
_NAMED = re.compile(r"(?<!\d)(?P<year>\d{4})(?P<sign>[-_.]?)(?P<month>\d{2})(?P=sign)(?P<day>\d{2})(?!\d)")


class Day(NamedTuple):
    """A day, or a month if `day` is 0; `year` is 0 if it is not stated."""

    year: int
    month: int
    day: int


def day_of(match: re.Match[str]) -> Day | None:
    """Return the day of a match of `DATE`; None for a month or day that does not exist."""
    part = {name.rstrip("12345"): said for name, said in match.groupdict().items() if said}
    month = int(part["month"]) if "month" in part else month_number(part["name"])
    day = Day(int(part.get("year", 0)), month, int(part.get("day", 0)))
    return day if 1 <= month <= len(MONTHS) and day.day <= 31 else None


def dates_in(text: str) -> Iterator[Day]:
    """Yield the days and months in a text that are written with a year."""
    yield from (day for match in DATE.finditer(text) if (day := day_of(match)) is not None and day.year)


def opening_time(text: str) -> float | None:
    """Return the time with which a text begins, in seconds since 1970; None if it begins with something else.

    Journal entries and conversations begin so: `2024-03-12 10:30 …`, `# 12 March 2024` or
    `Ann (1:56 pm on 8 May, 2023): …`. A time without a zone is UTC.
    """
    opening = _OPENING.match(text)
    at = opening.end() if opening else 0
    before = _BEFORE.match(text, at, at + _FARTHEST)
    match = DATE.match(text, before.end() if before else at)
    if match is None or (day := day_of(match)) is None:
        return None
    clock = before if before and before["hour"] else _BEHIND.match(text, match.end())
    return time_of(day, clock)


def named_time(key: str) -> float | None:
    """Return the day in a file name such as `2024-03-12-standup.md`, in seconds since 1970; None if it has none."""
    match = _NAMED.search(PurePosixPath(key).stem)
    return time_of(Day(int(match["year"]), int(match["month"]), int(match["day"]))) if match else None


def time_of(day: Day, clock: re.Match[str] | None = None) -> float | None:
    """Return the start of a day, or the given time of it, in seconds since 1970; None for a month, and for a day or
    time that does not exist."""
    with suppress(ValueError):  # a month alone, the 31st of June, the year 0, or 13 pm
        began = datetime(*day, *_clock(clock), tzinfo=UTC)
        return known_time(began.timestamp())
    return None


def _clock(clock: re.Match[str] | None) -> tuple[int, int, int]:
    if clock is None:
        return 0, 0, 0
    hour = int(clock["hour"])
    if clock["half"]:
        # 12 am is hour 0, 12 pm is hour 12.
        hour = hour % 12 + (12 if clock["half"].casefold() == "p" else 0)
    return hour, int(clock["minute"]), int(clock["second"] or 0)


def month_number(name: str) -> int:
    """Return the number of a month, 1 to 12, given at least the first three letters of its name."""
    return next(number for number, month in enumerate(MONTHS, 1) if month.casefold().startswith(name[:3].casefold()))
