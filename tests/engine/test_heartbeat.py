"""The sign of life beside work: it comes while the work lasts, is bounded, and stops with the work."""

from __future__ import annotations

import threading

import pytest

from speckit_memory.engine.upkeep.maintenance import heartbeat

PATIENCE = 60.0
OFTEN = 0.001
SELDOM = 3600.0


def beating() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "heartbeat"]


def test_it_beats_while_the_work_lasts_and_not_afterwards() -> None:
    third, beats = threading.Event(), []

    def beat() -> bool:
        beats.append(1)
        if len(beats) == 3:
            third.set()
        return True

    with heartbeat(beat, OFTEN, 1_000_000):
        assert third.wait(PATIENCE)
    assert beating() == []
    told = len(beats)
    with heartbeat(beat, SELDOM, 9):
        pass  # work that is done at once
    assert (len(beats), beating()) == (told, [])


def test_work_that_hangs_is_kept_alive_so_often_at_most() -> None:
    beats: list[int] = []

    def beat() -> bool:
        beats.append(1)
        return True

    with heartbeat(beat, OFTEN, 5):
        for thread in beating():
            thread.join(PATIENCE)
        assert (len(beats), beating()) == (5, [])


@pytest.mark.parametrize("answer", [False, OSError("disk I/O error")])
def test_it_stops_when_there_is_no_use_in_it_and_the_work_goes_on(answer: bool | OSError) -> None:
    beats: list[int] = []

    def beat() -> bool:
        beats.append(1)
        if isinstance(answer, OSError):
            raise answer
        return answer

    with heartbeat(beat, OFTEN, 5):
        for thread in beating():
            thread.join(PATIENCE)
    assert len(beats) == 1


def test_what_the_work_raises_comes_through() -> None:
    with pytest.raises(ValueError, match="no vectors"), heartbeat(lambda: True, SELDOM, 5):
        raise ValueError("no vectors")
    assert beating() == []
