"""A question that was taken back: which steps still run, and that nobody is told of a failure."""

from __future__ import annotations

from threading import Event, Thread
from typing import cast

import pytest
from frame.doubles import FixedChannel, FunctionReranker, FunctionUnderstander, SmallStore, pipeline, question, step

from speckit_memory.pipeline.comparing.shadow import Shadow, ShadowRequest
from speckit_memory.pipeline.model.columns import Plan, Pool, Query, Rescored
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.process.cancellation import Withdrawal, WithdrawnError
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.running.runner import Runner

STORE = cast("Store", SmallStore())


def counting(ran: list[str], withdrawal: Withdrawal) -> Pipeline:
    """Takes the question back in its first step, and writes down which steps run."""

    def first(_: Query, plan: Plan) -> Plan:
        ran.append("first")
        withdrawal.withdraw()
        return plan

    def last(pool: Pool) -> Rescored:
        ran.append("last")
        return Rescored(pool.score)

    return pipeline(
        {"a": FixedChannel({1: 0.5})},
        understand=[step("first", FunctionUnderstander(first))],
        rerank=[step("last", FunctionReranker(last))],
    )


def test_no_step_begins_once_the_question_was_taken_back() -> None:
    ran: list[str] = []
    withdrawal = Withdrawal()
    runner = Runner(counting(ran, withdrawal))

    with withdrawal.asking(), pytest.raises(WithdrawnError):
        runner.run(question(), STORE)

    assert ran == ["first"]
    assert len(runner.run(question(), STORE).pool) == 1  # the next question is another one
    assert ran == ["first", "first", "last"]


def test_another_thread_takes_back_what_is_asked_within_and_nothing_else() -> None:
    ran: list[str] = []
    withdrawal, other = Withdrawal(), Withdrawal()
    started, over = Event(), Event()
    built = counting(ran, other)

    def ask() -> None:
        with withdrawal.asking():
            started.set()
            over.wait()
            with pytest.raises(WithdrawnError):
                Runner(built).run(question(), STORE)
            ran.append("over")

    thread = Thread(target=ask)
    thread.start()
    started.wait()
    withdrawal.withdraw()
    over.set()
    thread.join()
    assert ran == ["over"]


def test_who_watches_answers_hears_nothing_of_a_question_that_was_taken_back() -> None:
    heard: list[ShadowRequest] = []
    withdrawal = Withdrawal()
    shadow = Shadow(Runner(counting([], withdrawal)), heard.append)

    with withdrawal.asking(), pytest.raises(WithdrawnError):
        shadow.run(question(), STORE)

    assert heard == []
    shadow.run(question(), STORE)
    assert len(heard) == 1
