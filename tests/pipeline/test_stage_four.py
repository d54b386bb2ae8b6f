"""The last stage cannot change scores or order: every way to try it, and what comes of it (feature P3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from frame.doubles import FixedChannel, FunctionAnnotator, SmallStore, pipeline, question, step
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.pipeline.model.columns import Notes
from speckit_memory.pipeline.model.errors import StageInvariantError
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.running.runner import Outcome, Runner

pytestmark = pytest.mark.requirement("P3")
HITS = {1: 0.9, 2: 0.5, 3: 0.7, 4: 0.1}


def run(work: Callable[[Ranking], Any], store: Store, *, strict: bool = False) -> Outcome:
    hostile = step("hostile", FunctionAnnotator(work))
    return Runner(pipeline({"c": FixedChannel(HITS)}, annotate=[hostile]), strict=strict).run(question(), store)


def served(outcome: Outcome) -> list[tuple[int, float]]:
    return list(zip(outcome.pool.ids.tolist(), outcome.pool.score.tolist(), strict=True))


UNTOUCHED = [(1, 0.9), (3, 0.7), (2, 0.5), (4, 0.1)]


def assign_a_column(ranking: Ranking) -> None:
    ranking.scores = np.zeros(4)


DEEDS: dict[str, Callable[[Ranking], object]] = {
    "sort in place": lambda ranking: ranking.scores.sort(),
    "make writable": lambda ranking: ranking.scores.setflags(write=True),
    "assign a column": assign_a_column,
    "force a column": lambda ranking: object.__setattr__(ranking, "scores", np.zeros(4)),
    "force other ids": lambda ranking: object.__setattr__(ranking, "ids", ranking.ids[::-1]),
    "force another column": lambda ranking: object.__setattr__(ranking, "raw", np.zeros((4, 1))),
    "take a column away": lambda ranking: object.__delattr__(ranking, "parents"),
    "forge a ranking": lambda ranking: Ranking(),
    "subclass the ranking": lambda ranking: type("Forged", (Ranking,), {}),
}
"""What an annotator does that notes nothing then."""


def change_and_raise(ranking: Ranking) -> Notes:
    object.__setattr__(ranking, "scores", np.zeros(4))
    raise ValueError("look elsewhere")


def raise_at_once(ranking: Ranking) -> Notes:
    raise KeyError("broken")


ANSWERS: dict[str, Callable[[Ranking], Any]] = {
    "name foreign ids": lambda ranking: Notes(by_id={999: {"remark": "x"}}),
    "mention a score": lambda ranking: Notes(by_id={1: {"score": 1.0}}),
    "mention a position": lambda ranking: Notes(overall={"rank": 3}),
    "return a permutation": lambda ranking: Notes(keep=np.array([3, 2, 1, 0])),
    "return a longer mask": lambda ranking: Notes(keep=np.ones(5, bool)),
    "return a ranking": lambda ranking: ranking,
    "change and raise": change_and_raise,
    "raise at once": raise_at_once,
}
"""What an annotator returns or raises."""


def attack(name: str) -> Callable[[Ranking], Any]:
    def work(ranking: Ranking) -> Notes:
        DEEDS[name](ranking)
        return Notes()

    return ANSWERS.get(name, work)


@pytest.mark.requirement("P3.run_time")
@pytest.mark.parametrize("name", [*DEEDS, *ANSWERS])
def test_a_hostile_annotator_changes_nothing_and_is_named(name: str, store: Store) -> None:
    outcome = run(attack(name), store)
    assert served(outcome) == UNTOUCHED
    assert outcome.notes == {}
    assert [part.part for part in outcome.trace.degraded] == ["hostile"]


@pytest.mark.requirement("P3.named")
@pytest.mark.parametrize(
    "name",
    [
        *("force a column", "force other ids", "name foreign ids", "mention a score", "return a permutation"),
        "change and raise",
    ],
)
def test_in_strict_mode_a_violation_is_an_error_naming_the_step(name: str, store: Store) -> None:
    with pytest.raises(StageInvariantError, match="'hostile'") as caught:
        run(attack(name), store, strict=True)
    assert caught.value.code == "E130"


def test_rows_can_be_hidden_and_the_rest_keeps_score_and_order(store: Store) -> None:
    outcome = run(lambda ranking: Notes(keep=ranking.ids != 3), store)

    assert served(outcome) == [(1, 0.9), (2, 0.5), (4, 0.1)]
    assert [(loss.step, loss.ids.tolist()) for loss in outcome.trace.losses] == [("hostile", [3])]


def test_a_later_annotator_sees_only_what_an_earlier_one_kept(store: Store) -> None:
    seen: list[list[int]] = []

    def note(ranking: Ranking) -> Notes:
        seen.append(ranking.ids.tolist())
        return Notes()

    steps = [
        step("hide", FunctionAnnotator(lambda ranking: Notes(keep=ranking.ids != 1))),
        step("see", FunctionAnnotator(note)),
    ]
    Runner(pipeline({"c": FixedChannel(HITS)}, annotate=steps)).run(question(), store)

    assert seen == [[3, 2, 4]]


@pytest.mark.parametrize("name", [*DEEDS, *ANSWERS])
def test_a_later_annotator_sees_nothing_of_an_attack(name: str) -> None:
    seen: list[tuple[object, ...]] = []

    def note(ranking: Ranking) -> Notes:
        seen.append((ranking.ids.tolist(), ranking.scores.tolist(), ranking.parents.tolist(), ranking.raw.tolist()))
        return Notes()

    steps = [step("hostile", FunctionAnnotator(attack(name))), step("see", FunctionAnnotator(note))]
    Runner(pipeline({"c": FixedChannel(HITS)}, annotate=steps)).run(question(), SmallStore())  # type: ignore[arg-type]

    assert seen == [([1, 3, 2, 4], [0.9, 0.7, 0.5, 0.1], [1, 3, 2, 4], [[0.9], [0.7], [0.5], [0.1]])]


@given(st.dictionaries(st.integers(1, 99), st.floats(0, 1), min_size=1, max_size=30), st.data())
def test_any_mask_leaves_a_subsequence(hits: dict[int, float], data: st.DataObject) -> None:
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(hits), max_size=len(hits))))
    annotator = step("hide", FunctionAnnotator(lambda ranking: Notes(keep=mask)))
    plain = Runner(pipeline({"c": FixedChannel(hits)})).run(question(limit=100), SmallStore())  # type: ignore[arg-type]
    hidden = Runner(pipeline({"c": FixedChannel(hits)}, annotate=[annotator])).run(question(limit=100), SmallStore())  # type: ignore[arg-type]

    assert served(hidden) == [row for row, keep in zip(served(plain), mask, strict=True) if keep]
