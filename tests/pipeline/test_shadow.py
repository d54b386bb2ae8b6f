"""Pipelines beside the one that is served: its answer is what it was, theirs are what they would be alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, cast

import numpy as np
import pytest
from components.flags import OPEN
from frame.doubles import (
    FixedChannel,
    FunctionAnnotator,
    FunctionReranker,
    FunctionUnderstander,
    SmallStore,
    pipeline,
    question,
    step,
)
from frame.observed import plain
from hypothesis import given, settings
from hypothesis import strategies as st
from storing.project import QUESTIONS, Asked
from tiers import examples

from speckit_memory.engine import Memory
from speckit_memory.engine.answers.request import SearchRequest
from speckit_memory.engine.components import registry
from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.comparing.shadow import Shadow, ShadowRequest, ShadowRun, is_sampled, shuffle_variants
from speckit_memory.pipeline.configuration.builder import assemble, build, check_pipeline
from speckit_memory.pipeline.configuration.loading import load
from speckit_memory.pipeline.configuration.variants import with_values, without
from speckit_memory.pipeline.model.columns import Notes, Plan, Query, Rescored
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.composition import BoundStep, CandidateStage, Pipeline
from speckit_memory.pipeline.running.runner import Outcome, Runner

NOW = 1_800_000_000.0
STORE = cast("Store", SmallStore())
BASES = ("default", "catalogue", "quality", "bm25")
FAILURES: tuple[type[BaseException] | None, ...] = (None, None, None, ValueError, SystemExit)


@cache
def changes() -> tuple[Pipeline, ...]:
    """Each preset, and each without one step or with one number changed, as far as the rules allow it."""
    found: list[Pipeline] = []
    for base in BASES:
        whole = load(base, {}, offered=registry().flag_files)
        candidates = [whole]
        for entry in check_pipeline(whole, registry()).bound:
            candidates.append(without(whole, entry.step.id, forgotten=True))
            values = entry.params.model_dump() if entry.params else {}
            numbers = [name for name, value in values.items() if isinstance(value, int | float) and value > 1]
            candidates += [with_values(whole, {f"{entry.step.id}.{name}": str(values[name] * 2)}) for name in numbers]
        sound = (checked for one in candidates if not (checked := check_pipeline(one, registry())).problems)
        found += map(assemble, sound)
    return tuple(found)


Mapped = Callable[[BoundStep[Any]], BoundStep[Any]]


def mapped(whole: Pipeline, change: Mapped) -> Pipeline:
    """The pipeline with every step changed."""
    stage = whole.candidates

    def each(steps: Sequence[BoundStep[Any]]) -> tuple[BoundStep[Any], ...]:
        return tuple(map(change, steps))

    return replace(
        whole,
        candidates=CandidateStage(each(stage.understand), each(stage.channels), each(stage.recover)),
        fusion=replace(whole.fusion, fuser=change(whole.fusion.fuser), signals=each(whole.fusion.signals)),
        rerank=each(whole.rerank),
        annotate=each(whole.annotate),
    )


class Counted:
    """A component that counts how often it is asked what, and may fail."""

    def __init__(self, component: Any, name: str, calls: Counter[str], failing: type[BaseException] | None) -> None:
        self._component, self._name, self._calls, self._failing = component, name, calls, failing

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._component, name)
        if name not in ("understand", "search", "recover", "fuse", "evidence", "rerank", "annotate", "about_concept"):
            return found

        def counting(*asked: Any) -> Any:
            self._calls[self._name] += 1
            if self._failing is not None:
                raise self._failing("of no use")
            return found(*asked)

        return counting


def counted(whole: Pipeline, calls: Counter[str], failing: dict[str, type[BaseException]]) -> Pipeline:
    return mapped(
        whole, lambda one: replace(one, component=Counted(one.component, one.id, calls, failing.get(one.id)))
    )  # fmt: skip


def said(run: ShadowRun | Outcome) -> Any:
    """All of an outcome but its times, and whose answers were taken."""
    outcome = run.outcome if isinstance(run, ShadowRun) else run
    if outcome is None:
        assert isinstance(run, ShadowRun)
        return run.failure, [record.step for record in run.steps]
    trace = outcome.trace
    steps = [replace(record, ns=0, shared=False) for record in trace.steps]
    return plain((outcome.query, outcome.pool, outcome.notes, steps, trace.losses, trace.degraded))


def asked_of(memory: Memory, asked: Asked) -> Query:
    return SearchRequest(text=asked.text, **asked.arguments).query(memory.session.view(), NOW, None)


def beside(control: Pipeline, query: Query, store: Store) -> ShadowRequest:
    kept: list[ShadowRequest] = []
    try:
        Shadow(Runner(control), kept.append).run(query, store)
    except SpeckitError:
        assert kept[0].control.outcome is None
    return kept[0]


@pytest.mark.requirement("P4.prefix")
@settings(max_examples=examples(0.2))
@given(st.data())
def test_an_answer_with_shared_steps_is_the_answer_without(memory: Memory, data: st.DataObject) -> None:
    control, variant = (data.draw(st.sampled_from(changes())) for _ in range(2))
    question = asked_of(memory, data.draw(st.sampled_from(QUESTIONS)))
    steps = sorted({record.id for whole in (control, variant) for record in every(whole)})
    failing = {
        name: kind for name in data.draw(st.lists(st.sampled_from(steps), max_size=2))
        if (kind := data.draw(st.sampled_from(FAILURES)))
    }  # fmt: skip
    calls: Counter[str] = Counter()
    ours, theirs = (counted(whole, calls, failing) for whole in (control, variant))
    with memory.session.database.snapshot_read():
        before = beside(ours, question, memory.session.view())
        by_control = calls.copy()
        calls.clear()
        shared = before.run(Runner(theirs), memory.session.view())
        again = calls.copy()
        calls.clear()
        try:
            alone = said(Runner(theirs).run(question, memory.session.view()))
        except SpeckitError:
            alone = None

    assert (said(shared) if shared.outcome else None) == alone
    assert again + Counter(record.step for record in shared.steps if record.shared) == calls
    assert sum(by_control.values()) == len(before.control.steps) or before.control.outcome is None


def every(whole: Pipeline) -> list[BoundStep[Any]]:
    found: list[BoundStep[Any]] = []

    def noted(one: BoundStep[Any]) -> BoundStep[Any]:
        found.append(one)
        return one

    mapped(whole, noted)
    return found


@pytest.mark.requirement("P4.prefix")
@pytest.mark.parametrize("base", BASES)
def test_the_same_pipeline_beside_itself_asks_no_component_again(memory: Memory, base: str) -> None:
    calls: Counter[str] = Counter()
    whole = counted(build(base, registry(), {}), calls, {})
    for asked in QUESTIONS:
        with memory.session.database.snapshot_read():
            before = beside(whole, asked_of(memory, asked), memory.session.view())
            calls.clear()

            run = before.run(Runner(whole), memory.session.view())

        assert not calls
        assert all(record.shared for record in run.steps)
        assert run.parted_at == ""
        assert run.total_ns >= sum(record.ns for record in run.steps) > 0
        assert run.spent_ns == run.total_ns - sum(record.ns for record in run.steps)


def test_a_channel_more_leaves_the_answers_of_the_others(memory: Memory) -> None:
    calls: Counter[str] = Counter()
    whole = without(load("catalogue", OPEN, offered=registry().flag_files), "router")
    fewer, more = (
        counted(assemble(check_pipeline(one, registry())), calls, {})
        for one in (without(whole, "degree", forgotten=True), whole)
    )
    for control, variant in ((fewer, more), (more, fewer)):
        with memory.session.database.snapshot_read():
            before = beside(control, asked_of(memory, QUESTIONS[2]), memory.session.view())
            calls.clear()

            run = before.run(Runner(variant), memory.session.view())

        channels = {channel.id for channel in variant.candidates.channels}
        assert {name for name in calls if name in channels} <= {"degree"}
        assert run.parted_at == "degree"


def test_what_comes_to_the_same_plan_another_way_shares_the_rest() -> None:
    calls: Counter[str] = Counter()
    known = Plan(variants=("why",), intent="fix_bug")
    one, other = (
        counted(
            pipeline(
                {"a": FixedChannel({1: 0.5})},
                understand=[step(name, FunctionUnderstander(lambda _query, plan: replace(plan, intent=known.intent)))],
            ),
            calls,
            {},
        )
        for name in ("by words", "by pattern")
    )
    before = beside(one, question(), STORE)
    calls.clear()

    before.run(Runner(other), STORE)

    assert calls == {"by pattern": 1}


def test_a_plan_for_other_channels_is_not_taken_over() -> None:
    routing = step("router", FunctionUnderstander(lambda _query, plan: replace(plan, channels=("b",))))
    control = pipeline({"a": FixedChannel({1: 0.5}), "b": FixedChannel({2: 0.5})}, understand=[routing])
    variant = pipeline({"a": FixedChannel({1: 0.5})}, understand=[routing])

    run = beside(control, question(), STORE).run(Runner(variant), STORE)

    alone = Runner(variant).run(question(), STORE)
    assert said(run) == said(alone)
    assert [part.part for part in alone.trace.degraded] == ["router"]


@pytest.mark.requirement("P4.served")
@pytest.mark.parametrize("kind", [ValueError, SystemExit, MemoryError])
def test_a_variant_that_fails_is_a_record_of_kind_and_step(kind: type[BaseException]) -> None:
    def fail(pool: Any) -> Any:
        raise kind("secret")

    control = pipeline({"a": FixedChannel({1: 0.5, 2: 0.25})}, rerank=[step("fine", FunctionReranker(halved))])
    variant = pipeline({"a": FixedChannel({1: 0.5, 2: 0.25})}, rerank=[step("bad", FunctionReranker(fail))])

    run = beside(control, question(), STORE).run(Runner(variant), STORE)

    assert (run.outcome, run.failure) == (None, f"{kind.__name__} in bad")
    assert [(record.step, record.shared) for record in run.steps] == [("a", True), ("fuse", True)]


def test_a_variant_without_an_optional_step_answers_and_names_the_failure() -> None:
    def fail(ranking: Any) -> Any:
        raise KeyError("secret")

    control = pipeline({"a": FixedChannel({1: 0.5})})
    variant = pipeline({"a": FixedChannel({1: 0.5})}, annotate=[step("bad", FunctionAnnotator(fail))])

    run = beside(control, question(), STORE).run(Runner(variant), STORE)

    assert run.outcome is not None
    assert run.failure == "KeyError in bad"


@pytest.mark.requirement("P4.served")
def test_a_failure_of_the_control_is_handed_on_and_raised() -> None:
    kept: list[ShadowRequest] = []
    control = pipeline({"a": FixedChannel(RuntimeError("secret"))})

    with pytest.raises(SpeckitError, match="no channel could answer"):
        Shadow(Runner(control), kept.append).run(question(), STORE)

    [before] = kept
    assert (before.control.outcome, before.control.failure) == (None, "RuntimeError in a")


def halved(pool: Any) -> Rescored:
    return Rescored(pool.score / 2)


@pytest.mark.parametrize(
    ("control", "variant", "parted"),
    [
        ({"rerank": [step("halve", FunctionReranker(halved))]}, {}, "halve"),
        ({}, {"rerank": [step("halve", FunctionReranker(halved))]}, "halve"),
        ({}, {"rerank": [step("idle", FunctionReranker(lambda pool: Rescored(pool.score)))]}, ""),
        ({"annotate": [step("idle", FunctionAnnotator(lambda _: Notes()))]}, {}, ""),
        ({}, {"annotate": [step("hide", FunctionAnnotator(lambda _: Notes(keep=np.array([True, False]))))]}, "hide"),
        ({}, {"annotate": [step("say", FunctionAnnotator(lambda _: Notes(warnings=("so",))))]}, "say"),
    ],
)
def test_two_runs_part_at_the_first_step_that_makes_a_difference(
    control: dict[str, Any], variant: dict[str, Any], parted: str
) -> None:
    channels = {"a": FixedChannel({1: 0.5, 2: 0.25})}

    run = beside(pipeline(channels, **control), question(), STORE).run(Runner(pipeline(channels, **variant)), STORE)

    assert run.parted_at == parted


def test_another_channel_parts_two_runs_where_it_finds_something() -> None:
    one, two, none = ({"a": FixedChannel({1: 0.5})} | more for more in (
        {}, {"b": FixedChannel({2: 0.5})}, {"b": FixedChannel({})}
    ))  # fmt: skip

    assert beside(pipeline(one), question(), STORE).run(Runner(pipeline(two)), STORE).parted_at == "b"
    assert beside(pipeline(two), question(), STORE).run(Runner(pipeline(one)), STORE).parted_at == "b"
    assert beside(pipeline(one), question(), STORE).run(Runner(pipeline(none)), STORE).parted_at != "a"


def test_a_variant_has_no_deadline_and_pauses_before_each_step_of_its_own() -> None:
    pauses: list[str] = []
    control = pipeline({"a": FixedChannel({1: 0.5}), "b": FixedChannel({2: 0.5})})
    variant = pipeline({"a": FixedChannel({1: 0.5}), "c": FixedChannel({3: 0.5})})
    before = beside(control, question(deadline_ns=1), STORE)

    run = before.run(Runner(variant), STORE, pause=pauses.append)

    assert [(record.step, record.state) for record in before.control.steps[:2]] == [("a", "ran"), ("b", "skipped")]
    assert [(record.step, record.state, record.shared) for record in run.steps] == [
        ("a", "ran", True), ("c", "ran", False), ("fuse", "ran", False),
    ]  # fmt: skip
    assert pauses == ["c", "fuse"]


class EndedError(BaseException):
    pass


def test_what_a_pause_raises_ends_the_run() -> None:
    def pause(step: str) -> None:
        raise EndedError

    variant = pipeline({"c": FixedChannel({3: 0.5})})
    with pytest.raises(EndedError):
        beside(pipeline({"a": FixedChannel({1: 0.5})}), question(), STORE).run(Runner(variant), STORE, pause)


@pytest.mark.requirement("P4.sampling")
def test_which_queries_a_variant_sees_hangs_on_their_ids_alone() -> None:
    ids = [f"{number:016x}" for number in range(4000)]

    seen = [query for query in ids if is_sampled(query, "abc", 0.25)]

    assert seen == [query for query in ids if is_sampled(query, "abc", 0.25)]
    assert 0.22 < len(seen) / len(ids) < 0.28
    assert all(is_sampled(query, "abc", 1.0) for query in ids)
    assert not any(is_sampled(query, "abc", 0.0) for query in ids)
    assert set(seen) < {query for query in ids if is_sampled(query, "abc", 0.5)}
    assert set(seen) != {query for query in ids if is_sampled(query, "def", 0.25)}


def test_the_order_of_variants_is_another_one_for_another_query() -> None:
    names = ("one", "two", "three")

    orders = Counter(tuple(shuffle_variants(f"{number:016x}", names, str)) for number in range(600))

    assert len(orders) == 6
    assert min(orders.values()) > 60
    assert shuffle_variants("a", names, str) == shuffle_variants("a", names, str)
