"""Background work: what is due, who does it, and what becomes of it when a holder dies or a clock jumps."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from speckit_memory.engine import Memory
from speckit_memory.engine.upkeep import maintenance
from speckit_memory.engine.upkeep.maintenance import JobOutcome, foreseen, run_due, told_runs
from speckit_memory.engine.upkeep.maintenance_jobs import Job, PreparedBatch, jobs_for
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.segment_files.findings import GivenUpError
from speckit_memory.memory.store.tables import jobs
from speckit_memory.memory.store.tables.sessions import working_memory
from speckit_memory.pipeline.process.yielding import yielding

NOW = 1_800_000_000.0
HOUR = 3600.0


class Clock:
    """A clock that tests set."""

    now = NOW


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    told = SimpleNamespace(time=lambda: clock.now, strftime=time.strftime, localtime=time.localtime)
    monkeypatch.setattr(maintenance, "time", told)
    return clock


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "store.db") as database:
        yield database


def job(left: int, batch: Callable[[], None] = lambda: None, name: str = "tidy") -> Job:
    """Work of so many pieces, one a batch."""
    pieces = [left]

    def do(_txn: Transaction, _now: float) -> int:
        batch()
        pieces[0] -= 1
        return int(pieces[0] >= 0)

    return Job(name, HOUR, "pieces tidied", lambda _connection, _now: max(0, pieces[0]), do)


@pytest.mark.requirement("M5.jobs")
def test_a_job_runs_when_it_is_due_and_says_how_it_went(database: Database, clock: Clock) -> None:
    tidy = job(2)
    assert told_runs(database.reader(), NOW, [tidy]) == ("not run yet: tidy", "")
    assert foreseen(database, [tidy]).jobs == (JobOutcome("tidy", "waiting", 2, "pieces tidied"),)
    assert run_due(database, every=[tidy]).jobs == (JobOutcome("tidy", "ran", 2, "pieces tidied"),)
    clock.now += HOUR - 1
    assert run_due(database, every=[tidy]).jobs == (JobOutcome("tidy", "not due", 0, "pieces tidied"),)
    told, hint = told_runs(database.reader(), clock.now, [tidy])
    assert told.startswith("tidy at 20")
    assert told.endswith(": 2 pieces tidied")
    assert hint == ""
    clock.now += 1
    assert run_due(database, every=[tidy]).jobs[0].state == "ran"
    clock.now = NOW - 1_000 * HOUR  # set back: nobody knows how long ago it ran
    assert run_due(database, every=[tidy]).jobs[0].state == "ran"


@pytest.mark.requirement("M5.jobs")
def test_a_run_is_bounded_and_the_next_one_goes_on(database: Database, clock: Clock) -> None:
    tidy = job(45)
    found = [run_due(database, every=[tidy]).jobs[0] for _ in range(4)]
    assert [(done.state, done.count) for done in found] == [
        ("unfinished", 20), ("unfinished", 20), ("ran", 5), ("not due", 0),
    ]  # fmt: skip


@pytest.mark.requirement("M5.jobs")
def test_a_job_that_fails_keeps_no_other_from_running_and_is_tried_again(database: Database, clock: Clock) -> None:
    def fail() -> None:
        raise ValueError("no space left")

    broken, tidy = job(9, fail, "broken"), job(1)
    found = run_due(database, every=[broken, tidy])
    assert [(done.state, done.failure) for done in found.jobs] == [("failed", "ValueError: no space left"), ("ran", "")]
    assert found.failed
    told, hint = told_runs(database.reader(), NOW, [broken])
    assert told.startswith("broken failed at 20")
    assert hint.startswith("`speckit-memory maintain`")
    assert run_due(database, every=[broken]).jobs[0].state == "not due"
    clock.now += 600
    assert run_due(database, every=[job(0, name="broken")]).jobs[0].state == "ran"
    assert told_runs(database.reader(), NOW, [broken])[1] == ""


@pytest.mark.requirement("M5.one")
def test_one_holder_at_a_time_and_a_dead_one_keeps_others_out_for_a_minute(database: Database, clock: Clock) -> None:
    with database.write() as txn:
        assert jobs.take(txn, "killed", NOW)
        jobs.note(txn, jobs.JobRun("tidy", NOW, None, 1, True, ""))  # so it stands when a holder is killed
    tidy = job(1)
    kept_out = run_due(database, every=[tidy])
    assert (kept_out.elsewhere, kept_out.jobs) == (True, (JobOutcome("tidy", "waiting", 0, "pieces tidied"),))
    assert foreseen(database, [tidy]).elsewhere
    assert "a process is running them" in told_runs(database.reader(), NOW, [tidy])[0]
    clock.now += 60
    assert run_due(database, every=[tidy]).jobs[0].state == "ran"
    assert rows(database.reader(), "SELECT * FROM job_lease") == []


@pytest.mark.requirement("M5.one")
def test_a_lease_of_a_clock_that_was_set_back_keeps_nobody_out(database: Database, clock: Clock) -> None:
    with database.write() as txn:
        jobs.take(txn, "from next year", NOW + 9_000 * HOUR)
    assert run_due(database, every=[job(1)]).jobs[0].state == "ran"


@pytest.mark.requirement("M5.one")
def test_who_has_lost_the_lease_changes_nothing_more(database: Database, clock: Clock) -> None:
    done: list[str] = []

    def pause() -> None:
        if len(done) == 1:  # the process slept long, and another one took over
            clock.now += 100
            with database.write() as txn:
                assert jobs.take(txn, "another", clock.now)

    with yielding(pause):
        found = run_due(database, [job(5, lambda: done.append("batch"))])
    assert (found.elsewhere, found.jobs[0].state, len(done)) == (True, "waiting", 1)
    assert rows(database.reader(), "SELECT holder FROM job_lease") == [("another",)]


@pytest.mark.requirement("M5.one")
@pytest.mark.parametrize("fails", [False, True])
def test_the_lease_outlives_a_batch_that_takes_longer_to_prepare_than_it_lasts(
    database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    monkeypatch.setattr(maintenance, "BEAT_SECONDS", 0.001)
    found_elsewhere: list[bool] = []
    prepared: list[float] = []

    def find(_database: Database, now: float) -> None:
        prepared.append(now)
        if len(prepared) > 1:
            return
        for _ in range(2):
            clock.now += 50
            until = time.monotonic() + 60
            while rows(database.reader(), "SELECT 1 FROM job_lease WHERE until < ?", (clock.now + 60,)):
                assert time.monotonic() < until, "nobody renewed the lease"
        with Database.open(database.path) as other:
            found_elsewhere.append(run_due(other, every=[slow]).elsewhere)
        if fails:
            raise SpeckitError("E001", "the service does not answer")

    def write(_txn: Transaction, _now: float, _found: None) -> int:
        return int(len(prepared) == 1)

    slow = Job("slow", HOUR, "pieces", lambda _c, _n: 2, PreparedBatch(find, write), at_once=True)

    done = run_due(database, every=[slow]).jobs[0]

    assert found_elsewhere == [True]
    assert (done.state, done.count) == (("failed", 0) if fails else ("ran", 1))
    assert prepared == ([NOW] if fails else [NOW, NOW + 100])
    run = jobs.last_runs(database.reader())["slow"]
    assert (run.began_at, run.ended_at, bool(run.failure)) == (NOW, NOW + 100, fails)
    with Database.open(database.path) as other:  # what failed is left alone for a while, by everybody
        assert run_due(other, every=[slow]).jobs[0].state == ("not due" if fails else "ran")


@pytest.mark.requirement("M5.one")
def test_a_batch_is_not_written_when_another_process_took_over_while_it_was_prepared(
    database: Database, clock: Clock
) -> None:
    def find(_database: Database, _now: float) -> None:
        clock.now += 100  # the process slept long
        with Database.open(database.path) as other, other.write() as txn:
            assert jobs.take(txn, "another", clock.now)

    written: list[float] = []

    def write(_txn: Transaction, now: float, _found: None) -> int:
        written.append(now)
        return 1

    work = Job("slow", HOUR, "pieces", lambda _c, _n: 1, PreparedBatch(find, write))

    found = run_due(database, every=[work])

    assert (found.elsewhere, found.jobs[0].state, written) == (True, "waiting", [])


@pytest.mark.requirement("M5.jobs")
def test_a_busy_store_is_left_for_the_next_look(database: Database, clock: Clock, tmp_path: Path) -> None:
    with (
        Database.open(tmp_path / "store.db") as other,
        other.write(),
        pytest.raises(SpeckitError, match="E022"),
    ):
        run_due(database, patience_ms=1, every=[job(1)])
    assert jobs.last_runs(database.reader()) == {}


@pytest.mark.requirement("M13.over")
def test_sessions_are_forgotten_a_day_after_their_last_event(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "a.md").write_text("# Rank fusion\n\nHow scores are fused.\n")
    with Memory.open(tmp_path / "memory.db", root=tmp_path, environ={}) as memory:
        memory.index([tmp_path])
        for session, age in (("old", 24 * HOUR + 1), ("young", 24 * HOUR - 1), ("ahead", -48 * HOUR)):
            memory.feedback.delivered(memory.search("rank fusion", session=session, now=NOW - age, deadline_ms=None))
        for _ in range(60):
            with memory.session.database.write() as txn:
                working_memory.note_event(txn, f"s{_}", [], NOW - 30 * HOUR, source="answer")
        found = memory.lifecycle.maintain()
        assert found.jobs[0] == JobOutcome("sessions", "ran", 62, "ended sessions deleted")
        reader = memory.session.database.reader()
        for table in ("session_state", "working_memory"):
            assert rows(reader, f"SELECT DISTINCT session FROM {table}") == [("young",)]
        assert rows(reader, "SELECT * FROM session_sent WHERE session <> 'young'") == []


@pytest.mark.requirement("M11.job")
def test_work_yields_between_rows_and_never_inside_a_write(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number}.md").write_text(f"# Rank fusion {number}\n\nScores are fused, part {number}.\n")
    with Memory.open(tmp_path / "memory.db", root=tmp_path, environ={}) as memory:
        memory.index([tmp_path])
        database, yields = memory.session.database, list[bool]()

        def pause() -> None:
            yields.append(database.reader().txn_state() == apsw.mapping_txn_state["SQLITE_TXN_WRITE"])

        every = [one for one in jobs_for(memory.session.opened) if one.name == "contradictions"]
        with yielding(pause):
            found = run_due(database, every)
        assert found.jobs[0].count == 30
        assert len(yields) > 30 * 4
        assert not any(yields)

        def end() -> None:
            raise GivenUpError

        with database.write() as txn:
            txn.connection.execute("DELETE FROM scanned_memories")
        with pytest.raises(GivenUpError), yielding(end):
            memory.lifecycle.maintain()
        assert rows(database.reader(), "SELECT * FROM scanned_memories") == []


@pytest.mark.requirement("M5.searches")
def test_what_is_archived_is_found_by_no_search_and_comes_back_to_all(tmp_path: Path, clock: Clock) -> None:
    for number in range(6):
        (tmp_path / f"{number}.md").write_text(
            f"---\ntrigger_phrases: [fused ranks {number}]\n---\n# Rank fusion {number}\n\n"
            f"Scores are fused, part {number}. "
            f"See [the next]({(number + 1) % 6}.md).\n"
        )
    questions = ("rank fusion", "fused ranks 2", "scores", '"part 2"', "2.md", "how are rankings combined")

    def answers(memory: Memory) -> list[list[tuple[str, float]]]:
        found = [memory.search(asked, now=NOW, deadline_ms=None) for asked in questions]
        return [[(row.key, row.score) for row in result.results] for result in found]

    with Memory.open(tmp_path / "memory.db", root=tmp_path, environ={}) as memory:
        memory.index([tmp_path])
        for _ in range(3):
            memory.learning.validate("2.md", useful=False)
        with memory.session.database.write() as txn:
            txn.connection.execute("UPDATE memories SET created_at = ?1, updated_at = ?1", (NOW - 91 * 24 * HOUR,))
            txn.connection.execute(
                "INSERT INTO changes (memory_id, kind, token) SELECT id, 'put', random() FROM memories"
            )
        before = answers(memory)
        assert "2.md" in {key for answer in before for key, _ in answer}
        clock.now = NOW - 10
        assert [(done.job, done.count) for done in memory.lifecycle.maintain().jobs] == [
            ("sessions", 0), ("expiry", 0), ("archival", 1), ("vectors", 0), ("verdicts", 0),
            ("contradictions", 5), ("consolidation", 0), ("learning", 0), ("summaries", 0), ("absent", 0),
            ("ranks", 6),
        ]  # fmt: skip
        assert [one.key for one in memory.lifecycle.archived()] == ["2.md"]
        assert "2.md" not in {key for answer in answers(memory) for key, _ in answer}
        with Memory.open(tmp_path / "memory.db", root=tmp_path, environ={}) as another:
            assert answers(another) == answers(memory)  # one that has read the store anew
            assert another.lifecycle.check() == ()
        assert memory.lifecycle.unarchive("2.md") is True
        assert answers(memory) == before
        assert memory.lifecycle.unarchive("2.md") is False


@pytest.mark.requirement("M5.jobs")
def test_health_tells_what_was_done_in_the_background(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\ntext\n")
    with Memory.open(tmp_path / "memory.db", root=tmp_path, environ={}) as memory:
        memory.index([tmp_path])
        memory.lifecycle.maintain()
        (check,) = (check for check in memory.status().checks if check.name == "maintenance")
        idle = {job.name for job in jobs_for(memory.session.opened)} - {"contradictions"}
        named = re.search(r"nothing to do at 20.{14}: ([a-z, ]+)$", check.detail)
        assert check.ok
        assert named
        assert set(named[1].split(", ")) == idle
        assert ": 1 memories compared for contradictions; " in check.detail
        with memory.session.database.write() as txn:
            jobs.note(txn, jobs.last_runs(txn.connection)["expiry"]._replace(failure="a reason"))
        (check,) = (check for check in memory.status().checks if check.name == "maintenance")
        assert not check.ok
        assert "a reason" in check.detail
