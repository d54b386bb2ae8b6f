"""Variants beside the pipeline that is served: after the reply, on the state that it saw, and felt by nobody."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest
from files import write_file
from frame.observed import observed
from storing.contents import contents

from speckit_memory.engine import Memory
from speckit_memory.engine.shadowing import placement, variant, worker
from speckit_memory.engine.shadowing.gate import SERVING
from speckit_memory.engine.shadowing.records import observation
from speckit_memory.engine.shadowing.shadows import Shadows
from speckit_memory.engine.shadowing.variant import RunningVariant
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from speckit_memory.memory.store.evaluation.file import EvaluationFile
from speckit_memory.memory.store.evaluation.records import Pair, experiment_id
from speckit_memory.memory.store.tables.meta import set_meta
from speckit_memory.pipeline.composition import BoundStep, Pipeline
from speckit_memory.pipeline.contracts import About, NoParams
from speckit_memory.pipeline.model import Pool, Query
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.runner import Runner

QUERIES = [f"gateway retries {number}" for number in range(12)]
BESIDE = "extends: default\nshadows: [bm25, {use: rrf, name: ranks}]\ndark_runs: [catalogue]\n"


def written(root: Path, pipeline: str) -> Path:
    for number in range(8):
        text = f"# Note {number}\n\nThe gateway retries {number} times. {'Again. ' * number}\n"
        (root / f"{number}.md").write_text(text)
    write_file(root / ".speckit" / "pipeline.yaml", pipeline)
    with Memory.open(root / "m.db", root=root, environ={}, shadows=False) as memory:
        memory.index(root)
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return written(tmp_path, BESIDE)


@pytest.fixture
def memory(root: Path) -> Iterator[Memory]:
    with Memory.open(root / "m.db", root=root, environ={}) as opened:
        yield opened


def pairs(root: Path) -> list[Pair]:
    with EvaluationDatabase.open(evaluation_file(root / "m.db"), create=False) as database:
        return database.pairs()


def lost(root: Path) -> dict[str, int]:
    """What the evaluation database counts as not seen, by reason."""
    connection = apsw.Connection(str(evaluation_file(root / "m.db")), flags=apsw.SQLITE_OPEN_READONLY)
    with contextlib.closing(connection):
        return dict(connection.execute("SELECT why, sum(count) FROM dropped GROUP BY 1"))


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


def beside(memory: Memory, work: Callable[[Pool], Any], budget_ms: float = 500.0) -> RunningVariant:
    """Puts a variant with such a step beside the pipeline, in place of all others."""
    control = memory.pipeline
    running = RunningVariant(
        "odd", "shadow", "", 1.0, Runner(with_odd(control, work)), placement.Placement(budget_ms)
    )  # fmt: skip
    memory._in_force.put(replace(memory._in_force.now, shadows=Shadows(control, [running], memory._open.recorder)))
    return running


@pytest.mark.requirement("P4.order", "P4.reads")
def test_what_is_served_and_stored_is_what_it_is_without_variants(root: Path, tmp_path_factory: Any) -> None:
    plain = Path(shutil.copytree(root, tmp_path_factory.mktemp("plain") / "copy"))
    (plain / ".speckit" / "pipeline.yaml").write_text("extends: default\n")
    answers, stores = [], []
    for folder in (plain, root):
        with Memory.open(folder / "m.db", root=folder, environ={}) as memory:
            given = []
            for query in QUERIES:
                result = memory.search(query, session="work", now=1.9e9, deadline_ms=None)
                memory.served(result)
                said = observed(result)
                said[0].pop("pipeline")  # it is called by its path
                given.append(said)
                assert memory.finish_shadows(60)
        answers.append(given)
        stores.append(contents(folder / "m.db"))

    assert answers[0] == answers[1]
    assert stores[0] == stores[1]
    assert stores[0]["changes"]
    assert len(pairs(root)) == 3 * len(QUERIES)


@pytest.mark.requirement("P4.order")
def test_a_variant_begins_when_the_reply_is_out_and_gives_way_before_each_step(memory: Memory) -> None:
    while_served: list[bool] = []
    beside(memory, lambda pool: while_served.append(SERVING.closed))

    with SERVING.serving():
        memory.search(QUERIES[0])
        time.sleep(0.05)
        before = list(while_served)

    assert memory.finish_shadows(30)
    assert (before, while_served) == ([], [False])


@pytest.mark.requirement("P4.state")
def test_a_variant_sees_the_state_that_was_served_whatever_is_written_meanwhile(memory: Memory, root: Path) -> None:
    with SERVING.serving():
        result = memory.search("gateway retries", limit=20)
        (root / "new.md").write_text("# New\n\nThe gateway retries retries retries.\n")
        memory.save_file(root / "new.md")
        memory.served(result)
    assert memory.finish_shadows(60)
    new = memory.get("new.md").id
    memory.close()

    found = {pair.variant.answer.memories for pair in pairs(root) if pair.variant.mode == "shadow"}
    assert found
    assert all(new not in memories for memories in found)
    assert {pair.query.id for pair in pairs(root)} == {result.query_id}


@pytest.mark.requirement("P4.served")
@pytest.mark.parametrize(
    ("work", "failure"),
    [
        (lambda pool: raising(ValueError), "ValueError in odd"),
        (lambda pool: raising(SystemExit), "SystemExit in odd"),
        (lambda pool: raising(KeyboardInterrupt), "KeyboardInterrupt in odd"),
        (lambda pool: "nonsense", "ContractError in odd"),
        (lambda pool: len([bytearray(1 << 20) for _ in range(64)]), "ContractError in odd"),
        (lambda pool: pool.chunk_hits.__setattr__("flags", 1), "AttributeError in odd"),
        (lambda pool: object.__setattr__(pool, "steps", ()), "ContractError in odd"),
    ],
)
def test_a_variant_that_fails_is_noted_by_kind_and_step_and_the_answer_is_what_it_was(
    memory: Memory, root: Path, work: Callable[[Pool], Any], failure: str
) -> None:
    with memory.using(root / ".speckit" / "pipeline.yaml") as alone:
        expected = observed(alone.search(QUERIES[0], now=1.9e9, deadline_ms=None))
    running = beside(memory, work)

    served = observed(memory.search(QUERIES[0], now=1.9e9, deadline_ms=None))

    assert memory.finish_shadows(30)
    memory.close()
    [pair] = pairs(root)
    assert served == expected
    assert (pair.variant.answer.failure, pair.variant.answer.memories) == (failure, ())
    assert (running.seen, running.failed) == (1, 1)


def raising(kind: type[BaseException]) -> Any:
    raise kind("secret")


@pytest.mark.requirement("P4.queue", "P4.dropped")
def test_a_full_queue_drops_and_counts(memory: Memory, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MOST_HELD", 3)
    with SERVING.serving():
        for query in QUERIES[:5]:
            memory.search(query, session=query)  # sessions share no state
    assert memory.finish_shadows(60)
    states = memory.shadows
    memory.close()

    assert [(one.seen, one.dropped) for one in states] == [(3, {"queue": 2})] * 3
    assert lost(root) == {"queue": 6}
    assert len(pairs(root)) == 9


@pytest.mark.requirement("P4.queue")
@pytest.mark.parametrize("place", ["beside", "idle"])
@pytest.mark.usefixtures("exhaustive")
def test_under_steady_load_no_state_is_held_for_long_and_the_log_can_begin_anew(
    memory: Memory, root: Path, monkeypatch: pytest.MonkeyPatch, place: placement.Place
) -> None:
    monkeypatch.setattr(worker, "LONGEST_HELD_SECONDS", 0.3)
    running = beside(memory, lambda pool: None)
    running.placement.place, running.stepped_back = place, time.time()
    blocked = []
    load = SERVING.serving() if place == "beside" else contextlib.nullcontext()
    with contextlib.closing(apsw.Connection(str(root / "m.db"))) as other, load:
        for number in range(40):
            memory.search(QUERIES[number % len(QUERIES)])
            time.sleep(0.04)
            with memory._open.database.write() as txn:
                set_meta(txn, "fact", str(number))
            [(held, *_)] = other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            blocked.append(held)

    assert 1 in blocked
    assert 0 in blocked[blocked.index(1) :]
    assert memory.finish_shadows(30)
    assert "busy" in running.dropped
    assert running.seen + sum(running.dropped.values()) == 40


@pytest.mark.requirement("P4.queue")
def test_waiting_for_idle_moments_leaves_room_for_others(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "IDLE_SECONDS", 60.0)
    monkeypatch.setattr(worker, "LONGEST_HELD_SECONDS", 60.0)
    assert memory._shadows is not None
    [first, second, third] = memory._shadows._variants
    first.placement.place, first.stepped_back = "idle", time.time()
    for number, query in enumerate(QUERIES[:3], start=1):
        memory.search(query)
        until = time.monotonic() + 30
        while time.monotonic() < until and first.dropped["queue"] + waiting_for_idle(memory._shadows) < number:
            time.sleep(0.01)
    assert waiting_for_idle(memory._shadows) == 2

    assert memory.finish_shadows(30)
    assert (first.seen, dict(first.dropped)) == (2, {"queue": 1})
    assert (second.seen, third.seen) == (3, 3)


def waiting_for_idle(beside: Shadows) -> int:
    return sum(job.idle for job in beside._worker._waiting)


@pytest.mark.requirement("P4.dropped")
def test_what_has_not_run_when_the_process_ends_is_counted(memory: Memory, root: Path) -> None:
    ended = threading.Event()
    running = beside(memory, lambda pool: ended.wait(20))
    monkey = pytest.MonkeyPatch()
    monkey.setattr("speckit_memory.engine.serving.LEAVING_SECONDS", 0.2)
    with SERVING.serving():
        memory.search(QUERIES[0])
        memory.search(QUERIES[1])

    memory.close()

    ended.set()
    monkey.undo()
    assert dict(running.dropped) == {"end": 2}
    assert lost(root) == {"end": 2}


@pytest.mark.requirement("P4.hanging")
def test_a_variant_that_does_not_end_is_given_up_and_the_next_query_goes_on(
    memory: Memory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "HANGING_SECONDS", 0.05)
    begun, ended = threading.Event(), threading.Event()

    def hang(pool: Pool) -> None:
        begun.set()
        ended.wait(30)

    running = beside(memory, hang)
    memory.search(QUERIES[0])
    assert begun.wait(30)
    time.sleep(0.1)

    result = memory.search(QUERIES[1])

    assert memory.finish_shadows(30)
    [state] = memory.shadows
    memory.close()
    ended.set()
    assert result.results
    assert (state.place, state.seen, state.failed) == ("off", 1, 1)
    assert state.retreat == "its step 'odd' did not end within 10 s"
    [pair] = pairs(root)
    assert pair.variant.answer.failure == "TimeoutError in odd"
    assert lost(root) == {"off": 1}
    assert running.place == "off"


@pytest.mark.requirement("P10.retreat", "P10.budget")
def test_a_variant_over_the_budget_of_the_file_leaves_the_request_path_and_stays_away(tmp_path: Path) -> None:
    root = written(tmp_path, "extends: default\nbudgets_ms: {shadow: 0.001}\nshadows: [bm25]\n")
    with Memory.open(root / "m.db", root=root, environ={}) as memory:
        for number in range(placement.ENOUGH):
            memory.search(f"gateway {number}")
            assert memory.finish_shadows(60)
        [state] = memory.shadows
        hashes = memory.pipeline.hash, state.hash
        told = next(check for check in memory.health().checks if check.name == "shadows")
    with Memory.open(root / "m.db", root=root, environ={}) as memory:
        [again] = memory.shadows

    assert (state.place, state.budget_ms) == ("idle", 0.001)
    assert state.retreat.startswith("p95 of 20 runs is ")
    assert "'bm25' in shadow, in idle moments, 20 seen, stepped back: p95 of 20 runs" in told.detail
    assert (again.place, again.retreat) == ("idle", "it stepped back to 'idle' before")
    with EvaluationDatabase.open(evaluation_file(root / "m.db"), create=False) as database:
        [retreat] = database.retreats()
    assert (retreat.control, retreat.variant, retreat.placement) == (*hashes, "idle")


@pytest.mark.requirement("P10.retreat")
def test_earlier_processes_count_and_a_rest_brings_a_variant_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = written(tmp_path, "extends: default\nbudgets_ms: {shadow: 0.001}\nshadows: [bm25]\n")
    places = []

    def asks() -> None:
        with Memory.open(root / "m.db", root=root, environ={}) as memory:
            for number in range(10):
                memory.search(f"gateway {number}")
                assert memory.finish_shadows(60)
            places.append(memory.shadows[0].place)

    for _ in range(3):
        asks()
    monkeypatch.setattr(variant, "REST_SECONDS", 0.0)
    with Memory.open(root / "m.db", root=root, environ={}) as memory:
        places.append(memory.shadows[0].place)
    monkeypatch.undo()
    for _ in range(2):
        asks()

    assert places == ["beside", "idle", "idle", "beside", "beside", "idle"]
    with EvaluationDatabase.open(evaluation_file(root / "m.db"), create=False) as database:
        assert [one.placement for one in database.retreats()] == ["idle", "beside", "idle"]


@pytest.mark.requirement("P4.sampling")
def test_a_share_of_the_queries_is_seen_the_same_ones_each_time(tmp_path: Path) -> None:
    root = written(tmp_path, "extends: default\nshadows: [{use: bm25, sample: 0.5}]\n")
    ids = [f"{number * 7919:016x}" for number in range(16)]
    for _ in range(2):
        with Memory.open(root / "m.db", root=root, environ={}) as memory:
            for query_id in ids:
                memory.search("gateway", query_id=query_id)
                assert memory.finish_shadows(60)
            seen = memory.shadows[0].seen

    found = {pair.query.id for pair in pairs(root)}
    assert len(found) == seen
    assert 0 < seen < len(ids)


@pytest.mark.requirement("P4.dark")
def test_a_folder_is_noted_only_if_it_is_there(memory: Memory, root: Path) -> None:
    write_file(root / "docs" / "9.md", "# Note 9\n\nThe gateway retries.\n")
    memory.index(root)
    for folder in ("", "docs", "a secret"):
        memory.search("gateway retries", folder=folder)
    assert memory.finish_shadows(60)
    memory.close()
    assert {pair.query.folder for pair in pairs(root)} == {"", "docs", "?"}
    assert len({pair.query.question_digest for pair in pairs(root)} - {""}) == 3


def test_a_dark_run_keeps_its_cost_and_not_its_rows(memory: Memory, root: Path) -> None:
    memory.search(QUERIES[0])
    assert memory.finish_shadows(60)
    hash_ = memory.pipeline.hash
    memory.close()

    by_mode = {pair.variant.answer.pipeline: pair.variant for pair in pairs(root)}
    [dark] = [one for one in by_mode.values() if one.mode == "dark_run"]
    shadows = [one for one in by_mode.values() if one.mode == "shadow"]
    assert (dark.answer.memories, dark.answer.scores) == ((), ())
    assert dark.spent_ms > 0
    assert dark.dark_run_overhead_ms >= 0
    assert dark.answer.total_ms >= dark.spent_ms
    assert all(one.answer.memories for one in shadows)
    with EvaluationDatabase.open(evaluation_file(root / "m.db"), create=False) as database:
        ids = {one.id for one in database.experiments()}
    assert experiment_id(hash_, dark.answer.pipeline, "dark_run") in ids


def test_what_the_deadline_left_out_is_not_compared(memory: Memory, root: Path) -> None:
    memory.search(QUERIES[0], deadline_ms=1e-6)
    assert memory.finish_shadows(60)
    dropped = [state.dropped for state in memory.shadows]
    memory.close()

    assert dropped == [{"late": 1}] * 3
    assert pairs(root) == []


def test_health_and_measurements_are_seen_by_no_variant(memory: Memory, root: Path) -> None:
    memory.health()
    with memory.using("bm25") as other:
        other.search(QUERIES[0])
    with Memory.open(root / "m.db", root=root, environ={}, shadows=False) as unwatched:
        unwatched.search(QUERIES[0])
        assert unwatched.shadows == ()

    assert memory.finish_shadows(60)
    assert [state.seen for state in memory.shadows] == [0, 0, 0]


def test_a_memory_beside_brings_what_others_answer_to_the_same_query(memory: Memory) -> None:
    with memory.beside("bm25", "default", "bm25") as both:
        result = both.search(QUERIES[0], now=1.9e9)
    with memory.using("bm25") as alone:
        expected = alone.search(QUERIES[0], now=1.9e9)

    first, same, again = result.beside
    assert [first.name, same.name, again.name] == ["bm25", "default", "bm25 (2)"]
    assert first.result is not None
    assert [(row.id, row.score) for row in first.result.results] == [(row.id, row.score) for row in expected.results]
    assert (same.parted_at, same.failure) == ("", "")
    assert first.parted_at != ""
    assert [row.id for row in result.results] == [row.id for row in memory.search(QUERIES[0], now=1.9e9).results]


@pytest.mark.requirement("P4.dropped")
def test_hand_overs_are_answered_alone_and_counted_as_not_seen(root: Path) -> None:
    (root / "handover.md").write_text("# Handover\n\n<!-- ANCHOR:state -->\nHalf done.\n<!-- /ANCHOR:state -->\n")
    with Memory.open(root / "m.db", root=root, environ={}) as memory:
        memory.save_file(root / "handover.md")
        with memory.beside("bm25") as both:
            result = both.search("go on", mode="resume")
        memory.search("go on", mode="resume")
        assert memory.finish_shadows(60)
        states = memory.shadows

    assert (result.pipeline.name, result.beside) == ("resume", ())
    assert [(one.seen, one.dropped) for one in states] == [(0, {"resume": 1})] * 3
    assert lost(root) == {"resume": 3}


@pytest.mark.requirement("P4.dropped")
def test_words_that_are_searched_for_want_of_a_hand_over_are_seen(memory: Memory) -> None:
    memory.search("gateway retries", mode="resume")

    assert memory.finish_shadows(60)
    assert [(one.seen, one.dropped) for one in memory.shadows] == [(1, {})] * 3


def test_who_only_reads_memories_waits_for_no_evaluation_database(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only() -> None:
        with Memory.open(root / "m.db", root=root, environ={}) as memory:
            memory.get("1.md")
            memory.list()
            memory.stats()

    read_only()
    assert not evaluation_file(root / "m.db").exists()
    with Memory.open(root / "m.db", root=root, environ={}) as memory:
        memory.search(QUERIES[0])
    opened: list[Path] = []
    really = EvaluationFile.open

    def noting(file: EvaluationFile) -> apsw.Connection:
        opened.append(file.path)
        return really(file)

    monkeypatch.setattr(EvaluationFile, "open", noting)
    read_only()
    assert opened == []
    with Memory.open(root / "m.db", root=root, environ={}) as memory:
        with SERVING.serving():
            memory.search(QUERIES[0])
            assert opened == []
        assert memory.finish_shadows(60)
        assert len(set(opened)) == 1


@pytest.mark.requirement("P4.dropped")
def test_health_counts_what_variants_saw_in_all_processes(root: Path) -> None:
    for query in QUERIES[:2]:
        with Memory.open(root / "m.db", root=root, environ={}) as memory:
            memory.search(query)
            memory.search(query, deadline_ms=1e-6)
            assert memory.finish_shadows(60)
    with Memory.open(root / "m.db", root=root, environ={}) as memory:
        here = [one.seen for one in memory.shadows]
        [told] = [one.detail for one in memory.health().checks if one.name == "shadows"]

    assert here == [0, 0, 0]
    said = "after each reply, 2 seen, 2 not seen: the answer itself was incomplete, for its deadline"
    assert [part.partition(", ")[2] for part in told.split("; ")] == [said] * 3


def test_nothing_runs_where_nothing_is_recorded(root: Path) -> None:
    (root / ".speckit" / "config.yaml").write_text('evaluation: {record: "off"}\n')

    with Memory.open(root / "m.db", root=root, environ={}) as memory:
        memory.search(QUERIES[0])

        assert memory.shadows == ()
    assert not evaluation_file(root / "m.db").exists()


@pytest.mark.requirement("P4.served")
def test_what_cannot_be_noted_does_not_end_the_thread(
    memory: Memory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(named: Any, *others: Any) -> Any:
        return raising(ValueError) if named.id == "0" * 16 else observation(named, *others)

    monkeypatch.setattr("speckit_memory.engine.shadowing.shadows.observation", broken)
    for number in range(2):
        memory.search(QUERIES[0], query_id=f"{number:016x}")
        assert memory.finish_shadows(30)
    memory.close()

    assert {pair.query.id for pair in pairs(root)} == {f"{1:016x}"}


@pytest.mark.requirement("P4.served")
def test_a_thread_that_has_ended_is_begun_again(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    running = beside(memory, lambda pool: None)
    assert memory._shadows is not None
    ended = threading.Thread(target=lambda: None)
    ended.start()
    ended.join()
    memory.search(QUERIES[0])
    assert memory.finish_shadows(30)
    turn = memory._shadows._worker._turn
    assert turn is not None
    turn.thread = ended

    memory.search(QUERIES[1])

    assert memory._shadows._worker._turn is not turn
    turn.over = True
    assert memory.finish_shadows(30)
    assert running.seen == 2


def test_what_raises_when_a_query_is_settled_leaves_the_next_one_alone(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = beside(memory, lambda pool: None)
    monkeypatch.setattr(Shadows, "note", lambda *_: raising(ValueError))
    memory.search(QUERIES[0])
    assert memory.finish_shadows(30)
    monkeypatch.undo()

    memory.search(QUERIES[1])

    assert memory.finish_shadows(30)
    assert running.seen == 1


@pytest.mark.requirement("P4.dropped")
def test_what_a_variant_does_not_see_is_told_before_the_process_ends(memory: Memory, root: Path) -> None:
    running = beside(memory, lambda pool: None)
    running.placement.place, running.stepped_back = "off", time.time()

    memory.search(QUERIES[0])

    assert memory._open.recorder.write()
    assert lost(root) == {"off": 1}


def test_queries_that_are_compared_by_hand_join_no_experiment(memory: Memory, root: Path) -> None:
    with memory.beside("bm25") as both:
        result = both.search(QUERIES[0])
        both.served(result)
    assert memory._open.recorder.write()

    assert [one.name for one in result.beside] == ["bm25"]
    with EvaluationDatabase.open(evaluation_file(root / "m.db"), create=False) as database:
        assert (database.pairs(), database.experiments()) == ([], [])
        assert [one.id for one in database.queries()] == [result.query_id]
