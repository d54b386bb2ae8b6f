"""Times that people name in questions, and what is left of a question without them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from components.asking import query

from speckit_memory.pipeline.model.columns import Plan
from speckit_memory.pipeline.testing import FakeStore, Memory
from speckit_memory.stages.candidates.times import Times, TimesParams

NOON = datetime(2024, 12, 24, 12, tzinfo=UTC)  # a Tuesday
DAYS = ("2023-05-08", "2023-12-28", "2024-01-05", "2024-11-12", "2024-12-17", "2024-12-23", "2024-12-24")


def made(*days: str) -> FakeStore:
    return FakeStore(
        *(
            Memory(number, day, ("words about caches",), numbers={"created_at": _time(day)})
            for number, day in enumerate(days, 1)
        )
    )


def _time(said: str) -> float:
    return datetime.fromisoformat(said).replace(tzinfo=UTC).timestamp()


def planned(text: str, *, store: FakeStore | None = None, now: datetime = NOON) -> Plan:
    asked = query(text, now=now.timestamp())
    found = Times(TimesParams()).understand(asked, Plan(variants=(text,)), store or made(*DAYS))
    assert isinstance(found, Plan)
    return found


def spans(text: str, **changes: object) -> list[tuple[str, str]]:
    return [(_said(first), _said(last)) for first, last in planned(text, **changes).times]  # type: ignore[arg-type]


def _said(time: float) -> str:
    moment = datetime.fromtimestamp(time, UTC)
    return moment.isoformat()[: 10 if (moment.hour, moment.minute) == (0, 0) else 16]


@pytest.mark.requirement("C2.times")
@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("what happened on 2023-05-08", "2023-05-08", "2023-05-09"),
        ("what happened on May 8th, 2023?", "2023-05-08", "2023-05-09"),
        ("notes of the 8th of May 2023", "2023-05-08", "2023-05-09"),
        ("what happened in May 2023", "2023-05-01", "2023-06-01"),
        ("what happened in 2023", "2023-01-01", "2024-01-01"),
        ("between May 3rd, 2023 and May 9th, 2023", "2023-05-03", "2023-05-10"),
        ("from March to May 2023", "2023-03-01", "2023-06-01"),
        ("before May 2023", "1677-09-21T00:12", "2023-05-01"),
        ("since 2024-12-01", "2024-12-01", "2024-12-24T12:00"),
        ("after May 8, 2023", "2023-05-09", "2262-04-11T23:47"),
        ("until May 8, 2023", "1677-09-21T00:12", "2023-05-09"),
        ("today", "2024-12-24", "2024-12-25"),
        ("earlier this morning", "2024-12-24", "2024-12-25"),
        ("yesterday", "2024-12-23", "2024-12-24"),
        ("last week", "2024-12-16", "2024-12-23"),
        ("over the last week", "2024-12-17", "2024-12-25"),
        ("this month", "2024-12-01", "2025-01-01"),
        ("last month", "2024-11-01", "2024-12-01"),
        ("in the past 10 days", "2024-12-14", "2024-12-25"),
        ("two weeks ago", "2024-12-09", "2024-12-16"),
        ("149 days ago", "2024-07-28", "2024-07-29"),
        ("a couple of months ago", "2024-10-01", "2024-11-01"),
        ("last year", "2023-01-01", "2024-01-01"),
        ("in the past 9999 years", "1677-09-21", "2024-12-25"),
    ],
)
def test_times_are_read_as_people_mean_them(text: str, first: str, last: str) -> None:
    assert spans(text) == [(first, last)]


@pytest.mark.requirement("C2.times")
@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("on May 8th", "2023-05-08", "2023-05-09"),  # the latest May 8th of which there is a memory
        ("in November", "2024-11-01", "2024-12-01"),
        ("between December 22nd and January 9th", "2023-12-22", "2024-01-10"),
        ("on August 1st", "2024-08-01", "2024-08-02"),  # there is none: the last one
    ],
)
def test_a_time_without_a_year_is_the_latest_that_holds_a_memory(text: str, first: str, last: str) -> None:
    assert spans(text) == [(first, last)]


@pytest.mark.requirement("C2.times")
@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("our second session", (1, 1)),
        ("the twenty-first session", None),
        ("session 3", (2, 2)),
        ("sessions 2 through 4", (1, 3)),
        ("two sessions ago", (-2, -2)),
        ("last time", (-1, -1)),
        ("the last 3 conversations", (-3, -1)),
    ],
)
def test_sessions_are_counted_by_pauses(text: str, days: tuple[int, int] | None) -> None:
    hours = [f"{day}T10:{minute}" for day in DAYS for minute in ("00", "25", "50")]
    expected = [(f"{DAYS[days[0]]}T10:00", f"{DAYS[days[1]]}T10:50")] if days else []

    assert spans(text, store=made(*hours), now=datetime(2024, 12, 25, tzinfo=UTC)) == expected


@pytest.mark.requirement("C2.times")
def test_the_session_that_is_running_is_not_the_last_one() -> None:
    store = made("2024-12-23T10:00", "2024-12-24T11:50")

    assert spans("last session", store=store) == [("2024-12-23T10:00", "2024-12-23T10:00")]


@pytest.mark.requirement("C2.times")
def test_where_nothing_is_so_new_times_are_counted_from_the_newest_memory() -> None:
    plan = planned("what did we discuss 2 days ago", now=datetime(2026, 5, 5, tzinfo=UTC))

    assert [_said(first) for first, _ in plan.times] == ["2024-12-22"]
    assert plan.counted_from == _time("2024-12-24")


@pytest.mark.requirement("C2.times")
def test_nothing_is_counted_from_a_memory_dated_in_the_future() -> None:
    plan = planned(
        "what did we discuss yesterday", store=made(*DAYS, "2031-01-01"), now=datetime(2026, 5, 5, tzinfo=UTC)
    )

    assert [_said(first) for first, _ in plan.times] == ["2024-12-23"]
    assert plan.counted_from == _time("2024-12-24")


@pytest.mark.parametrize(
    "text",
    [
        "may we march on", "release 2.0 of 2019 parts", "the second attempt", "last resort", "python 3.12.1",
        "in order", "how long ago", "the latest release of numpy", "first steps", "ago",
        "what did we discuss on May 32nd",         "word " * 41 + "yesterday",
    ],
)  # fmt: skip
def test_other_words_are_no_times(text: str) -> None:
    plan = planned(text)

    assert not plan.times
    assert not plan.order
    assert plan.topic is None


@pytest.mark.requirement("C2.times")
@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("What did we chat about on May 8th?", ()),
        ("what did we decide last month", ()),
        ("what did we decide about caches last month?", ("caches",)),
        ("what happened to Ann in November", ("ann",)),
    ],
)
def test_what_merely_asks_for_a_time_is_no_topic(text: str, topic: tuple[str, ...]) -> None:
    assert planned(text).topic == topic


@pytest.mark.requirement("C2.latest")
@pytest.mark.parametrize(
    ("text", "order", "topic"),
    [
        ("latest decision about caches", "newest", ("caches",)),
        ("the most recent ADR on caches", "newest", ("caches",)),
        ("what is the newest proposal?", "newest", ()),
        ("oldest note about caches", "oldest", ("caches",)),
    ],
)
def test_an_order_may_be_asked_for(text: str, order: str, topic: tuple[str, ...]) -> None:
    plan = planned(text)

    assert (plan.order, plan.topic, plan.times) == (order, topic, ())


def test_a_store_that_knows_no_times_is_asked_as_before() -> None:
    assert planned("what happened yesterday", store=FakeStore(Memory(1, "a", ("words",)))) == Plan(
        variants=("what happened yesterday",)
    )
