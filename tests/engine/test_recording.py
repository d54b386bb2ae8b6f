"""What answers leave behind in the evaluation database, and what happens when that file cannot be used."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from files import write_file

from speckit_memory.engine import Memory
from speckit_memory.engine.diagnostics.health_report import HealthCheck
from speckit_memory.engine.recording.recorder import MOST_WAITING
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.file import EvaluationFile
from speckit_memory.memory.store.evaluation.records import (
    AnswerRecord,
    DroppedQueries,
    Observation,
    PlacementChange,
    QueryRecord,
    StoredEvaluation,
    UsageSignal,
    VariantRecord,
)
from speckit_memory.memory.store.file.guarding.store_file import LOGS_KEPT

Said = Callable[..., Memory]
ID = "0123456789abcdef"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for number in range(4):
        (tmp_path / f"{number}.md").write_text(f"# Rank fusion {number}\n\nHow scores are fused, part {number}.\n")
    with Memory.open(tmp_path / "memory.db", root=tmp_path, environ={}) as memory:
        memory.index([tmp_path])
    return tmp_path


@pytest.fixture
def path(root: Path) -> Path:
    return root / "memory.evaluation.db"


@pytest.fixture
def saying(root: Path) -> Iterator[Said]:
    """Opens the store where `config.yaml` says this under `evaluation`."""
    opened: list[Memory] = []

    def make(evaluation: str = "{}", **environ: str) -> Memory:
        write_file(root / ".speckit" / "config.yaml", f"evaluation: {evaluation}\n")
        opened.append(Memory.open(root / "memory.db", root=root, environ=environ))
        return opened[-1]

    yield make
    for memory in opened:
        memory.close()


def check(memory: Memory) -> HealthCheck:
    return next(check for check in memory.status().checks if check.name == "evaluation")


def asked(number: int, at: float) -> Observation:
    query = QueryRecord(f"{number:016x}", at, "understand", "simple", "", "auto", 10, 1, "", "s", 1)
    beside = VariantRecord("shadow", AnswerRecord("v", (1,), (0.5,)))
    return Observation(query, AnswerRecord("c", (1,), (0.5,)), (beside,))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process is writing; to SQLite another connection is as good as that."""
    file = EvaluationFile(path, create=False, busy_timeout_ms=1000)
    with file.writing():
        yield
    file.close()


@pytest.mark.requirement("E1.served")
def test_what_was_served_is_noted_as_ids_and_figures_without_any_text(saying: Said, path: Path) -> None:
    with saying("{keep_texts: never}") as memory:
        result = memory.search("fused zebrafish", limit=3, session="my session", query_id=ID)
        memory.search("never shown")
        assert memory.feedback.delivered(result, 2) == ""
        assert not path.exists()  # no answer waits for that
    with EvaluationDatabase.open(path, create=False) as database:
        [seen] = database.served()
    assert (seen.query.id, seen.query.limit, seen.query.intent) == (ID, 3, result.plan.intent)
    assert abs(seen.query.at - time.time()) < 60
    assert seen.query.state > 0
    assert seen.query.question is None
    assert seen.control.memories == tuple(row.id for row in result.results[:2])
    assert seen.control.scores == tuple(row.score for row in result.results[:2])
    assert seen.control.pipeline == result.pipeline.hash
    assert [step.step for step in seen.control.steps] == [step.step for step in result.timings_ms.steps]
    for word in (b"zebrafish", b"my session", b"fusion 1", b"1.md"):
        assert word not in path.read_bytes()


def test_a_question_is_kept_with_its_read_point_and_can_be_asked_again(saying: Said, path: Path) -> None:
    with saying() as memory:
        memory.feedback.delivered(memory.search('"rank fusion" -zebrafish', limit=3, folder="", session="mine"))
    with EvaluationDatabase.open(path, create=False) as database:
        [query] = database.queries()
    assert query.question == {"text": '"rank fusion" -zebrafish', "limit": 3}
    assert query.read_point is not None
    assert set(query.read_point) == {"now", "session"}
    assert query.session not in ("", "mine")


def test_the_same_question_is_known_again_without_its_words(saying: Said, root: Path, path: Path) -> None:
    write_file(root / "docs" / "4.md", "# Rank fusion 4\n\nHow scores are fused.\n")
    with saying("{keep_texts: never}") as memory:
        memory.index([root])
        for text, folder in [
            ("Fused zebrafish", ""), (" fused  ZEBRAFISH ", ""), ("fused -zebrafish", ""), ("fused", ""),
            ("fused zebrafish", "docs"), ("fused zebrafish", "docs/"), ('"fused zebrafish"', ""),
        ]:  # fmt: skip
            memory.feedback.delivered(memory.search(text, folder=folder, limit=2))
    with EvaluationDatabase.open(path, create=False) as database:
        first, again, without, one, inside, within, quoted = (seen.question_digest for seen in database.queries())
    assert (first, inside) == (again, within)
    assert len({first, without, one, inside, quoted}) == 5
    assert b"zebrafish" not in path.read_bytes().lower()


def test_a_folder_is_noted_only_if_it_is_there(saying: Said, root: Path, path: Path) -> None:
    write_file(root / "docs" / "inner" / "4.md", "# Rank fusion 4\n\nHow scores are fused.\n")
    with saying("{keep_texts: never}") as memory:
        memory.index([root])
        for folder in ("", "docs", "docs/inner", "my secret zebrafish", "doc"):
            memory.feedback.delivered(memory.search("fused zebrafish", folder=folder, limit=2))
        memory.feedback.delivered(memory.search("wolpertinger", folder="docs", tier="critical"))
    with EvaluationDatabase.open(path, create=False) as database:
        assert [query.folder for query in database.queries()] == ["", "docs", "docs/inner", "?", "?", "docs"]
    assert all(b"zebrafish" not in file.read_bytes() for file in root.glob("memory.evaluation.db*"))


def test_words_are_forgotten_where_the_workspace_has_them_kept_no_more(saying: Said, root: Path, path: Path) -> None:
    with saying() as memory:
        memory.feedback.delivered(memory.search("fused zebrafish"))
    assert b"zebrafish" in path.read_bytes()
    with saying("{keep_texts: never}") as memory:
        memory.feedback.delivered(memory.search("fused scores"))
    with EvaluationDatabase.open(path, create=False) as database:
        assert [query.question for query in database.queries()] == [None, None]
    assert all(b"zebrafish" not in file.read_bytes() for file in root.glob("memory.evaluation.db*"))


def test_words_are_kept_for_as_many_days_as_the_workspace_says(saying: Said, path: Path) -> None:
    day = 86_400.0
    with EvaluationDatabase.open(path) as database:
        for number, days in enumerate((1, 6, 8, 40)):
            seen = asked(number, time.time() - days * day)
            words = replace(seen.query, question={"text": f"zebrafish {number}"}, read_point={"now": 1.0})
            database.record([replace(seen, query=words)])
    kept = []
    for evaluation in ("{keep_texts: 30}", "{}"):
        with saying(evaluation) as memory:
            memory.feedback.delivered(memory.search("rank fusion"))
            memory.feedback.write()
        with EvaluationDatabase.open(path) as database:
            kept.append(
                [query.read_point is not None for query in database.queries() if query.at < time.time() - day / 2]
            )
    assert kept == [[False, True, True, True], [False, False, True, True]]
    assert b"zebrafish 2" not in path.read_bytes()
    assert b"zebrafish 1" in path.read_bytes()


@pytest.mark.parametrize(
    ("evaluation", "environ", "noted"),
    [
        ('{record: "off"}', {}, None),
        ("{}", {"SPECKIT_EVALUATION": "off"}, None),
        ("{record: shadows}", {}, None),
        ('{record: "off"}', {"SPECKIT_EVALUATION": "all"}, 40),
        ("{sample: 0}", {}, None),
        ("{sample: 0.5}", {}, 20),
    ],
)
def test_the_workspace_and_the_environment_decide_what_is_noted(
    saying: Said, path: Path, evaluation: str, environ: dict[str, str], noted: int | None
) -> None:
    with saying(evaluation, **environ) as memory:
        result = memory.search("rank fusion", limit=1)
        for number in range(40):
            digits = f"{int((number + 0.5) / 40 * 2**32):08x}"
            memory.feedback.delivered(replace(result, query_id=f"{digits}ffffffff"))
    if noted is None:
        assert not path.exists()
    else:
        with EvaluationDatabase.open(path, create=False) as database:
            assert len(database.queries()) == noted


@pytest.mark.requirement("E7.parts")
def test_of_a_sample_the_parts_of_the_scores_are_kept_as_explanations_show_them(saying: Said, path: Path) -> None:
    with saying("{observe: 1, record: shadows}") as memory:
        result = memory.search("rank fusion", query_id=ID)
        memory.feedback.delivered(result, 3)
        explained = [memory.explain.row(result, row.id) for row in result.results[:3]]
    with EvaluationDatabase.open(path, create=False) as database:
        [scoring] = database.scorings()
        assert database.scorings(since=time.time() + 60) == []
    assert (scoring.query, scoring.memories) == (ID, tuple(row.id for row in result.results[:3]))
    assert [step.step for step in scoring.steps] == [step.step for step in explained[0].steps]
    for row, explanation in enumerate(explained):
        assert [step.after[row] for step in scoring.steps] == pytest.approx([step.after for step in explanation.steps])
        seen = {
            channel: (one.rank, one.raw) for channel, found in scoring.channels.items() for one in found
            if one.memory == explanation.id
        }  # fmt: skip
        assert seen == {channel: (one.rank, one.score) for channel, one in explanation.channels.items()}


@pytest.mark.requirement("E7.sample")
def test_a_twentieth_of_the_queries_is_observed_unless_the_workspace_says_otherwise(saying: Said, path: Path) -> None:
    with saying() as memory:
        result = memory.search("rank fusion", limit=1)
        for number in range(100):
            memory.feedback.delivered(replace(result, query_id=f"{number:08x}{int((number + 0.5) / 100 * 2**32):08x}"))
    with EvaluationDatabase.open(path, create=False) as database:
        assert (len(database.scorings()), len(database.queries())) == (5, 100)


@pytest.mark.requirement("E7.harmless")
def test_a_mistake_in_observing_never_reaches_the_answer(
    saying: Said, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr("speckit_memory.engine.session.usage_events.answer_record", broken)
    monkeypatch.setattr("speckit_memory.engine.session.usage_events.in_share", broken)
    with saying("{observe: 1}") as memory:
        result = memory.search("rank fusion")
        assert memory.feedback.delivered(result) == ""
        monkeypatch.undo()
        monkeypatch.setattr("speckit_memory.engine.session.usage_events.answer_record", broken)
        assert memory.feedback.delivered(result) == ""
        memory.session.opened.recorder.write()
        assert "RuntimeError" in check(memory).detail
        assert memory.search("rank fusion").results == result.results


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.executescript("CREATE TABLE theirs (a); PRAGMA application_id = 77")


def damaged(path: Path) -> None:
    EvaluationDatabase.open(path).close()
    path.write_bytes(path.read_bytes()[:5000] + os.urandom(60_000))


def newer(path: Path) -> None:
    EvaluationDatabase.open(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("INSERT INTO migrations VALUES ('9999_later', 'now')")


def text(path: Path) -> None:
    path.write_text("these are notes of somebody else\n")


BROKEN = {foreign: "E024", damaged: "E024", newer: "E025", text: "E024", Path.mkdir: "E014"}


@pytest.mark.requirement("E1.unusable")
@pytest.mark.parametrize("spoilt", BROKEN)
def test_a_file_that_cannot_be_used_stops_noting_and_nothing_else(
    saying: Said, path: Path, spoilt: Callable[[Path], None]
) -> None:
    with saying('{record: "off"}') as memory:
        expected = memory.search("rank fusion").results
    spoilt(path)
    before = path.read_bytes() if path.is_file() else b""
    with saying() as memory:
        result = memory.search("rank fusion")
        assert (memory.feedback.delivered(result), result.results) == ("", expected)
        assert memory.learning.validate(result.results[0].id, useful=True).validation_count == 1
        found = check(memory)
        assert (found.ok, found.detail[:4]) == (False, BROKEN[spoilt])
        assert str(path) in found.detail + found.hint
        assert "Searches are answered, but not recorded." in found.hint
        assert memory.feedback.delivered(memory.search("rank fusion")) == ""
    assert before == (path.read_bytes() if path.is_file() else b"")


@pytest.mark.usefixtures("exhaustive")
def test_a_locked_file_is_waited_for_off_the_path_of_answers(saying: Said, path: Path) -> None:
    with saying() as memory:
        memory.feedback.delivered(memory.search("rank fusion"))
        recorder = memory.session.opened.recorder
        assert recorder.write()
        with locked(path):
            began = time.monotonic()
            for _ in range(20):
                memory.feedback.delivered(memory.search("rank fusion"))
            assert time.monotonic() - began < 5
            assert not recorder.write()
            assert check(memory).ok
        assert recorder.write()
        with EvaluationDatabase.open(path, create=False) as database:
            assert len(database.queries()) == 21


HOLDER = """
import sqlite3, sys, time
other = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=10)
other.execute("BEGIN IMMEDIATE")
print("held", flush=True)
time.sleep(float(sys.argv[2]))
other.execute("ROLLBACK")
"""
"""Another process that holds the only right to write."""


@contextmanager
def held_elsewhere(path: Path, seconds: float) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLDER, str(path), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield holder


@pytest.mark.requirement("E1.processes")
@pytest.mark.usefixtures("processes")
def test_searches_go_on_while_another_process_writes_for_three_seconds_and_every_one_is_noted(
    saying: Said, path: Path
) -> None:
    with saying() as memory:
        memory.feedback.delivered(memory.search("rank fusion"))
        assert memory.session.opened.recorder.write()
        took: list[float] = []
        with held_elsewhere(path, 3.0) as holder:
            while holder.poll() is None:
                began = time.monotonic()
                assert memory.feedback.delivered(memory.search("rank fusion")) == ""
                took.append(time.monotonic() - began)
                time.sleep(0.01)
        assert max(took) < 1.0 < sum(took) + 0.01 * len(took)  # who waited for the file waited for a second
        assert len(took) >= 20
    with EvaluationDatabase.open(path, create=False) as database:
        assert len(database.queries()) + database.counts()["dropped"] == 1 + len(took)
        assert len(database.queries()) >= min(1 + len(took), MOST_WAITING)


@pytest.mark.usefixtures("processes")
def test_what_a_busy_file_takes_from_the_last_notes_is_told(
    saying: Said, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with saying() as memory:
        memory.feedback.delivered(memory.search("rank fusion"))
        assert memory.session.opened.recorder.write()
        with held_elsewhere(path, 30.0) as holder:
            memory.feedback.delivered(memory.search("rank fusion"))
            began = time.monotonic()
            memory.close()
            assert time.monotonic() - began < 5
            holder.kill()
    assert re.search(r"is still busy: [1-9]\d* notes are lost", caplog.text)


def test_a_file_that_is_deleted_beside_a_server_is_made_anew(saying: Said, path: Path) -> None:
    with saying() as memory:
        for _ in range(LOGS_KEPT + 2):
            memory.feedback.delivered(memory.search("rank fusion"))
            assert memory.session.opened.recorder.write()
            assert path.exists()
            path.unlink()
        memory.feedback.delivered(memory.search("rank fusion"))
    with EvaluationDatabase.open(path, create=False) as database:
        assert len(database.queries()) == 1
    assert len(list(path.parent.glob("*.of-*"))) <= LOGS_KEPT


def test_nothing_is_made_where_the_store_itself_is_gone(saying: Said, root: Path, path: Path) -> None:
    with saying() as memory:
        memory.feedback.delivered(memory.search("rank fusion"))
        for file in root.glob("memory.db*"):
            file.unlink()
    assert not path.exists()


def test_what_finds_no_room_is_counted_for_every_variant(saying: Said, path: Path) -> None:
    with saying() as memory:
        recorder = memory.session.opened.recorder
        EvaluationDatabase.open(path).close()
        with locked(path):
            for number in range(1_100):
                recorder.record(asked(number, time.time()))
        recorder.dropped(DroppedQueries("c", "v", "shadow", "queue", 3))
        recorder.retreat(PlacementChange("c", "v", "off", "p95", 1.0))
    with EvaluationDatabase.open(path, create=False) as database:
        [experiment] = database.experiments()
        assert experiment.pairs + experiment.dropped["busy"] == 1_100
        assert experiment.dropped["queue"] == 3
        assert len(database.pairs()) == experiment.pairs >= 1_024


def test_a_note_that_cannot_be_made_is_counted_and_costs_no_other(saying: Said, path: Path) -> None:
    def broken() -> Observation:
        raise ValueError("a defect")

    with saying() as memory:
        recorder, now = memory.session.opened.recorder, time.time()
        for number in range(3):
            recorder.record_later("c", lambda number=number: asked(number, now))  # type: ignore[misc]
            recorder.record_later("c", broken)
        recorder.sign(UsageSignal(1, "opened", now + 1))
        assert recorder.write()
        with EvaluationDatabase.open(path, create=False) as database:
            assert (len(database.queries()), len(database.uses())) == (3, 1)
            assert database.counts()["dropped"] == 3
        assert "a note could not be made: ValueError" in check(memory).detail


def test_notes_that_are_given_up_are_counted_without_being_made(saying: Said, path: Path) -> None:
    def broken() -> Observation:
        raise ValueError("a defect")

    text(path)
    with saying() as memory:
        recorder = memory.session.opened.recorder
        recorder.record_later("c", broken)
        assert recorder.write()
        assert recorder.write()  # while nothing is tried
        path.unlink()
        recorder._silent_until = 0.0
        recorder.record_later("c", lambda: asked(1, time.time()))
        assert recorder.write()
    with EvaluationDatabase.open(path, create=False) as database:
        assert (len(database.queries()), database.counts()["dropped"]) == (1, 1)


def test_what_is_old_or_too_much_is_given_up_as_the_workspace_says(saying: Said, path: Path) -> None:
    with saying("{keep_days: 2, max_mb: 1}") as memory:
        recorder, now = memory.session.opened.recorder, time.time()
        for number in range(600):
            recorder.record(asked(number, now - (3 if number < 500 else 1) * 86_400))
        assert recorder.write()
        with EvaluationDatabase.open(path, create=False) as database:
            assert len(database.pairs()) == 100
            assert database.experiments()[0].pruned == 500
        assert "100 queries, 100 answers of other pipelines, 500 deleted for age or size" in check(memory).detail
        recorder.wanted = memory.session.settings.recording
        assert recorder.wanted.max_mb == 1


def test_the_report_on_health_says_where_what_is_noted(saying: Said, path: Path) -> None:
    with saying("{keep_texts: never}") as memory:
        assert check(memory).detail == f"served queries are recorded without texts; there is nothing in {path} yet"
        memory.feedback.delivered(memory.search("rank fusion", query_id=ID))  # which is in no sample
        told = check(memory).detail
        assert told.startswith(f"served queries are recorded without texts in {path} (")
        assert told.endswith(" MB): 1 query")
        with EvaluationDatabase.open(path) as database:
            database.keep(StoredEvaluation("a", "eval replay", 1.0, "d", "d", {"lines": "x" * 2_000_000}))
        told = check(memory).detail
        assert "MB, of which 2.0 MB of comparisons and judgements are kept permanently, beyond max_mb): 1 query" in told
    with saying('{record: "off"}') as memory:
        assert check(memory).detail.startswith("nothing is recorded (off) in ")


@pytest.mark.requirement("E1.served")
def test_where_no_thread_can_be_started_answers_go_on_and_the_next_one_that_can_writes_all_of_it(
    saying: Said, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with saying() as memory:
        with monkeypatch.context() as exhausted:
            exhausted.setattr("threading.Thread.start", no_thread)
            assert memory.feedback.delivered(memory.search("fused")) == ""
        assert not path.exists()

        memory.feedback.delivered(memory.search("rank"))

        until = time.monotonic() + 60
        while time.monotonic() < until and memory.session.opened.recorder._waiting:
            time.sleep(0.05)
        assert memory.session.opened.recorder.write()  # after the thread that writes
        with EvaluationDatabase.open(path, create=False) as database:
            assert len(database.served()) == 2
        assert memory.session.opened.usage._timer is not None


def no_thread(thread: object) -> None:
    raise RuntimeError("can't start new thread")
