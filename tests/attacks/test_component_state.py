"""What a component keeps, changes or breaks beside its answer: its own bounds, other steps, the process, the user."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from frame.attacking import NOW, TEXT, answered, memory, target
from frame.attacks import Attack, attacks
from frame.doubles import FixedChannel, SmallStore, question
from frame.doubles import pipeline as pipeline_of
from frame.doubles import signal as signal_step
from frame.hostile import attacked, component, without
from tally import Tally

from speckit_memory.engine import Memory
from speckit_memory.engine.answers.request import SearchRequest
from speckit_memory.engine.answers.why_not import why_not
from speckit_memory.engine.search.plans import plan_report
from speckit_memory.engine.search.searcher import Searcher
from speckit_memory.engine.serving.serving import ConfigurationState
from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.model.columns import Hits, Notes, Plan, Query, Respelling
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.contracts import Role
from speckit_memory.pipeline.running.runner import Runner

pytestmark = pytest.mark.requirement("P9")


@pytest.mark.parametrize("role", [Role.SIGNAL, Role.RERANKER])
@pytest.mark.parametrize("family", ["raised", "columns"])
def test_a_step_that_is_needed_is_an_error_that_names_it(role: Role, family: str, tally: Tally) -> None:
    required = target(role, optional=False)
    for attack in attacks(role, family):
        required.refuses(attack)
        tally.tried()

    required.is_clean()


@pytest.mark.parametrize("role", list(Role))
def test_nothing_is_raised_in_a_thread_of_a_server_either(role: Role, tally: Tally) -> None:
    reasons: list[str] = []

    def ask() -> None:
        reasons.extend(target(role).refuses(attack) for attack in attacks(role, "raised"))

    worker = threading.Thread(target=ask)
    worker.start()
    worker.join()

    assert len(reasons) == len(attacks(role, "raised"))
    tally.tried(len(reasons))


def test_no_signal_makes_scores_that_others_cannot_calculate_with(tally: Tally) -> None:
    found = {"a": FixedChannel({1: 0.5, 2: 0.25})}
    large = [signal_step(name, {1: 1e30, 2: 0.9e30}) for name in ("large", "larger")]

    outcome = Runner(pipeline_of(found, signals=large)).run(question(), cast("Store", SmallStore()))

    assert outcome.pool.score.tolist() == [1e30, 0.9e30]
    [part] = outcome.trace.degraded
    assert (part.part, "scores above 1e+30" in part.reason) == ("larger", True)
    tally.tried(2)


JUDGEMENTS: dict[str, Callable[..., Any]] = {
    "nothing": lambda *asked: None,
    "a list": lambda *asked: [1],
    "real numbers": lambda *asked: np.array([1.0]),
    "two dimensions": lambda *asked: np.array([[1]]),
    "foreign memories": lambda *asked: np.array([10**9]),
    "memories outside": lambda concept, query, store: store.attributes.of_tier("deprecated"),
    "too many": lambda *asked: np.broadcast_to(np.int64(1), (10**12,)),
    "a subclass": lambda *asked: np.array([1]).view(np.recarray),
    "no reason": lambda *asked: Unavailable(None),  # type: ignore[arg-type]
    "an exit": lambda *asked: sys.exit(1),
}


@pytest.mark.parametrize("name", JUDGEMENTS)
def test_a_judge_of_concepts_names_memories_or_nothing(name: str, tmp_path: Path, tally: Tally) -> None:
    hostile = component(Role.CHANNEL, lambda query, limit, store: Hits(np.empty(0, np.int64), np.empty(0), Scale.UNIT))
    hostile.about_concept = lambda self, *asked: JUDGEMENTS[name](*asked)
    pipeline = attacked(tmp_path, Role.CHANNEL, hostile)
    store = memory().session.view()
    query = SearchRequest(text="", concepts=("gateway", "payment")).query(store, NOW, None)

    outcome = Runner(pipeline).run(query, store)

    plain = Runner(without(pipeline)).run(query, store)
    assert outcome.pool.ids.tolist() == plain.pool.ids.tolist()
    assert {part.part for part in outcome.trace.degraded} == {"hostile"}
    tally.tried()


def test_a_reading_of_a_misspelt_word_may_hold_any_characters(tmp_path: Path, tally: Tally) -> None:
    for reading in (r"\1", r"\g<0>", "\\", "[", r"\u0041"):

        def respell(query: Query, plan: Plan, store: Any, reading: str = reading) -> Plan:
            return replace(plan, respelt=(Respelling("gateway", "gateway", {"gateway": 1.0}, reading),))

        opened = with_pipeline(attacked(tmp_path, Role.UNDERSTANDER, component(Role.UNDERSTANDER, respell)))
        result = opened.search(TEXT, now=NOW)
        assert result.outcome.query.reading == TEXT.replace("gateway", reading)
        assert result.results
        tally.tried()


def with_pipeline(pipeline: Any) -> Memory:
    """The project's memories behind another pipeline."""
    opened = memory().using("bm25")
    opened.session.configuration.put(
        ConfigurationState(opened.session.settings, Searcher(Runner(pipeline), opened.session.settings))
    )
    return opened


@pytest.mark.parametrize("name", ["raises SystemExit", "raises long", "returns None", "returns array"])
def test_a_plan_and_a_reason_why_not_survive_hostile_steps(name: str, tmp_path: Path, tally: Tally) -> None:
    def of(role: Role) -> Callable[..., Any]:
        every = [*attacks(role, "raised"), *attacks(role, "unfit values")]
        return next(attack.work for attack in every if attack.name == name)

    store = memory().session.view()
    understander = attacked(tmp_path, Role.UNDERSTANDER, component(Role.UNDERSTANDER, of(Role.UNDERSTANDER)))
    query = SearchRequest(text=TEXT).query(store, NOW, None)
    assert plan_report(Runner(understander), query, store).as_json()["plan"]["variants"] == [TEXT]

    runner = Runner(attacked(tmp_path, Role.CHANNEL, component(Role.CHANNEL, of(Role.CHANNEL))))
    found = with_pipeline(runner.pipeline).search(TEXT, now=NOW, limit=1)
    lost = memory().get("rules/constitutional/house.md")
    assert "hostile failed" in why_not(runner.pipeline, found, lost, store)
    tally.tried(2)


def test_an_error_says_no_more_than_what_was_needed(tmp_path: Path, tally: Tally) -> None:
    """A required step's failure carries no object of the component: what prints an error would run its code."""
    pipeline = attacked(tmp_path, Role.RERANKER, component(Role.RERANKER, lambda *asked: sys.exit(1)), optional=False)

    with pytest.raises(SpeckitError) as caught:
        answered(pipeline, Role.RERANKER)

    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    tally.tried()


def test_an_interrupt_ends_the_search_and_not_its_step(tmp_path: Path, tally: Tally) -> None:
    def pressed(*asked: Any) -> Notes:
        raise KeyboardInterrupt

    pipeline = attacked(tmp_path, Role.ANNOTATOR, component(Role.ANNOTATOR, pressed))
    with pytest.raises(KeyboardInterrupt):
        answered(pipeline, Role.ANNOTATOR)
    tally.tried()


WRITES: dict[Role, Callable[[Any], Any]] = {
    Role.FUSER: lambda candidates: candidates.raw.__imul__(0),
    Role.SIGNAL: lambda pool: pool.score.__imul__(0),
    Role.RERANKER: lambda pool: pool.score.sort(),
    Role.ANNOTATOR: lambda ranking: ranking.scores.__imul__(0),
}


@pytest.mark.parametrize("role", WRITES)
def test_a_write_into_the_columns_that_a_component_is_shown_fails_at_the_write(role: Role, tally: Tally) -> None:
    reason = target(role).refuses(Attack("writes in place", lambda *asked: WRITES[role](asked[1])))

    assert "ValueError" in reason
    assert "read-only" in reason
    target(role).is_clean()
    tally.tried()
