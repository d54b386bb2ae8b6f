"""Variants where steps hang, files are busy, logs are long, or no thread can be started: no search feels any of it."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from speckit_memory.engine import Memory
from speckit_memory.engine.shadowing import placement, worker
from speckit_memory.engine.shadowing.gate import SERVING
from speckit_memory.engine.shadowing.job import Job
from speckit_memory.engine.shadowing.search import Search
from speckit_memory.engine.shadowing.shadows import Shadows
from speckit_memory.engine.shadowing.variant import RunningVariant
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from speckit_memory.memory.store.evaluation.file import EvaluationFile
from speckit_memory.memory.store.evaluation.records import Retreat
from speckit_memory.memory.store.file import connection as connections
from speckit_memory.memory.store.file.connection import LOG_BYTES, Database
from speckit_memory.memory.store.tables.meta import set_meta
from speckit_memory.pipeline.runner import Runner
from tests.engine.shadowing.test_shadows import QUERIES, beside, lost, pairs, raising, with_odd, written


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return written(tmp_path, "extends: default\nshadows: [bm25]\n")


@pytest.fixture
def memory(root: Path) -> Iterator[Memory]:
    with Memory.open(root / "m.db", root=root, environ={}) as opened:
        yield opened


def until(true: Callable[[], bool], seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not true():
        time.sleep(0.01)
    return true()


@pytest.fixture
def hangs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], None]]:
    """A step that does not end, where the times of the worker have their ratio, in a fifth of the time."""
    monkeypatch.setattr(worker, "LONGEST_HELD_SECONDS", worker.LONGEST_HELD_SECONDS / 5)
    monkeypatch.setattr(worker, "HANGING_SECONDS", worker.HANGING_SECONDS / 5)
    ended = threading.Event()
    yield lambda pool: (ended.wait(60), None)[1]
    ended.set()


def log_is_read(root: Path) -> bool:
    """Whether somebody holds an earlier state, so that the log cannot begin anew."""
    with contextlib.closing(apsw.Connection(str(root / "m.db"))) as other:
        [(held, *_)] = other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return bool(held)


@pytest.mark.requirement("P4.hanging")
@pytest.mark.usefixtures("exhaustive")
def test_a_step_that_hangs_is_given_up_and_its_state_let_go_though_nobody_searches_any_more(
    memory: Memory, root: Path, hangs: Callable[[Any], None]
) -> None:
    running = beside(memory, hangs)
    with SERVING.serving():
        memory.search(QUERIES[0])
        with memory._open.database.write() as txn:
            set_meta(txn, "fact", "later")
        assert log_is_read(root)

    assert until(lambda: running.place == "off" and not log_is_read(root))
    assert memory._open.recorder.write()
    assert [pair.variant.answer.failure for pair in pairs(root)] == ["TimeoutError in odd"]


@pytest.mark.requirement("P4.hanging")
@pytest.mark.usefixtures("exhaustive")
def test_while_a_variant_hangs_others_miss_queries_and_then_go_on(memory: Memory, hangs: Callable[[Any], None]) -> None:
    control = memory.pipeline
    first, second = (
        RunningVariant(name, "shadow", "", 1.0, Runner(with_odd(control, work)), placement.Placement(500.0))
        for name, work in (("hangs", hangs), ("works", lambda pool: pool))
    )
    memory._in_force.put(
        replace(memory._in_force.now, shadows=Shadows(control, [first, second], memory._open.recorder))
    )

    end = time.monotonic() + 60
    while first.place != "off" and time.monotonic() < end:
        memory.search(QUERIES[0])
        time.sleep(0.05)

    assert first.place == "off"
    assert second.dropped["queue"] > 0
    assert memory.finish_shadows(30)
    seen = second.seen
    memory.search(QUERIES[0])
    assert memory.finish_shadows(30)
    assert second.seen == seen + 1


@pytest.mark.requirement("P4.served")
@pytest.mark.usefixtures("exhaustive")
def test_a_long_log_is_taken_up_by_the_thread_of_the_variants_while_no_search_waits_for_it(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "LONGEST_HELD_SECONDS", 3.0)
    beside(memory, lambda pool: None)
    seen: list[tuple[str, bool]] = []
    free = threading.Event()

    def noting(_: apsw.Connection) -> None:
        def tries() -> None:
            if SERVING.changed.acquire(timeout=0.5):
                SERVING.changed.release()
                free.set()

        other = threading.Thread(target=tries)
        other.start()
        other.join()
        seen.append((threading.current_thread().name, free.is_set()))

    monkeypatch.setattr(connections, "taken_up", noting)
    with SERVING.serving():  # the states of both are let go under load
        for query in QUERIES[:2]:
            memory.search(query, session=query)
        with memory._open.database.write() as txn:
            txn.connection.execute("CREATE TABLE large (bytes BLOB)")
            txn.connection.execute("INSERT INTO large VALUES (?)", (os.urandom(2 * LOG_BYTES),))
        assert until(lambda: len(seen) > 0)

    assert memory.finish_shadows(30)
    assert set(seen) == {("shadows", True)}


@pytest.mark.requirement("P4.served")
def test_who_finds_no_room_lets_its_state_go_without_taking_up_the_log(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = beside(memory, lambda pool: None)
    ended: list[tuple[str, bool, bool]] = []
    really = Database._given_back

    def noting(database: Database, connection: apsw.Connection, take_up_log: bool) -> None:
        ended.append((threading.current_thread().name, take_up_log, SERVING.changed._is_owned()))  # type: ignore[attr-defined]
        really(database, connection, take_up_log)

    monkeypatch.setattr(Database, "_given_back", noting)
    monkeypatch.setattr(worker.Worker, "put", lambda *_: False)
    memory.search(QUERIES[0])

    assert dict(running.dropped) == {"queue": 1}
    assert ended == [("MainThread", False, False)]


@pytest.mark.requirement("P4.served")
@pytest.mark.parametrize(("where", "call"), [(Shadows, "search"), (Shadows, "over"), (Search, "_hand_on")])
def test_what_goes_wrong_around_a_search_takes_the_place_of_no_answer(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, where: type, call: str
) -> None:
    with memory.using("default") as alone:
        expected = [row.id for row in alone.search(QUERIES[0]).results]
    monkeypatch.setattr(where, call, lambda *_: raising(ValueError))

    assert [row.id for row in memory.search(QUERIES[0]).results] == expected


@pytest.mark.requirement("P4.dropped")
def test_a_query_that_cannot_be_handed_on_is_counted(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    running = beside(memory, lambda pool: None)
    monkeypatch.setattr(Shadows, "named", lambda *_: raising(ValueError))
    memory.search(QUERIES[0])

    assert dict(running.dropped) == {"state": 1}


@pytest.mark.requirement("P4.dropped")
def test_where_no_thread_can_be_started_queries_are_answered_and_counted_until_one_can(
    memory: Memory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = beside(memory, lambda pool: pool)
    with monkeypatch.context() as exhausted:
        exhausted.setattr("threading.Thread.start", lambda _: raising(RuntimeError))
        for query in QUERIES[:6]:
            assert memory.search(query).results
    assert dict(running.dropped) == {"queue": 6}
    assert not log_is_read(root)

    memory.search(QUERIES[6])

    assert memory.finish_shadows(30)
    assert running.seen == 1
    assert memory._open.recorder.write()
    assert lost(root) == {"queue": 6}


def switched_off(root: Path, memory: Memory) -> None:
    """Another process has switched the variant off."""
    assert memory._shadows is not None
    [variant] = memory._shadows._variants
    with EvaluationDatabase.open(evaluation_file(root / "m.db")) as database:
        database.record((), retreats=[Retreat(memory.pipeline.hash, variant.hash, "off", "slow", time.time())])


@pytest.mark.requirement("P10.retreat")
def test_what_is_known_of_a_variant_is_read_after_the_answer(
    memory: Memory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    switched_off(root, memory)
    read: list[str] = []
    really = EvaluationFile.open

    def noting(file: EvaluationFile) -> apsw.Connection:
        read.append(threading.current_thread().name)
        return really(file)

    monkeypatch.setattr(EvaluationFile, "open", noting)
    with SERVING.serving():
        memory.search(QUERIES[0])
        assert read == []
    assert memory.finish_shadows(30)

    assert read[0] == "shadows"
    [state] = memory.shadows
    assert (state.place, state.seen, state.dropped) == ("off", 0, {"off": 1})


@pytest.mark.requirement("P10.retreat")
def test_a_variant_that_was_off_does_not_run_while_the_file_that_says_so_is_busy(memory: Memory, root: Path) -> None:
    switched_off(root, memory)
    assert memory._shadows is not None
    really, busy = memory._shadows._earlier, [None, None]
    assert really is not None
    memory._shadows._earlier = lambda hashes: busy.pop() if busy else really(hashes)
    for number in range(2):
        memory.search(QUERIES[number])
        assert memory.finish_shadows(30)
    assert busy == []

    for number in range(2):
        memory.search(QUERIES[number])
        assert memory.finish_shadows(30)

    [state] = memory.shadows
    assert (state.place, state.seen, state.dropped) == ("off", 0, {"off": 4})
    assert pairs(root) == []


def test_nothing_of_a_query_is_kept_in_memory_once_its_variants_have_run(memory: Memory) -> None:
    memory.search(QUERIES[0])
    assert memory.finish_shadows(30)

    assert memory._shadows is not None
    assert memory._shadows._seen is None
    assert until(lambda: gc.collect() >= 0 and not any(isinstance(one, Job) for one in gc.get_objects()), 5.0)
