"""Shadows, which are replayed, and dark runs, which are measured live: felt by nobody, and lost by none."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from files import write_file
from storing.contents import RANDOM, contents

from speckit_memory.engine import Memory
from speckit_memory.engine.shadowing import dark_runs, placement, replay_process, replays, variant
from speckit_memory.engine.shadowing.replay_process import ReplayProcessEnded
from speckit_memory.engine.shadowing.replayer import Replayer, ReplayTask
from speckit_memory.engine.shadowing.shadows import Shadows
from speckit_memory.engine.shadowing.variant import RunningVariant
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from speckit_memory.memory.store.evaluation.file import EvaluationFile
from speckit_memory.memory.store.evaluation.records import Observation, RecordedPair, Replay
from speckit_memory.pipeline.comparing.shadow import is_sampled
from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.composition import BoundStep, Pipeline
from speckit_memory.pipeline.roles.contracts import About, NoParams
from speckit_memory.pipeline.running.runner import Runner

QUERIES = [f"gateway retries {number}" for number in range(6)]
SHADOWS = "extends: default\nshadows: [bm25, {use: rrf, name: ranks}]\n"
BESIDE = f"{SHADOWS}dark_runs: [{{use: catalogue, sample: 1.0}}]\n"


def written(root: Path, pipeline: str) -> Path:
    for number in range(8):
        text = f"# Note {number}\n\nThe gateway retries {number} times. {'Again. ' * number}\n"
        write_file(root / "notes" / f"{number}.md", text)
    write_file(root / ".speckit" / "pipeline.yaml", pipeline)
    with Memory.open(root / "m.db", root=root, environ={}, shadows=False) as memory:
        memory.index(root / "notes")
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return written(tmp_path, BESIDE)


@pytest.fixture
def memory(root: Path) -> Iterator[Memory]:
    with Memory.open(root / "m.db", root=root, environ={}) as opened:
        yield opened


def serve(memory: Memory, *queries: str, **more: Any) -> None:
    for query in queries:
        memory.feedback.delivered(memory.search(query, **more))


def pairs(root: Path, mode: str = "shadow") -> list[RecordedPair]:
    with EvaluationDatabase.open(evaluation_file(root / "m.db"), create=False) as database:
        return [pair for pair in database.pairs() if pair.variant.mode == mode]


def lost(root: Path) -> dict[str, int]:
    """The queries that no variant was asked, by reason."""
    with EvaluationDatabase.open(evaluation_file(root / "m.db"), create=False) as database:
        return {why: count for one in database.experiments() for why, count in one.dropped.items()}


class Odd:
    """A reranker that does something that it should not."""

    def __init__(self, work: Callable[[Pool], Any]) -> None:
        self._work = work

    def rerank(self, query: Query, pool: Pool, store: Store) -> Any:
        return self._work(pool)


def with_odd(whole: Pipeline, work: Callable[[Pool], Any]) -> Pipeline:
    odd: BoundStep[Any] = BoundStep("odd", "odd", Odd(work), NoParams(), About(features=("P1",)), None)
    return Pipeline(
        "odd", "0dd0dd0dd0dd", whole.budgets_ms, whole.candidates, whole.fusion, (*whole.rerank, odd), whole.annotate
    )


def in_the_dark(memory: Memory, work: Callable[[Pool], Any], budget_ms: float = 500.0) -> RunningVariant:
    """Has a variant with such a step run in the dark, in place of all others."""
    control = memory.pipelines.current
    running = RunningVariant(
        "odd", "dark_run", "", 1.0, Runner(with_odd(control, work)), placement.Placement(budget_ms)
    )  # fmt: skip
    memory.session.configuration.put(
        replace(memory.session.configuration.now, shadows=Shadows(control, [running], memory.session.opened.recorder))
    )
    return running


@pytest.mark.requirement("P4.order", "P4.reads")
def test_what_is_served_and_stored_is_what_it_is_without_variants(root: Path, tmp_path_factory: Any) -> None:
    plain = Path(shutil.copytree(root, tmp_path_factory.mktemp("plain") / "plain"))
    write_file(plain / ".speckit" / "pipeline.yaml", "extends: default\n")
    answers, stored = [], []
    for folder in (plain, root):
        with Memory.open(folder / "m.db", root=folder, environ={}) as memory:
            found = [
                memory.search(query, now=1e9 + place, query_id=f"{place:016x}") for place, query in enumerate(QUERIES)
            ]
            for result in found:
                memory.feedback.delivered(result)
            assert memory.shadows.finish()
            answers.append([[(row.key, row.score) for row in result.results] for result in found])
        stored.append(contents(folder / "m.db", (*RANDOM, "last_accessed", "last_used_at")))

    assert answers[0] == answers[1]
    assert stored[0] == stored[1]
    assert len(pairs(root)) == 2 * len(QUERIES)


@pytest.mark.requirement("P4.recorded")
def test_a_variant_that_comes_later_is_asked_all_that_was_kept_and_nothing_twice(root: Path) -> None:
    write_file(root / ".speckit" / "pipeline.yaml", "extends: default\n")
    with Memory.open(root / "m.db", root=root, environ={}) as memory:
        serve(memory, *QUERIES)
        assert memory.shadows.list() == ()
    told: list[tuple[int, int]] = []
    write_file(root / ".speckit" / "pipeline.yaml", SHADOWS)
    with Memory.open(root / "m.db", root=root, environ={}) as memory:
        assert [(one.name, one.seen, one.waiting) for one in memory.shadows.list()] == [("bm25", 0, 6), ("ranks", 0, 6)]
        assert memory.shadows.finish(progress=lambda done, total: told.append((done, total)))
        assert [(one.name, one.seen, one.waiting) for one in memory.shadows.list()] == [("bm25", 6, 0), ("ranks", 6, 0)]
        first = pairs(root)
        assert memory.shadows.finish()

    assert told[-1] == (12, 12)
    assert pairs(root) == first
    assert {pair.basis for pair in first} == {"served"}


@pytest.mark.requirement("P4.basis")
def test_a_query_is_replayed_as_it_was_served_while_the_store_is_the_same_and_else_over_the_present_one(
    root: Path, memory: Memory
) -> None:
    serve(memory, QUERIES[0])
    write_file(root / "notes" / "new.md", "# Gateway retries\n\nThe gateway retries for ever.\n")
    memory.index(root / "notes")
    serve(memory, QUERIES[1])
    assert memory.shadows.finish()

    before, after = (pair for pair in pairs(root) if pair.variant.answer.pipeline == memory.shadows.list()[0].hash)
    assert (before.basis, after.basis) == ("present", "served")
    new = memory.get("notes/new.md").id
    assert new in before.control.memories
    assert new in before.variant.answer.memories


@pytest.mark.requirement("P4.basis")
def test_a_query_of_a_session_is_replayed_with_what_the_session_knew_when_it_asked(root: Path, memory: Memory) -> None:
    for number in range(3):
        serve(memory, f"gateway retries {number}", session="mine")
    with EvaluationDatabase.open(evaluation_file(root / "m.db")) as database:
        memory.feedback.write()
        served = [seen.control.memories for seen in database.served()]
    assert memory.shadows.finish()

    mine = [pair for pair in pairs(root) if pair.variant.answer.pipeline == memory.shadows.list()[0].hash]
    assert [pair.control.memories[: len(rows)] for pair, rows in zip(mine, served, strict=True)] == served
    attended = [len(pair.query.read_point["session"]["attended"]) for pair in mine if pair.query.read_point]
    assert attended[0] == 0 < attended[1]
    scores = {pair.query.id: pair.control.scores for pair in mine}
    with EvaluationDatabase.open(evaluation_file(root / "m.db")) as database:
        assert all(
            scores[seen.query.id][: len(seen.control.scores)] == seen.control.scores for seen in database.served()
        )


@pytest.mark.requirement("P4.basis", "P4.dropped")
def test_a_deleted_folder_takes_the_pairs_that_need_it_and_leaves_the_experiment(root: Path, memory: Memory) -> None:
    write_file(root / "other" / "one.md", "# Gateway\n\nThe gateway retries elsewhere.\n")
    memory.index(root / "other")
    serve(memory, QUERIES[0], folder="other")
    serve(memory, QUERIES[1])
    shutil.rmtree(root / "other")
    memory.index(root / "other")
    assert memory.shadows.finish()

    assert {pair.query.folder for pair in pairs(root)} == {""}
    assert lost(root)["gone"] == 1
    assert [one.waiting for one in memory.shadows.list() if one.mode == "shadow"] == [0, 0]


@pytest.mark.requirement("P4.carried")
def test_evidence_carries_over_to_a_control_that_answers_alike_and_to_no_other(root: Path) -> None:
    budgets = "budgets_ms: {shadow: 900}\n"
    with Memory.open(root / "m.db", root=root, environ={}) as memory:
        serve(memory, *QUERIES)
        assert memory.shadows.finish()
    with EvaluationDatabase.open(evaluation_file(root / "m.db")) as database:
        database.prune(before=0.0, max_bytes=10**9, texts_before=1e12)  # nothing of it can be asked again
    states = []
    for text in (budgets + SHADOWS, SHADOWS.replace("default", "rsf")):
        write_file(root / ".speckit" / "pipeline.yaml", text)
        with Memory.open(root / "m.db", root=root, environ={}) as memory:
            assert memory.shadows.finish()
            states.append([(one.name, one.seen) for one in memory.shadows.list()])

    assert states == [[("bm25", 6), ("ranks", 6)], [("bm25", 0), ("ranks", 0)]]


class Ending:
    """A process that ends whenever it is asked."""

    def __init__(self, task: ReplayTask) -> None:
        pass

    def replay(self, seen: Observation) -> Replay:
        raise ReplayProcessEnded("ReplayTimeout in odd")

    def end(self) -> None:
        pass


class NeverBegun(Ending):
    """A process that ends before it is asked."""

    def __init__(self, task: ReplayTask) -> None:
        raise ReplayProcessEnded("ReplayTimeout in odd")


@pytest.mark.requirement("P4.hanging", "P4.failed")
@pytest.mark.parametrize("process", [Ending, NeverBegun])
def test_a_variant_whose_process_has_to_end_again_and_again_is_given_up(
    root: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch, process: type[Ending]
) -> None:
    monkeypatch.setattr(replay_process, "ReplayProcess", process)
    serve(memory, *QUERIES)
    assert memory.shadows.finish()
    states = memory.shadows.list()[:2]
    monkeypatch.undo()
    assert memory.shadows.finish()  # asks those nothing any more

    assert [(one.place, one.seen, one.failed, one.waiting) for one in states] == [("off", 3, 3, 0)] * 2
    assert states[0].retreat == "3 of its processes crashed or hung"
    assert memory.shadows.list()[:2] == states
    assert {pair.variant.answer.failure for pair in pairs(root)} == {"ReplayTimeout in odd"}


@pytest.mark.requirement("P4.failed")
def test_a_variant_that_fails_on_everything_is_given_up_and_one_that_answers_now_and_then_is_not(
    root: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replays, "ALWAYS_FAILED", 4)
    whole, asked = Replayer.replay, iter(range(100))

    def failing(self: Replayer, seen: Observation, pause: Any = None) -> Replay:
        found = whole(self, seen, pause)
        if self._variant.pipeline.name == "rrf" and next(asked) == 2:
            return found
        broken = replace(found.variant.answer, memories=(), scores=(), failure="ValueError in odd")
        return replace(found, variant=replace(found.variant, answer=broken))

    monkeypatch.setattr(Replayer, "replay", failing)
    serve(memory, *QUERIES)
    assert memory.shadows.finish()

    always, often = memory.shadows.list()[:2]
    assert (always.place, always.seen, always.retreat) == ("off", 4, "it failed on all of 4 queries")
    assert (often.place, often.seen, often.failed) == ("replay", 6, 5)


@pytest.mark.requirement("P4.recorded")
def test_what_is_interrupted_goes_on_where_it_was(root: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "BATCH", 2)
    serve(memory, *QUERIES)
    whole, asked = Replayer.replay, iter(range(100))

    def interrupted(self: Replayer, seen: Observation, pause: Any = None) -> Replay:
        if next(asked) == 3:
            raise KeyboardInterrupt
        return whole(self, seen, pause)

    monkeypatch.setattr(Replayer, "replay", interrupted)
    with pytest.raises(KeyboardInterrupt):
        memory.shadows.finish()
    done = pairs(root)
    monkeypatch.setattr(Replayer, "replay", whole)
    assert memory.shadows.finish()

    assert len(done) == 3
    assert len(pairs(root)) == 12
    assert all(pair in pairs(root) for pair in done)


def test_a_busy_log_is_told_and_costs_no_answer(root: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(memory, QUERIES[0])
    memory.feedback.write()
    monkeypatch.setattr("speckit_memory.memory.store.evaluation.database.BUSY_TIMEOUT_MS", 10)
    file = EvaluationFile(evaluation_file(root / "m.db"), create=False, busy_timeout_ms=1000)
    with file.writing():
        serve(memory, QUERIES[1])
        with pytest.raises(SpeckitError, match="E022"):
            memory.shadows.finish()
    file.close()
    assert memory.shadows.finish()
    assert len(pairs(root)) == 4


@pytest.mark.requirement("P4.sampling")
def test_a_share_of_the_queries_is_replayed_the_same_ones_each_time(tmp_path: Path) -> None:
    root = written(tmp_path, "extends: default\nshadows: [{use: bm25, sample: 0.5}]\n")
    with Memory.open(root / "m.db", root=root, environ={}) as memory:
        for number in range(40):
            memory.feedback.delivered(memory.search("gateway", query_id=f"{number:016x}"))
        assert memory.shadows.finish()
        hashed = memory.shadows.list()[0].hash
    seen = {int(pair.query.id, 16) for pair in pairs(root)}

    assert 8 < len(seen) < 32
    assert seen == {number for number in range(40) if is_sampled(f"{number:016x}", hashed, 0.5)}


@pytest.mark.requirement("P4.dark")
def test_a_dark_run_keeps_its_cost_and_not_its_rows_and_is_a_sample_of_the_searches(root: Path, memory: Memory) -> None:
    result = memory.search(QUERIES[0])
    memory.feedback.delivered(result)
    assert memory.shadows.finish()
    memory.feedback.write()

    [dark] = pairs(root, "dark_run")
    assert dark.basis == "live"
    assert dark.variant.answer.memories == dark.variant.answer.scores == ()
    assert dark.variant.spent_ms == dark.variant.answer.total_ms > 0
    write_file(root / ".speckit" / "pipeline.yaml", "extends: default\ndark_runs: [catalogue]\n")
    with Memory.open(root / "m.db", root=root, environ={}) as other:
        assert [one.sample for one in other.shadows.list()] == [0.05]


@pytest.mark.requirement("P4.served")
@pytest.mark.parametrize(
    ("work", "failure"),
    [
        (lambda _: 1 / 0, "ZeroDivisionError in odd"),
        (lambda _: "nonsense", "ContractError in odd"),
        (lambda _: exit(), "SystemExit in odd"),
    ],
)
def test_a_dark_run_that_fails_is_noted_by_kind_and_step_and_the_answer_is_what_it_was(
    root: Path, memory: Memory, work: Callable[[Pool], Any], failure: str
) -> None:
    expected = memory.search(QUERIES[0], now=1e9).results
    assert memory.shadows.finish()
    odd = in_the_dark(memory, work)
    assert memory.search(QUERIES[0], now=1e9).results == expected
    assert memory.shadows.finish()
    memory.feedback.write()

    assert (odd.seen, odd.failed) == (1, 1)
    assert failure in {pair.variant.answer.failure for pair in pairs(root, "dark_run")}


@pytest.mark.requirement("P4.hanging", "P4.queue", "P4.dropped")
def test_a_dark_run_that_does_not_end_is_given_up_and_others_are_counted_meanwhile(
    root: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dark_runs, "HANGING_SECONDS", 0.3)
    going_on, hanging = threading.Event(), threading.Event()

    def hang(_: Pool) -> None:
        hanging.set()
        going_on.wait(60)

    odd = in_the_dark(memory, hang)
    memory.search(QUERIES[0])
    assert hanging.wait(30)
    memory.search(QUERIES[1])
    assert (odd.seen, dict(odd.dropped)) == (0, {"queue": 1})
    until = time.monotonic() + 30
    while odd.place != "off" and time.monotonic() < until:
        time.sleep(0.02)
    memory.search(QUERIES[2])
    memory.feedback.write()
    going_on.set()

    assert (odd.place, odd.seen, odd.failed, dict(odd.dropped)) == ("off", 1, 1, {"queue": 1, "off": 1})
    assert "did not end within" in odd.retreat
    assert [pair.variant.answer.failure for pair in pairs(root, "dark_run")] == ["TimeoutError in odd"]


@pytest.mark.requirement("P10.retreat", "P10.budget")
def test_a_dark_run_over_the_budget_leaves_the_request_path_and_stays_away_until_it_has_rested(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dark_runs, "IDLE_SECONDS", 0.01)
    dark = "extends: default\nbudgets_ms: {shadow: 0.001}\ndark_runs: [{use: bm25, sample: 1.0}]\n"
    write_file(root / ".speckit" / "pipeline.yaml", dark)
    places = []
    for _ in range(2):
        with Memory.open(root / "m.db", root=root, environ={}) as memory:
            for number in range(placement.ENOUGH):
                memory.search(f"gateway {number}")
                assert memory.shadows.finish()
            places.append([one.place for one in memory.shadows.list()])
    with Memory.open(root / "m.db", root=root, environ={}) as memory:
        memory.search("gateway")
        assert memory.shadows.finish()
        [state] = memory.shadows.list()
    monkeypatch.setattr(variant, "REST_SECONDS", -1.0)
    with Memory.open(root / "m.db", root=root, environ={}) as memory:
        [rested] = memory.shadows.list()

    assert places == [["idle"], ["off"]]
    assert (state.place, dict(state.dropped)) == ("off", {"off": 1})
    assert rested.place == "beside"


@pytest.mark.requirement("P4.dropped")
def test_a_dark_run_that_has_not_ended_when_the_process_ends_is_counted(
    root: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("speckit_memory.engine.serving.serving.LEAVING_SECONDS", 0.05)
    going_on = threading.Event()
    odd = in_the_dark(memory, lambda _: going_on.wait(60))
    memory.search(QUERIES[0])
    memory.shadows.stop()
    memory.feedback.write()
    going_on.set()

    assert (odd.seen, dict(odd.dropped)) == (0, {"end": 1})
    assert lost(root) == {"end": 1}


@pytest.mark.requirement("P4.served")
def test_where_no_thread_can_be_started_queries_are_answered_and_counted(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = in_the_dark(memory, lambda _: None)

    def full(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", full)
    assert memory.search(QUERIES[0]).results
    monkeypatch.undo()

    assert dict(odd.dropped) == {"queue": 1}
    memory.search(QUERIES[1])
    assert memory.shadows.finish()
    assert odd.seen == 1


def test_health_and_measurements_are_seen_by_no_variant(memory: Memory, root: Path) -> None:
    memory.status()
    with memory.using("default") as other:
        other.search(QUERIES[0])
    assert memory.shadows.finish()

    assert not evaluation_file(root / "m.db").exists()


def test_a_memory_beside_brings_what_others_answer_to_the_same_query(memory: Memory, root: Path) -> None:
    with memory.with_shadows("bm25", "default") as both:
        result = both.search(QUERIES[0])
        alone = memory.search(QUERIES[0], now=result.outcome.query.now)
    words, same = result.beside

    assert [row.id for row in result.results] == [row.id for row in alone.results]
    assert words.result is not None
    assert words.pipeline.name == "bm25"
    assert same.result is not None
    assert [row.score for row in same.result.results] == [row.score for row in result.results]
    assert same.parted_at == ""


def test_nothing_is_asked_where_nothing_is_recorded(root: Path) -> None:
    write_file(root / ".speckit" / "config.yaml", 'evaluation: {record: "off"}\n')
    with Memory.open(root / "m.db", root=root, environ={}) as memory:
        serve(memory, QUERIES[0])
        assert memory.shadows.finish()
        assert memory.shadows.list() == ()
    assert not evaluation_file(root / "m.db").exists()


@pytest.mark.requirement("P4.dropped")
def test_hand_overs_are_not_replayed_and_not_measured(memory: Memory) -> None:
    result = memory.search("gateway", mode="resume")
    memory.feedback.delivered(result)
    assert memory.shadows.finish()

    assert [one.waiting for one in memory.shadows.list()[:2]] == [0, 0]


@pytest.mark.requirement("P4.dropped")
def test_health_counts_what_variants_saw_in_all_processes(root: Path) -> None:
    for query in QUERIES[:2]:
        with Memory.open(root / "m.db", root=root, environ={}) as memory:
            serve(memory, query)
            assert memory.shadows.finish()
    with Memory.open(root / "m.db", root=root, environ={}) as memory:
        serve(memory, QUERIES[2])
        [check] = [check for check in memory.status().checks if check.name == "shadows"]

    assert "'bm25' in shadow, by replay, 2 seen, 1 waiting" in check.detail
    assert (
        "in dark_run, with the reply, 3 seen" in check.detail or "in dark_run, with the reply, 2 seen" in check.detail
    )


def test_queries_that_are_compared_by_hand_join_no_experiment(memory: Memory, root: Path) -> None:
    with memory.with_shadows("bm25") as both:
        both.search(QUERIES[0])
    memory.feedback.write()
    assert not evaluation_file(root / "m.db").exists()
