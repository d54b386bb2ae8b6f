"""When a variant may run, and when it has to step back."""

from __future__ import annotations

import threading

import pytest

from speckit_memory.engine.background.gate import Gate
from speckit_memory.engine.shadowing.placement import ENOUGH, Placement


def test_a_gate_is_closed_while_something_is_served_in_any_thread() -> None:
    gate = Gate()
    inside, leave = threading.Event(), threading.Event()

    def serve() -> None:
        with gate.serving(), gate.serving():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=serve)
    thread.start()
    inside.wait(10)

    assert gate.closed
    assert gate.quiet_for() == 0.0
    before = gate.busy()
    assert gate.busy() > before
    leave.set()
    thread.join()
    assert not gate.closed
    assert gate.busy() == gate.busy()
    assert gate.quiet_for() > 0


@pytest.mark.requirement("P10.retreat")
def test_a_variant_over_its_budget_steps_back_twice_and_then_is_off() -> None:
    placement = Placement(500.0)

    whys = [placement.ran(501.0) for _ in range(2 * ENOUGH)]

    told = [number for number, why in enumerate(whys, start=1) if why]
    assert told == [ENOUGH, 2 * ENOUGH]
    assert whys[ENOUGH - 1] == "p95 of 20 runs is 501 ms, the budget 500 ms"
    assert placement.place == "off"


@pytest.mark.requirement("P10.retreat")
def test_a_slow_run_now_and_then_is_no_reason_to_step_back() -> None:
    placement = Placement(500.0)

    assert not any(placement.ran(2000.0 if number % 25 == 0 else 100.0) for number in range(1, 101))
    assert placement.place == "beside"


@pytest.mark.requirement("P10.retreat")
def test_runs_of_other_processes_count() -> None:
    placement = Placement(500.0, earlier=[600.0] * (ENOUGH - 1))

    assert placement.look() == ""
    assert placement.ran(600.0)
    assert placement.place == "idle"
    assert Placement(500.0, earlier=[600.0] * ENOUGH).look()
