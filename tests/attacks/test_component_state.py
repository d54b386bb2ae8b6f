"""What a component keeps, changes or breaks beside its answer: its own bounds, other steps, the process, the user."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, cast

import numpy as np
import pytest
from frame.attacking import ANNOTATED, NOW, TEXT, answered, memory, served, target
from frame.attacks import Attack, attacks, honest, written
from frame.doubles import FixedChannel, SmallStore, question
from frame.doubles import pipeline as pipeline_of
from frame.doubles import signal as signal_step
from frame.hostile import PLAIN, attacked, component, without
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
from speckit_memory.pipeline.roles.contracts import About, Role
from speckit_memory.pipeline.running.runner import Runner

pytestmark = pytest.mark.requirement("P9")


@pytest.mark.parametrize("role", [Role.SIGNAL, Role.RERANKER])
@pytest.mark.parametrize("family", ["raised", "columns", "tampering"])
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


def reasons(role: Role, *works: Callable[..., Any]) -> list[str]:
    return [target(role).refuses(Attack("", work)) for work in works]


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_of_the_user_ends_the_search_even_where_a_component_keeps_it_to_itself(tally: Tally) -> None:
    def pressed(*asked: Any) -> Notes:
        signal.raise_signal(signal.SIGINT)
        return Notes()

    def swallowed(*asked: Any) -> Notes:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            return Notes()
        raise AssertionError

    attacked_role = target(Role.ANNOTATOR)
    for work in (pressed, swallowed):
        with pytest.raises(KeyboardInterrupt):
            attacked_role.refuses(Attack("", work))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        tally.survived()
    attacked_role.is_clean()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C as Python has it, also where the tests were started in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def raises_interrupt(*asked: Any) -> NoReturn:
    raise KeyboardInterrupt


def test_a_program_that_ignores_interrupts_is_not_interrupted_by_a_component(tally: Tally) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        [reason] = reasons(Role.SIGNAL, raises_interrupt)

        assert "KeyboardInterrupt" in reason
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    tally.survived()


def test_a_programs_own_way_with_interrupts_is_left_to_it(tally: Tally) -> None:
    def own(number: int, frame: FrameType | None) -> None:
        raise AssertionError

    before = signal.signal(signal.SIGINT, own)
    try:
        with pytest.raises(KeyboardInterrupt):
            reasons(Role.SIGNAL, raises_interrupt)

        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)
    tally.survived()


def test_what_belongs_to_the_process_is_put_back(tmp_path: Path, tally: Tally) -> None:
    def spoil(*asked: Any) -> Any:
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
        sys.setrecursionlimit(len(os.sched_getaffinity(0)) + 200)
        gc.disable()
        np.seterr(all="raise")
        os.chdir(tmp_path)
        spoilt.append(sys.stdout)
        raise SystemExit(1)

    spoilt: list[Any] = []
    before = (sys.stdout, sys.stderr, sys.getrecursionlimit(), gc.isenabled(), np.geterr(), Path.cwd())
    for role in Role:
        reasons(role, spoil)
        assert before == (sys.stdout, sys.stderr, sys.getrecursionlimit(), gc.isenabled(), np.geterr(), Path.cwd())
        tally.survived(6)
    for stream in spoilt:
        stream.close()


class Keeper:
    """A reranker and an annotator of one author: the one keeps what it was shown, the other writes into it."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def rerank(self, query: Query, pool: Any, store: Any) -> Unavailable:
        self.kept += [query, pool]
        return Unavailable("for now")

    def annotate(self, query: Query, ranking: Any, store: Any) -> Notes:
        _, pool = self.kept
        for array in (pool.score, pool.ids, pool.candidates.raw, pool.candidates.parents, pool.chunk_hits):
            written(array)
        object.__setattr__(pool.candidates, "ids", pool.ids[::-1])
        object.__setattr__(pool, "steps", ())
        return Notes()


def test_what_a_reranker_keeps_is_of_no_use_to_an_annotator(tmp_path: Path, tally: Tally) -> None:
    keeper = Keeper()
    pipeline = attacked(tmp_path, Role.RERANKER, component(Role.RERANKER, keeper.rerank), ANNOTATED, first=True)
    accomplice: Any = replace(pipeline.rerank[0], component=keeper, id="accomplice")
    pipeline = replace(pipeline, annotate=(accomplice, *pipeline.annotate))

    outcome = answered(pipeline, Role.RERANKER)

    expected = served(answered(without(pipeline), Role.RERANKER))
    assert served(outcome)[:4] == expected[:4]
    assert [part.part for part in outcome.trace.degraded] == ["hostile"]
    tally.survived(7)


def test_no_step_sees_what_an_earlier_one_has_changed(tmp_path: Path, tally: Tally) -> None:
    seen: list[Any] = []

    def look(query: Query, ranking: Any, store: Any) -> Notes:
        seen.append((repr(query), ranking.ids.tolist(), ranking.scores.tolist()))
        return Notes()

    for attack in [*attacks(Role.ANNOTATOR, "tampering"), Attack("nothing", lambda *asked: Notes())]:
        pipeline = attacked(tmp_path, Role.ANNOTATOR, component(Role.ANNOTATOR, attack.work), PLAIN)
        looking = replace(pipeline.annotate[-1], component=component(Role.ANNOTATOR, look)(None), id="look")
        answered(replace(pipeline, annotate=(*pipeline.annotate, looking)), Role.ANNOTATOR)
        tally.tried()

    assert len(set(map(repr, seen))) == 1


def test_a_component_cannot_widen_its_own_bounds(tmp_path: Path, tally: Tally) -> None:
    """The frame goes by parameters and a description of its own."""

    class Grasping(component(Role.CHANNEL, lambda *asked: None)):  # type: ignore[misc]
        """Finds everything, whatever the filter says."""

        about = About(features=("P9",), gives=Scale.UNIT)

        def __init__(self, params: Any) -> None:
            self._params = params

        def search(self, query: Query, limit: int, store: Any) -> Hits:
            object.__setattr__(self.about, "unconditional", True)
            self._params.__dict__["limit"] = 1000
            ids = np.sort(store.attributes.of_tier("normal"))[:1000]
            return Hits(ids, np.ones(len(ids)), Scale.UNIT)

    pipeline = attacked(tmp_path, Role.CHANNEL, Grasping)
    store = memory().session.view()
    for _ in range(2):
        outcome = Runner(pipeline).run(SearchRequest(text=TEXT, folder="docs/gateway").query(store, NOW, None), store)
        [part] = outcome.trace.degraded
        assert "does not admit" in part.reason or "its limit is 50" in part.reason
        tally.tried()


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


def test_a_property_that_exits_is_no_judge_and_no_way_to_combine(tmp_path: Path, tally: Tally) -> None:
    def leave(self: object) -> Any:
        raise SystemExit(1)

    channel = component(Role.CHANNEL, lambda query, limit, store: honest(Role.CHANNEL, (query, limit, store)))
    pipeline = attacked(tmp_path, Role.CHANNEL, channel)
    channel.about_concept = property(leave)
    store = memory().session.view()
    query = SearchRequest(text="", concepts=("gateway", "payment")).query(store, NOW, None)
    outcome = Runner(pipeline).run(query, store)
    assert {part.part for part in outcome.trace.degraded} == {"hostile"}

    for combine in (property(leave), "replace", None, 7):
        signal_ = component(Role.SIGNAL, lambda query, pool, store: np.zeros(len(pool)))
        pipeline = attacked(tmp_path, Role.SIGNAL, signal_)
        signal_.combine = combine
        outcome = answered(pipeline, Role.SIGNAL)
        assert served(outcome) == served(answered(without(pipeline), Role.SIGNAL))
        assert [part.part for part in outcome.trace.degraded] == ["hostile"]
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


@pytest.mark.parametrize("name", ["raises SystemExit", "raises endless", "returns None", "returns array"])
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
