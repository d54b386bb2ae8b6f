"""What the runner makes of answers, absences and failures."""

from __future__ import annotations

import itertools
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from answered import refused
from frame.doubles import (
    FixedChannel,
    FunctionReranker,
    FunctionUnderstander,
    SmallStore,
    pipeline,
    question,
    signal,
    step,
)
from frame.reckoning import check_explanation
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.model.columns import Grouped, Plan, Pool, Rescored, Selected
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.running.explain import explain
from speckit_memory.pipeline.running.runner import Outcome, Runner


def rows(outcome: Outcome) -> list[tuple[int, float]]:
    return list(zip(outcome.pool.ids.tolist(), outcome.pool.score.tolist(), strict=True))


@pytest.mark.requirement("P1.order")
def test_the_four_stages_run_in_order_and_leave_a_record_each(store: Store) -> None:
    built = pipeline(
        {"a": FixedChannel({1: 0.5, 2: 0.25}), "b": FixedChannel({2: 0.5})},
        signals=[signal("boost", {1: 0.125})],
        rerank=[step("halve", FunctionReranker(lambda pool: Rescored(pool.score / 2)))],
    )

    outcome = Runner(built).run(question(), store)

    assert [(r.stage, r.step, r.n_in, r.n_out, r.state) for r in outcome.trace.steps] == [
        ("candidates", "a", 0, 2, "ran"),
        ("candidates", "b", 0, 1, "ran"),
        ("fusion", "fuse", 2, 2, "ran"),
        ("fusion", "boost", 2, 2, "ran"),
        ("rerank", "halve", 2, 2, "ran"),
    ]
    assert rows(outcome) == [(2, 0.375), (1, 0.3125)]


@pytest.mark.requirement("P8.steps")
def test_every_score_is_explained_step_by_step(store: Store) -> None:
    built = pipeline(
        {"a": FixedChannel({1: 0.5, 2: 0.25}), "b": FixedChannel({2: 0.5})}, signals=[signal("boost", {2: 0.1})]
    )

    outcome = Runner(built).run(question(), store)
    steps = [(s.step, s.kind, s.parts, s.before, s.after) for s in explain(outcome.pool, 0)]

    assert steps == [
        ("fuse", "sum", {"a": 0.25, "b": 0.5}, None, 0.75),
        ("boost", "add", {"boost": 0.1}, 0.75, 0.85),
    ]


channel_hits = st.dictionaries(st.integers(1, 40), st.floats(0, 1, width=32), max_size=15)


@pytest.mark.requirement("P8.exact")
@given(st.lists(channel_hits, min_size=1, max_size=4), st.dictionaries(st.integers(1, 40), st.floats(-1, 1)))
def test_explain_recombines_to_the_score_exactly(lists: list[dict[int, float]], boosts: dict[int, float]) -> None:
    built = pipeline(
        {f"c{n}": FixedChannel(hits) for n, hits in enumerate(lists)},
        signals=[signal("boost", boosts), signal("bounded", boosts, ceiling=0.95)],
        rerank=[step("third", FunctionReranker(lambda pool: Rescored.by(pool.score, "before / 3")))],
    )

    outcome = Runner(built, strict=True).run(question(limit=100), SmallStore())  # type: ignore[arg-type]

    for row, score in enumerate(outcome.pool.score.tolist()):
        check_explanation({"steps": [asdict(step) for step in explain(outcome.pool, row)]}, score)


@pytest.mark.requirement("P9.skipped")
@given(st.lists(channel_hits, min_size=2, max_size=4), st.data())
@settings(max_examples=examples(0.2))
def test_failing_channels_leave_what_the_pipeline_without_them_gives(
    lists: list[dict[int, float]], data: st.DataObject
) -> None:
    broken = data.draw(st.sets(st.integers(0, len(lists) - 1), max_size=len(lists) - 1))
    failures: list[Any] = [RuntimeError("boom"), Unavailable("not installed")]
    channels = {
        f"c{n}": FixedChannel(data.draw(st.sampled_from(failures)) if n in broken else hits)
        for n, hits in enumerate(lists)
    }
    without = {f"c{n}": FixedChannel(hits) for n, hits in enumerate(lists) if n not in broken}

    degraded = Runner(pipeline(channels)).run(question(limit=100), SmallStore())  # type: ignore[arg-type]
    smaller = Runner(pipeline(without)).run(question(limit=100), SmallStore())  # type: ignore[arg-type]

    assert rows(degraded) == rows(smaller)
    assert {part.part for part in degraded.trace.degraded} == {f"c{n}" for n in broken}


@pytest.mark.requirement("P9.told")
@pytest.mark.parametrize("value", [Unavailable("no session"), ValueError("boom"), np.array([np.nan]), np.zeros(7)])
def test_an_optional_signal_that_fails_leaves_the_score_as_it_was(value: Any, store: Store) -> None:
    outcome = Runner(pipeline({"a": FixedChannel({1: 0.5})}, signals=[signal("odd", value)])).run(question(), store)

    assert rows(outcome) == [(1, 0.5)]
    assert [(part.part, part.instead) for part in outcome.trace.degraded] == [("odd", "the score without this signal")]


@pytest.mark.requirement("P9")
def test_a_required_step_that_fails_is_an_error_with_its_name(store: Store) -> None:
    built = pipeline({"a": FixedChannel({1: 0.5})}, signals=[signal("odd", ValueError("boom"), optional=False)])

    with refused("E040", match="the step 'odd' failed: ValueError: boom"):
        Runner(built).run(question(), store)


@pytest.mark.requirement("P9")
def test_when_no_channel_answers_the_error_says_why(store: Store) -> None:
    built = pipeline({"a": FixedChannel(Unavailable("no model")), "b": FixedChannel(OSError("disk"))})

    with pytest.raises(SpeckitError, match="a: no model; b: OSError: disk"):
        Runner(built).run(question(), store)


@pytest.mark.requirement("R3.hits", "R4.one")
def test_passages_of_a_memory_become_one_row(store: Store) -> None:
    passages = FixedChannel({101: 0.9, 102: 0.4, 201: 0.6}, level="chunk")
    memories = FixedChannel({1: 0.05, 3: 0.2})
    collapse = FunctionReranker(lambda pool: Grouped(pool.candidates.parents, best_of_parent(pool)))

    outcome = Runner(pipeline({"p": passages, "m": memories}, rerank=[step("collapse", collapse)])).run(
        question(), store
    )

    assert rows(outcome) == [(1, pytest.approx(0.95)), (2, 0.6), (3, 0.2)]
    assert outcome.pool.chunk_hits.tolist() == [2, 1, 1]
    assert outcome.pool.candidates.passages.tolist() == [101, 201, -1]


def best_of_parent(pool: Pool) -> np.ndarray:
    parents = pool.candidates.parents
    return np.array([pool.score[parents == parent].max() for parent in parents])


def test_a_hit_on_a_memory_counts_for_the_passages_that_others_found(store: Store) -> None:
    built = pipeline({"p": FixedChannel({101: 0.5, 102: 0.25}, level="chunk"), "m": FixedChannel({1: 0.25})})

    outcome = Runner(built).run(question(), store)

    assert rows(outcome) == [(101, 0.75), (102, 0.5)]


def test_a_search_that_returned_less_than_its_limit_has_told_the_score_of_all_others(store: Store) -> None:
    built = pipeline(
        {
            "all": FixedChannel({1: 0.5, 2: 0.25}),
            "cut": FixedChannel({1: 0.5, 2: 0.25, 3: 0.125}),
            "none": FixedChannel({}),
            "floor": FixedChannel({1: -0.25}, scale=Scale.COSINE, rest=-0.5),
            "above": FixedChannel({1: -0.25}, scale=Scale.COSINE, rest=0.0),
            "silent": FixedChannel({1: 0.5}, rest=np.nan),
        },
        understand=[step("limits", FunctionUnderstander(lambda _, plan: replace(plan, limits={"cut": 3})))],
    )

    candidates = Runner(built, strict=True).run(question(), store).pool.candidates

    told = dict(zip(candidates.channels, candidates.rest.tolist(), strict=True))
    # No search can have left out what is better than its last hit.
    assert told == pytest.approx(
        {"all": 0.0, "cut": np.nan, "none": 0.0, "floor": -0.5, "above": -0.25, "silent": np.nan}, nan_ok=True
    )


def test_signals_of_one_group_share_a_cap(store: Store) -> None:
    built = pipeline(
        {"a": FixedChannel({1: 0.5, 2: 0.5})},
        signals=[
            signal("causal", {1: 0.15, 2: 0.05}, cap_group="context", cap=0.2),
            signal("session", {1: 0.15, 2: 0.05}, cap_group="context", cap=0.2),
        ],
    )

    outcome = Runner(built).run(question(), store)

    ids, scores = zip(*rows(outcome), strict=True)
    assert ids == (1, 2)
    assert scores == pytest.approx((0.7, 0.6))


def test_equal_scores_are_ordered_by_id(store: Store) -> None:
    outcome = Runner(pipeline({"a": FixedChannel({9: 0.5, 3: 0.5, 7: 0.5})})).run(question(), store)

    assert [memory for memory, _ in rows(outcome)] == [3, 7, 9]


@pytest.mark.requirement("F1")
def test_equal_scores_of_one_search_share_a_rank(store: Store) -> None:
    found = {"a": FixedChannel({9: 0.5, 3: 0.5, 7: 0.25, 1: 0.75}), "b": FixedChannel({7: 0.5})}

    candidates = Runner(pipeline(found)).run(question(), store).pool.candidates

    # competition ranks: one hit is better than 3 and 9, three are better than 7
    ranks = dict(zip(candidates.ids.tolist(), candidates.rank.tolist(), strict=True))
    assert ranks == {1: [1, -1], 3: [2, -1], 7: [4, 1], 9: [2, -1]}


@pytest.mark.requirement("F1", "R4")
def test_passages_inherit_the_rank_of_their_memory_and_a_group_has_its_best(store: Store) -> None:
    passages = FixedChannel({101: 0.25, 102: 0.5, 201: 0.5}, level="chunk")
    memories = FixedChannel({1: 0.25, 2: 0.25, 3: 0.5})
    collapse = FunctionReranker(lambda pool: Grouped(pool.candidates.parents, best_of_parent(pool)))
    channels = {"p": passages, "m": memories}

    single = Runner(pipeline(channels)).run(question(), store).pool.candidates
    grouped = Runner(pipeline(channels, rerank=[step("collapse", collapse)])).run(question(), store).pool.candidates

    ranks = [dict(zip(found.ids.tolist(), found.rank.tolist(), strict=True)) for found in (single, grouped)]
    assert ranks == [{101: [3, 2], 102: [1, 2], 201: [1, 2], 3: [-1, 1]}, {1: [1, 2], 2: [1, 2], 3: [-1, 1]}]


def test_rows_beyond_the_limit_are_remembered_as_lost(store: Store) -> None:
    outcome = Runner(pipeline({"a": FixedChannel({1: 0.9, 2: 0.8, 3: 0.7})})).run(question(limit=1), store)

    assert [(loss.step, loss.ids.tolist()) for loss in outcome.trace.losses] == [("limit", [2, 3])]


def test_a_selection_keeps_scores_and_order(store: Store) -> None:
    choose = step("choose", FunctionReranker(lambda pool: Selected(pool.score > 0.6)))

    outcome = Runner(pipeline({"a": FixedChannel({1: 0.9, 2: 0.5, 3: 0.7})}, rerank=[choose])).run(question(), store)

    assert rows(outcome) == [(1, 0.9), (3, 0.7)]


def test_each_variant_of_the_query_is_searched(store: Store) -> None:
    expand = FunctionUnderstander(lambda query, plan: Plan(variants=(query.text, "because")))
    channel = FixedChannel({1: 0.5})

    outcome = Runner(pipeline({"a": channel}, understand=[step("expand", expand)])).run(question("why"), store)

    assert channel.asked == ["why", "because"]
    assert outcome.pool.candidates.variants == (0, 1)


def test_a_plan_that_forgets_the_query_is_refused(store: Store) -> None:
    forget = FunctionUnderstander(lambda query, plan: Plan(variants=("something else",)))
    channel = FixedChannel({1: 0.5})

    outcome = Runner(pipeline({"a": channel}, understand=[step("forget", forget)])).run(question("why"), store)

    assert channel.asked == ["why"]
    assert [part.part for part in outcome.trace.degraded] == ["forget"]


@pytest.mark.parametrize(("ns", "over"), [(29_000_000, False), (31_000_000, True)])
def test_a_search_that_takes_longer_than_its_budget_says_so_and_loses_nothing(
    ns: int, over: bool, store: Store
) -> None:
    simple = FunctionUnderstander(lambda query, plan: replace(plan, complexity="simple"))
    channel = FixedChannel({1: 0.5})
    ticks = itertools.chain([0], itertools.repeat(ns))
    built = pipeline({"a": channel}, understand=[step("judge", simple)])

    outcome = Runner(built, clock=lambda: next(ticks)).run(question(), store)

    assert (outcome.trace.budget_ms, outcome.trace.over_budget) == (30.0, over)
    assert rows(outcome) == [(1, 0.5)]
    assert outcome.trace.degraded == ()
