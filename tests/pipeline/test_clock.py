"""The clock of queries stands still while something is opened."""

from __future__ import annotations

import threading

import pytest

from speckit_memory.pipeline.process import clock
from speckit_memory.pipeline.process.clock import opening, opening_ns, query_ns


class Time:
    """A clock that is moved by hand."""

    now = 1_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    told = Time()
    monkeypatch.setattr(clock, "perf_counter_ns", told)
    monkeypatch.setattr(clock, "_openings", clock._Openings())
    return told


@pytest.mark.requirement("P9")
def test_what_is_opened_takes_no_time_of_the_query(time: Time) -> None:
    begin = query_ns()
    time.now += 5
    with opening():
        time.now += 700
        assert (query_ns() - begin, opening_ns()) == (5, 700)
    time.now += 3

    assert (query_ns() - begin, opening_ns()) == (8, 700)


def test_an_opening_inside_another_counts_once(time: Time) -> None:
    begin = query_ns()
    with opening():
        time.now += 10
        with opening():
            time.now += 100
        time.now += 1_000

    assert (query_ns() - begin, opening_ns()) == (0, 1_110)


def test_an_opening_that_fails_ends_too(time: Time) -> None:
    begin = query_ns()

    def broken() -> None:
        with opening():
            time.now += 10
            raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        broken()
    time.now += 1

    assert (query_ns() - begin, opening_ns()) == (1, 10)


def test_each_thread_has_its_own_account(time: Time) -> None:
    elsewhere: list[int] = []

    def other() -> None:
        begin = query_ns()
        time.now += 20
        elsewhere.append(query_ns() - begin)

    with opening():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    assert (elsewhere, opening_ns()) == ([20], 20)
