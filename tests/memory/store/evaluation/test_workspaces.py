"""With a store in PostgreSQL, those who use a workspace share its evaluation database, and nobody else sees it."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from postgres_server import database, link_at, server
from storing.evaluations import observation, record_everything

from speckit_memory import Memory
from speckit_memory.config.workspace.options import RecordingOptions
from speckit_memory.config.workspace.store_address import address_at, store_link
from speckit_memory.engine.recording.recorder import Recorder
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation import observations, schema
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file, open_if_there
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.schema.migrations import Migration
from speckit_memory.memory.store.transfer.row_copy import evaluation_parts, row_digests

pytestmark = pytest.mark.requirement("E1.workspace")
SECRET = "xyzzyplugh9731"
READS: tuple[Callable[[EvaluationDatabase], Any], ...] = (
    EvaluationDatabase.pairs, EvaluationDatabase.experiments, EvaluationDatabase.pipelines, EvaluationDatabase.queries,
    EvaluationDatabase.served, EvaluationDatabase.uses, EvaluationDatabase.ignored, EvaluationDatabase.scorings,
    EvaluationDatabase.judgements, EvaluationDatabase.evaluations, EvaluationDatabase.metrics,
    EvaluationDatabase.flag_changes, EvaluationDatabase.retreats, EvaluationDatabase.variants,
    EvaluationDatabase.kept_bytes, EvaluationDatabase.used_bytes,
    lambda records: records.labels("list"), lambda records: records.evaluation("a" * 12),
    lambda records: records.selections(0.0, 0.0), lambda records: records.measured("nDCG@10"),
    lambda records: records.observation(1), lambda records: records.brought(1001.0),
    lambda records: any(records.counts().values()),
)  # fmt: skip


@pytest.fixture
def link(tmp_path: Path) -> Path:
    return link_at(tmp_path / "memory.store")


@pytest.fixture
def both(link: Path, tmp_path: Path) -> Iterator[tuple[EvaluationDatabase, EvaluationDatabase]]:
    """A workspace with rows in every table, and an empty one of the same database."""
    record_everything(link, SECRET)
    other = link_at(tmp_path / "other.store")
    with EvaluationDatabase.open(link) as held, EvaluationDatabase.open(other) as empty:
        yield held, empty


def test_nothing_that_one_workspace_records_is_seen_in_another(
    both: tuple[EvaluationDatabase, EvaluationDatabase],
) -> None:
    held, empty = both
    assert all(read(held) for read in READS)
    assert [read(empty) for read in READS if read(empty)] == []

    empty.record([observation(1, "of the other")])  # the number and id of a query of the first workspace
    empty.replayed([])
    empty.unlabel("list", "pair", "user")
    empty.take_back(f"{1:016x}", 1, "user")
    empty.prune(before=10**9, max_bytes=0, texts_before=10**9)
    assert [query.question for query in held.queries()] == [{"text": SECRET}] * 2
    assert (len(held.labels("list")), len(held.judgements())) == (1, 1)


def test_the_policies_alone_keep_the_rows_apart(both: tuple[EvaluationDatabase, EvaluationDatabase]) -> None:
    session: Any = both[1]._file.open().session  # type: ignore[attr-defined]
    foreign = both[0]._file.open().workspace  # type: ignore[attr-defined]
    asked = f"SELECT count(*) FROM queries WHERE question LIKE '%{SECRET}%' AND workspace = {foreign}"
    assert session.execute(asked).fetchone() == (0,)
    with session.transaction(force_rollback=True):  # the owner opens them: what the attack looks for is there
        session.execute("ALTER TABLE queries NO FORCE ROW LEVEL SECURITY")
        assert session.execute(asked).fetchone() == (2,)
    for written in ("INSERT INTO meta VALUES ('a', 'b', {})", "UPDATE meta SET workspace = {}"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute(written.format(foreign))


def test_machines_that_write_at_once_lose_nothing_and_see_one_another(link: Path, tmp_path: Path) -> None:
    links = [tmp_path / f"{number}.store" for number in range(4)]
    for machine in links:
        machine.write_text(link.read_text())

    def write(number: int) -> None:
        with EvaluationDatabase.open(links[number]) as records:
            for count in range(10):
                records.record([observation(100 * number + count, "asked")])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with EvaluationDatabase.open(link, create=False) as records:
        ids = {query.id for query in records.queries()}
        assert ids == {f"{100 * number + count:016x}" for number in range(4) for count in range(10)}
        assert (len(records.pairs()), records.counts()["queries"]) == (40, 40)


def test_a_search_on_one_machine_is_in_the_records_of_the_other(link: Path, tmp_path: Path) -> None:
    roots = [tmp_path / name for name in ("one", "other")]
    for root in roots:
        root.mkdir()
        (root / "memory.store").write_text(link.read_text())
    (roots[0] / "a.md").write_text("# Rank fusion\n\nHow scores are fused.\n")
    one, other = (Memory.open(root / "memory.store", root=root, environ={}) for root in roots)
    place = f"schema speckit_evaluation of {link.read_text().strip()}"
    with one, other:

        def told() -> str:
            return next(check.detail for check in other.status().checks if check.name == "evaluation")

        assert told().endswith(f"there is nothing in {place} yet")
        one.index([roots[0]])
        one.feedback.delivered(one.search("rank fusion"))
        one.session.opened.recorder.write()
        assert f" in {place} (" in told()
        assert " MB): 1 query" in told()
    assert [path.name for path in tmp_path.rglob("*evaluation*")] == []


def test_records_that_a_lost_session_kept_from_being_written_are_written_later(
    link: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Database.open(link).close()
    recorder, put, now = Recorder(link, RecordingOptions(), 3_600.0), observations.put_observation, time.time()

    def lose(connection: Any, seen: Any) -> None:
        monkeypatch.undo()
        with psycopg.connect(server(), autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", (connection.session.info.backend_pid,))
        put(connection, seen)

    recorder.record(observation(1, "first", now))
    assert recorder.write()
    monkeypatch.setattr(observations, "put_observation", lose)
    recorder.record(observation(2, "second", now))
    assert not recorder.write()
    recorder.record(observation(3, "third", now))
    assert recorder.write()
    recorder.close()
    with EvaluationDatabase.open(link, create=False) as records:
        assert [query.question for query in records.queries()] == [
            {"text": text} for text in ("first", "second", "third")
        ]
        assert records.counts()["dropped"] == 0


def test_a_server_that_is_away_stops_the_recording_and_nothing_else(tmp_path: Path) -> None:
    link = tmp_path / "memory.store"
    link.write_text("postgresql://speckit@127.0.0.1:1/nowhere")
    recorder = Recorder(link, RecordingOptions(), 3_600.0)
    recorder.record(observation(1, "asked"))
    assert recorder.write()
    assert recorder.problem is not None
    assert recorder.problem.code == "E051"
    assert recorder.problem.problems[0].hint.startswith("It holds records of answers")
    recorder.close()


def test_records_that_were_dropped_with_their_schema_begin_anew(tmp_path: Path) -> None:
    link = link_at(tmp_path / "memory.store", database("dropped"))
    Database.open(link).close()
    recorder, now = Recorder(link, RecordingOptions(), 3_600.0), time.time()
    recorder.record(observation(1, "first", now))
    recorder.write()
    with psycopg.connect(database("dropped"), autocommit=True) as session:
        session.execute("DROP SCHEMA speckit_evaluation CASCADE")
    for number in (2, 3):
        recorder.record(observation(number, "later", now))
        assert recorder.write(at_once=True)
    recorder.close()
    with EvaluationDatabase.open(link, create=False) as records:
        assert [query.id for query in records.queries()] == [f"{3:016x}"]
        assert records.counts()["dropped"] == 1


def test_a_workspace_without_records_has_no_evaluation_database(link: Path) -> None:
    Database.open(link).close()
    assert evaluation_file(link) == link
    assert open_if_there(link) is None
    with pytest.raises(SpeckitError, match=r"E010 there is no evaluation database at postgresql://"):
        EvaluationDatabase.open(link, create=False)


def test_what_a_principal_asks_is_recorded_in_a_file_of_its_own(link: Path, tmp_path: Path) -> None:
    folder = tmp_path / ".speckit"
    anna, bob = (store_link(address_at(link), folder, "the test", principal=name) for name in ("anna", "bob"))
    record_everything(evaluation_file(anna), SECRET)

    assert evaluation_file(anna) == anna.with_name("memory.evaluation.db")
    assert open_if_there(evaluation_file(bob)) is None
    assert open_if_there(evaluation_file(link)) is None


def test_questions_have_other_digests_in_each_workspace(link: Path, tmp_path: Path) -> None:
    digests = []
    for store in (link, link_at(tmp_path / "other.store")):
        with EvaluationDatabase.open(store) as records:
            records.record([observation(1, "zebrafish"), observation(2, "zebrafish")])
            first, second = (query.question_digest for query in records.queries())
            assert first == second
            digests.append(first)
    assert digests[0] != digests[1]


def test_a_later_schema_is_made_for_all_workspaces_and_refused_by_earlier_versions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def digests(one: EvaluationDatabase) -> list[Any]:
        with one._file.reading() as connection:
            return list(row_digests(connection, evaluation_parts()))

    links = [link_at(tmp_path / name, database("later")) for name in ("one.store", "other.store")]
    for link in links:
        record_everything(link)
    both = [EvaluationDatabase.open(link) for link in links]
    current, before = schema.EVALUATION, [digests(one) for one in both]
    text = "ALTER TABLE labels ADD COLUMN why TEXT NOT NULL DEFAULT ''; UPDATE labels SET why = 'earlier'"
    for name, statements in (("9998_broken", f"{text}; UPDATE nothing SET a = 1"), ("9999_later", text)):
        later = dataclasses.replace(current, steps=(*current.steps, Migration(name, statements)))
        monkeypatch.setattr("speckit_memory.memory.store.evaluation.workspace.EVALUATION", later)
        if name == "9998_broken":
            with pytest.raises(SpeckitError, match=r"E023 .*9998_broken"):
                EvaluationDatabase.open(links[0])
    for link in links:
        with EvaluationDatabase.open(link) as one, one._file.reading() as connection:
            assert connection.execute("SELECT why FROM labels").fetchall() == [("earlier",)]
    assert [digests(one) for one in both] == before
    for one in both:
        one.close()
    monkeypatch.undo()
    with pytest.raises(SpeckitError, match=r"E025 .*9999_later") as raised:
        EvaluationDatabase.open(links[0])
    assert raised.value.problems[0].actions == ("upgrade speckit-memory",)
