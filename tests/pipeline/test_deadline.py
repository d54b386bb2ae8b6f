"""What gives way once the deadline has passed, what never does, and what the answer says about it."""

from __future__ import annotations

import itertools
from typing import cast

import pytest
from frame.doubles import (
    FixedChannel,
    FunctionAnnotator,
    FunctionReranker,
    FunctionUnderstander,
    SmallStore,
    pipeline,
    question,
    signal,
    step,
)

from speckit_memory.pipeline.model.columns import Notes, Plan, Pool, Rescored, Selected
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.running.runner import Outcome, Runner

pytestmark = pytest.mark.requirement("P9")
STORE = cast("Store", SmallStore())


def late(built: Pipeline) -> Outcome:
    """A run whose deadline passes while its first step works: the clock moves with every look at it."""
    ticks = itertools.count(step=10)
    return Runner(built, clock=lambda: next(ticks)).run(question(deadline_ns=15), STORE)


def rows(outcome: Outcome) -> list[tuple[int, float]]:
    return list(zip(outcome.pool.ids.tolist(), outcome.pool.score.tolist(), strict=True))


def states(outcome: Outcome) -> dict[str, str]:
    return {record.step: record.state for record in outcome.trace.steps}


@pytest.mark.requirement("P9.told")
def test_costly_and_optional_steps_give_way_and_one_line_names_them_all() -> None:
    outcome = late(
        pipeline(
            {"a": FixedChannel({1: 0.5}), "b": FixedChannel({2: 0.9}), "c": FixedChannel({3: 0.9})},
            signals=[signal("boost", {1: 1.0}), signal("due", {1: 0.25}, optional=False)],
            rerank=[
                step("better", FunctionReranker(lambda pool: Rescored(pool.score * 0)), optional=True),
                step("needed", FunctionReranker(lambda pool: Rescored(pool.score * 2))),
            ],
        )
    )

    assert rows(outcome) == [(1, 1.5)]
    assert [part.as_json() for part in outcome.trace.degraded] == [
        {
            "steps": ["b", "c", "boost", "better"],
            "part": "deadline",
            "reason": "the deadline passed before b, c, boost and better could run",
            "instead": "the other steps; results that only these find are missing",
            "confidence_impact": "medium",
        }
    ]


@pytest.mark.requirement("P9.late")
def test_steps_that_cost_next_to_nothing_never_give_way() -> None:
    outcome = late(
        pipeline(
            {"a": FixedChannel({1: 0.5}), "always": FixedChannel({2: 0.9}, costly=False)},
            understand=[
                step("words", FunctionUnderstander(lambda query, plan: plan)),
                step("nearest", FunctionUnderstander(lambda query, plan: plan), costly=True),
            ],
            annotate=[step("note", FunctionAnnotator(lambda ranking: Notes(warnings=("seen",))))],
        )
    )

    assert states(outcome) == {
        "words": "ran", "nearest": "skipped", "a": "ran", "always": "ran", "fuse": "ran", "note": "ran",
    }  # fmt: skip
    assert rows(outcome) == [(2, 0.9), (1, 0.5)]
    assert outcome.notes["note"].warnings == ("seen",)


def test_a_cheap_channel_that_answered_first_does_not_stand_for_the_search() -> None:
    outcome = late(
        pipeline(
            {"always": FixedChannel({2: 0.9}, costly=False), "a": FixedChannel({1: 0.5}), "b": FixedChannel({3: 1})}
        )
    )

    assert states(outcome) == {"always": "ran", "a": "ran", "b": "skipped", "fuse": "ran"}


def test_a_search_that_failed_leaves_the_next_one_due() -> None:
    outcome = late(
        pipeline({"a": FixedChannel(Unavailable("no model")), "b": FixedChannel({1: 0.5}), "c": FixedChannel({2: 1})})
    )

    assert states(outcome) == {"a": "unavailable", "b": "ran", "c": "skipped", "fuse": "ran"}
    assert [part.part for part in outcome.trace.degraded] == ["a", "deadline"]


def test_where_only_the_order_suffers_nothing_found_is_said_to_be_missing() -> None:
    ticks = iter([0, *[0] * 20, *itertools.repeat(99, 100)])

    def slow(pool: Pool) -> Selected:
        for _ in range(25):
            next(ticks)
        return Selected(pool.score > 0)

    built = pipeline(
        {"a": FixedChannel({1: 0.5})},
        rerank=[
            step("slow", FunctionReranker(slow)),
            step("better", FunctionReranker(lambda pool: Rescored(pool.score * 0)), optional=True),
        ],
    )

    [part] = Runner(built, clock=lambda: next(ticks)).run(question(deadline_ns=15), STORE).trace.degraded

    assert (part.steps, part.confidence_impact) == (("better",), "low")
    assert part.instead == "the order without them; no result is missing"


def test_a_search_that_is_late_is_not_tried_again() -> None:
    asked = FixedChannel({})
    again = FunctionUnderstander(lambda query, plan: plan)
    recover = step("again", again, costly=True)
    again.recover = lambda query, plan, store: Plan(variants=("why",), limit_factor=2.0)  # type: ignore[attr-defined]

    outcome = late(pipeline({"a": asked}, recover=[recover]))

    assert (asked.asked, states(outcome)["again"]) == (["why"], "skipped")


@pytest.mark.requirement("P9.late")
def test_just_at_the_deadline_there_is_still_time() -> None:
    built = pipeline({"a": FixedChannel({1: 0.5}), "b": FixedChannel({2: 0.9})})

    outcome = Runner(built, clock=lambda: 15).run(question(deadline_ns=15), STORE)

    assert states(outcome)["b"] == "ran"
