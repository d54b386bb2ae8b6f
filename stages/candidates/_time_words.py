"""Times in queries: `between May 3rd and May 9th`, `last month`, `three sessions ago`. Used by `times`; not a step."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np

from speckit_memory.memory.parsing.dates import DATE, MONTHS, Day, day_of, month_number
from speckit_memory.memory.store.records import EARLIEST, LATEST
from speckit_memory.pipeline.ports import Column

Span = tuple[float, float]
"""A time span from one moment up to, but excluding, another, in seconds since 1970."""

GAP = 1800.0
"""Seconds without a new memory after which a session is over; turns of conversations follow within minutes."""

_ONES = "one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
_TEENS = "thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()  # noqa: SIM905
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()  # noqa: SIM905
_ORDINALS = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fifth": 5,
    "eighth": 8,
    "ninth": 9,
    "twelfth": 12,
    **{f"{word[:-1]}ieth": 10 * number for number, word in enumerate(_TENS, 2)},
}
_CARDINALS = (
    {"a": 1, "an": 1, "a couple of": 2, "couple of": 2, "a few": 3, "few": 3}
    | {word: number for number, word in enumerate((*_ONES, *_TEENS), 1)}
    | {word: 10 * number for number, word in enumerate(_TENS, 2)}
)
_NUMBER = rf"(?P<n>\d{{1,4}}|(?:a[ ])?couple[ ]of|(?:a[ ])?few|[a-z]+(?:[- ](?:{'|'.join(_ONES[:9])}))?)"
_ORDINAL = rf"(?P<n>\d{{1,3}}(?:st|nd|rd|th)|(?:(?:{'|'.join(_TENS)})[- ])?[a-z]+)"
_SESSION = r"(?:sessions?|conversations?|discussions?|chats?|meetings?)"
_MONTH = rf"(?P<month>{'|'.join(MONTHS)})"
_UNIT = r"(?P<unit>day|week|month|year)"
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_BEFORE = ("before", "until", "till", "prior to", "up to", "by")
_WORDS = ("between", "from", "since", "after", *_BEFORE, "on", "in", "at", "as of", "of", "during", "for", "around")
_PREPOSITION = re.compile(
    rf"\b(?P<word>{'|'.join(_WORDS)})[ ](?:the[ ])?(?:(?:early|mid|late|month of|year)[ -])?$", re.IGNORECASE
)
_JOINT = re.compile(r"\s*(?:,?[ ]?\b(?:and|to|until|till|through|thru)\b|[-–—])\s*(?:the[ ])?", re.IGNORECASE)
_BARE = re.compile(rf"\b(?:{_MONTH}|(?P<year>(?:19|20)\d\d))\b(?![ ]?[-.:/]?\d)", re.IGNORECASE)
"""A month or a year by itself; it only counts as a time after a preposition."""
_AGO = re.compile(rf"\b{_NUMBER}[ ]{_UNIT}s?[ ]ago\b", re.IGNORECASE)
_LAST = re.compile(
    rf"(?P<the>\b(?:the|this|over|within|in)[ ])?\b(?P<last>last|past|previous)[ ](?:{_NUMBER}[ ])?{_UNIT}s?\b",
    re.IGNORECASE,
)
_TODAY = re.compile(r"\b(?:earlier[ ])?(?:today|this (?:morning|afternoon|evening))\b|\btonight\b", re.IGNORECASE)
_YESTERDAY = re.compile(r"\byesterday\b", re.IGNORECASE)
_THIS = re.compile(rf"\bthis[ ]{_UNIT}\b", re.IGNORECASE)
_SESSIONS_AGO = re.compile(rf"\b{_NUMBER}[ ]{_SESSION}[ ]ago\b", re.IGNORECASE)
_SESSION_NUMBERS = re.compile(
    r"\b(?:sessions?|meetings?|conversations?)[ ]#?"
    r"(?P<a>\d{1,4})(?:[ ]?(?:to|through|thru|until|and|-|–)[ ]?(?P<b>\d{1,4}))?\b",
    re.IGNORECASE,
)
_LAST_SESSIONS = re.compile(rf"\b(?:last|previous)[ ](?:{_NUMBER}[ ])?(?:{_SESSION}|time)\b", re.IGNORECASE)
_SESSION_ORDINALS = re.compile(rf"\b{_ORDINAL}[ ]{_SESSION}\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Calendar:
    """The reference for relative times: the present, and the creation times of memories, ascending, in seconds."""

    now: float
    made: Column

    @property
    def today(self) -> datetime:
        """The start of the current day (UTC)."""
        return datetime.fromtimestamp(self.now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)

    def sessions(self) -> list[Span]:
        """The sessions in which memories were created, in order."""
        made = self.made[self.made <= self.now]
        if not len(made):
            return []
        # A gap ends a session: made[i] is the last of one if made[i + 1] follows after more than GAP.
        ends = np.flatnonzero(np.diff(made) > GAP)
        firsts, lasts = made[np.append(0, ends + 1)], made[np.append(ends, len(made) - 1)]
        return [(first, last + 1.0) for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)]

    def holds(self, span: Span) -> bool:
        """Whether any memory was created in the span."""
        first, last = np.searchsorted(self.made, span)
        return bool(last > first)


@dataclass(frozen=True, slots=True)
class Mention:
    """A mention of a time in a query, and the spans that it means for a calendar."""

    start: int
    end: int
    spans: Callable[[Calendar], list[Span]]
    relative: bool = False
    """Whether it is relative to the present."""


def mentions(text: str) -> list[Mention]:
    """The mentions of times in a query, in order."""
    return [*_dates(text), *(found for rule in _RULES for found in rule(text))]


def _dates(text: str) -> Iterator[Mention]:
    """Days, months and years; two joined ones make one span."""
    found = [*DATE.finditer(text)]
    taken = {place for match in found for place in range(*match.span())}
    found += [bare for bare in _BARE.finditer(text) if bare.start() not in taken]
    found.sort(key=re.Match.start)
    place = 0
    while place < len(found):
        first, last = found[place], found[place]
        before = _PREPOSITION.search(text, max(0, first.start() - 24), first.start())
        word = before["word"].casefold() if before else ""
        # "and" only joins two dates after "between" or "from": "on May 3rd and May 9th" names two.
        joint = _JOINT.fullmatch(text, first.end(), found[place + 1].start()) if place + 1 < len(found) else None
        if joint and (word in ("between", "from") or "and" not in joint[0].casefold()):
            last = found[place + 1]
            place += 1
        place += 1
        if first.re is _BARE and (not word or (word == "of" and first["year"])):
            continue
        one, other = _period(first), _period(last)
        if one and other:
            start = before.start() if before else first.start()
            joined = word if first is last else "between"
            yield Mention(start, last.end(), partial(_between, one, other, joined))


def _period(match: re.Match[str]) -> Day | None:
    """The named day, month (`day` 0) or year (`month` 0); `year` 0 means the latest year that has such a day."""
    if match.re is not _BARE:
        return day_of(match)
    if match["year"]:
        return Day(int(match["year"]), 0, 0)
    return Day(0, month_number(match["month"]), 0)


def _span(period: Day) -> Span | None:
    """The span of a day, month or year; None for a date that does not exist."""
    try:
        first = datetime(period.year, period.month or 1, period.day or 1, tzinfo=UTC)
        if period.day:
            end = first + timedelta(days=1)
        else:
            # the first day after a month or a year
            months = 1 if period.month else 12
            end = first.replace(
                year=first.year + (first.month + months > 12), month=(first.month + months - 1) % 12 + 1
            )
    except (ValueError, OverflowError):
        return None
    return first.timestamp(), end.timestamp()


def _between(one: Day, other: Day, word: str, known: Calendar) -> list[Span]:
    """The span between two periods, or as bounded by the preposition; in the latest year that holds a memory."""
    this = known.today.year
    oldest = datetime.fromtimestamp(known.made[0], UTC).year if len(known.made) else this
    said = other.year or one.year
    # of two days without a year, the first may belong to the year before: from December to January
    turn = not one.year and one[1:] > (other.month, other.day or 32)
    possible: list[Span] = []
    for year in (said,) if said else range(this, min(oldest, this) - 1, -1):
        start, end = _span(one._replace(year=one.year or year - turn)), _span(other._replace(year=other.year or year))
        if start and end:
            possible.append(_bounded(start, end, word, known.now))
    return [span for span in possible if known.holds(span)][:1] or possible[:1]


def _bounded(start: Span, end: Span, word: str, now: float) -> Span:
    if word == "since":
        return start[0], max(now, start[1])
    if word == "after":
        return start[1], LATEST
    if word in _BEFORE:
        return EARLIEST, start[0] if word in ("before", "prior to") else start[1]
    return start[0], end[1]


def _number_of(said: str | None) -> int | None:
    """The number given by digits or words; None for other words."""
    if said is None:
        return 1
    said = " ".join(said.casefold().replace("-", " ").split())
    if said.isdigit():
        return int(said)
    tens, _, ones = said.rpartition(" ")
    if tens in _TENS and ones in _ONES[:9]:
        return _CARDINALS[tens] + _CARDINALS[ones]
    return _CARDINALS.get(said)


def _ordinal(said: str) -> int | None:
    """The number given by an ordinal: 23 for `23rd` and for `twenty-third`."""
    said = " ".join(said.casefold().replace("-", " ").split())
    if said[:-2].isdigit():
        return int(said[:-2])
    tens, _, last = said.rpartition(" ")
    number = _ORDINALS.get(last) or (_CARDINALS.get(last[:-2]) if last.endswith("th") else None)
    if number is None or (tens and tens not in _TENS):
        return None
    return number + (_CARDINALS[tens] if tens else 0)


def _ago(text: str) -> Iterator[Mention]:
    for match in _AGO.finditer(text):
        if (number := _number_of(match["n"])) is not None:
            yield Mention(*match.span(), partial(_unit, match["unit"].casefold(), number), relative=True)


def _last(text: str) -> Iterator[Mention]:
    """`last week` is the previous calendar week; `the last week` and `last 2 weeks` end now."""
    for match in _LAST.finditer(text):
        number, unit = _number_of(match["n"]), match["unit"].casefold()
        if number is None:
            continue
        rolling = match["n"] or match["the"] or match["last"].casefold() == "past"
        meant = partial(_days, -number * _DAYS[unit], 1) if rolling else partial(_unit, unit, 1)
        yield Mention(*match.span(), meant, relative=True)


def _today(text: str) -> Iterator[Mention]:
    for match in _TODAY.finditer(text):
        yield Mention(*match.span(), partial(_days, 0, 1), relative=True)
    for match in _YESTERDAY.finditer(text):
        yield Mention(*match.span(), partial(_days, -1, 0), relative=True)
    for match in _THIS.finditer(text):
        yield Mention(*match.span(), partial(_unit, match["unit"].casefold(), 0), relative=True)


def _sessions(text: str) -> Iterator[Mention]:
    """Sessions by number, starting with 1, or counted back from now."""
    for match in _SESSIONS_AGO.finditer(text):
        if number := _number_of(match["n"]):
            yield Mention(*match.span(), partial(_numbered, -number, -number))
    for match in _SESSION_NUMBERS.finditer(text):
        yield Mention(*match.span(), partial(_numbered, int(match["a"]), int(match["b"] or match["a"])))
    for match in _LAST_SESSIONS.finditer(text):
        if number := _number_of(match["n"]):
            yield Mention(*match.span(), partial(_numbered, -number, -1))
    for match in _SESSION_ORDINALS.finditer(text):
        if number := _ordinal(match["n"]):
            yield Mention(*match.span(), partial(_numbered, number, number))


def _days(first: int, last: int, known: Calendar) -> list[Span]:
    """The span from one day up to another, relative to today (0), bounded by the earliest supported time."""
    oldest = datetime.fromtimestamp(EARLIEST, UTC)
    first, last = (max(day, (oldest - known.today).days) for day in (first, last))
    return [((known.today + timedelta(days=first)).timestamp(), (known.today + timedelta(days=last)).timestamp())]


def _unit(unit: str, back: int, known: Calendar) -> list[Span]:
    """The day, week (from Monday), month or year `back` units ago; empty if that is before the earliest time."""
    today = known.today
    if unit == "day":
        return _days(-back, 1 - back, known)
    if unit == "week":
        monday = -today.weekday() - 7 * back
        return _days(monday, monday + 7, known)
    # Months counted from year 0, so that going back crosses years.
    months = today.year * 12 + today.month - 1 - back
    period = Day(today.year - back, 0, 0) if unit == "year" else Day(months // 12, months % 12 + 1, 0)
    span = _span(period)
    return [span] if span else []


def _numbered(first: int, last: int, known: Calendar) -> list[Span]:
    """The sessions from one number to another; negative numbers count back from the current session."""
    sessions = known.sessions()
    # The current session is not "the last session".
    running = bool(sessions) and known.now - sessions[-1][1] <= GAP
    # `or None`: for -1 the end would be 0, and the slice empty
    chosen = sessions[: len(sessions) - running][first : last + 1 or None] if first < 0 else sessions[first - 1 : last]
    return [(chosen[0][0], chosen[-1][1])] if chosen else []


_RULES: tuple[Callable[[str], Iterator[Mention]], ...] = (_ago, _last, _today, _sessions)
