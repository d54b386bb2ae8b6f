"""Known answers of the channel of dates, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from components.asking import query

from speckit_memory.channels.dated import Dated, DatedParams
from speckit_memory.pipeline.model.columns import Hits
from speckit_memory.pipeline.ports import Filter
from speckit_memory.pipeline.testing import DAY, FakeStore, Memory

STORE = FakeStore(
    Memory(1, "one", ("caches and queues",), numbers={"created_at": 1 * DAY}),
    Memory(2, "two", ("caches",), numbers={"created_at": 2 * DAY}, folder="here"),
    Memory(3, "three", ("queues",), numbers={"created_at": 3 * DAY}),
    Memory(4, "unknown", ("caches",)),
    Memory(5, "gone", ("caches",), tier="deprecated", numbers={"created_at": 2 * DAY}),
    Memory(6, "caches", ("a title",), numbers={"created_at": 0.5 * DAY}),
)


def found(text: str = "", wanted: Filter | None = None, limit: int = 10, **plan: Any) -> dict[int, float]:
    asked = query(text, wanted=wanted or Filter())
    hits = Dated(DatedParams(topical=0.4)).search(replace(asked, plan=replace(asked.plan, **plan)), limit, STORE)
    assert isinstance(hits, Hits)
    return dict(zip(hits.ids.tolist(), hits.scores.tolist(), strict=True))


TIME = ((0.0, 2.5 * DAY),)


@pytest.mark.requirement("C2.times")
def test_who_asks_for_a_time_alone_gets_all_of_that_time() -> None:
    assert found(times=TIME, topic=()) == {1: 1.0, 2: 1.0, 6: 1.0}
    assert found(times=((2 * DAY, 3 * DAY), (3 * DAY, 4 * DAY)), topic=()) == {2: 1.0, 3: 1.0}
    assert found(times=TIME, topic=(), wanted=Filter(folder="here")) == {2: 1.0}


@pytest.mark.requirement("C2.times")
def test_with_a_topic_those_come_first_that_hold_it() -> None:
    # all terms held: 0.4 · (0.5 + 0.5); none: 0.4 · 0.5
    assert found(times=TIME, topic=("queues",)) == pytest.approx({1: 0.4, 2: 0.2, 6: 0.2})
    assert list(found(times=TIME, topic=("queues",), limit=1)) == [1]


@pytest.mark.requirement("C2.latest")
def test_the_newest_are_those_about_the_topic_by_their_titles_else_by_their_texts() -> None:
    assert found(order="newest", topic=("queues",)) == pytest.approx({3: 1.0, 1: 0.5})
    assert found(order="oldest", topic=("queues",)) == pytest.approx({1: 1.0, 3: 0.5})
    assert found(order="newest", topic=("caches",)) == {6: 1.0}
    assert found(order="newest", topic=("nothing",)) == {}
    assert list(found(order="newest", topic=())) == [3, 2, 1, 6]


def test_a_question_without_a_time_finds_nothing() -> None:
    assert found("caches") == {}
    assert found(times=((90 * DAY, 91 * DAY),), topic=()) == {}
