"""Files read by further processes: the store becomes what it becomes without them, whatever happens to them."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from speckit_memory.memory.indexing import (
    Analyser,
    Indexer,
    IndexProgress,
    IndexReport,
    Source,
    reader_processes,
    source_processing,
)
from speckit_memory.memory.indexing.reader_processes import _Helper
from speckit_memory.memory.models.embedders import StaticEmbedder
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.pipeline.process.python_process import start_python

Write = Callable[[str, str], Path]


class OwnModel(StaticEmbedder):
    """A model that only this process has."""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[_Helper]:
    """The helpers that a run starts, however few its files are."""
    found: list[_Helper] = []
    begin = _Helper.begin

    def noted(helper: _Helper, *rules: Any) -> None:
        found.append(helper)
        begin(helper, *rules)

    monkeypatch.setattr(reader_processes, "LEAST_FILES", 1)
    monkeypatch.setattr(reader_processes, "TASKS_AT_ONCE", 4)
    monkeypatch.setattr(_Helper, "begin", noted)
    return found


@pytest.fixture
def files(root: Path, write: Write) -> Path:
    """Documents of all kinds: long, linked, alike, wrong, empty, unreadable."""
    for number in range(24):
        body = f"Text {number} of words é 日本 and more.\n\n" * (200 if number % 7 == 0 else 2)
        write(f"a/{number:02}.md", f"---\ntitle: Note {number}\ntriggers: [one, two {number}]\n---\n# N\n\n{body}")
    write("b/same.md", "Equal words.\n")
    write("b/same-too.md", "Equal words.\n")
    write("b/linked.md", "---\ncausalLinks: {caused_by: [same.md, nothing.md]}\n---\nLinked.\n")
    write("b/wrong.md", "---\ntitle: [\n---\nBroken head.\n")
    write("b/empty.md", "\n")
    (root / "b/binary.md").write_bytes(b"a\0b")
    return root


def run(
    folder: Path, embedder: StaticEmbedder | None, root: Path, processes: int, times: int = 1
) -> tuple[IndexReport, dict[str, list[str]]]:
    """The report of the last of some runs, and every row that does not tell the time or a random number."""
    folder.mkdir()
    with Database.open(folder / "memory.db") as database:
        indexer = Indexer(database, embedder, Analyser(), root)
        for turn in range(times):
            report = indexer.index([root], now=100.0, force=turn > 0, processes=processes)
        connection = database.reader()
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        rows = {
            name: sorted(map(repr, connection.execute(f'SELECT * FROM "{name}"')))
            for name in names
            if name not in ("migrations", "changes", "store_identity")
        }
        rows["changes"] = list(map(repr, connection.execute("SELECT seq, memory_id, kind FROM changes")))
        return report, rows


def same(report: IndexReport, other: IndexReport, but: Sequence[str] = ()) -> bool:
    return all(getattr(report, f.name) == getattr(other, f.name) for f in fields(IndexReport) if f.name not in but)


@pytest.mark.requirement("I8")
@pytest.mark.parametrize("model", [StaticEmbedder, OwnModel, lambda: None])
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.usefixtures("processes")
def test_with_helpers_the_store_becomes_what_it_becomes_without(
    tmp_path: Path, files: Path, started: list[_Helper], model: Callable[[], StaticEmbedder | None], times: int
) -> None:
    alone = run(tmp_path / "alone", model(), files, 0, times)
    assert not started
    helped = run(tmp_path / "helped", model(), files, 2, times)

    assert len(started) == 2 * times
    assert helped == alone
    assert len(helped[0].failures) == 1


@pytest.mark.usefixtures("processes")
def test_what_is_too_large_to_be_sent_is_made_here(
    tmp_path: Path, files: Path, started: list[_Helper], monkeypatch: pytest.MonkeyPatch
) -> None:
    read_here: list[str] = []
    make = source_processing.SourceProcessor.__call__

    def noted(
        maker: source_processing.SourceProcessor, task: source_processing.SourceTask
    ) -> source_processing.ProcessedSource:
        read_here.append(task.file.key)
        return make(maker, task)

    alone = run(tmp_path / "alone", None, files, 0)
    (files / "a/05.md").write_text("word " * 300_000, encoding="utf-8")
    monkeypatch.setattr(source_processing.SourceProcessor, "__call__", noted)
    report, _ = run(tmp_path / "helped", None, files, 2)

    assert started
    # of the list of four that it is in, what had been read before it was sent
    assert read_here == ["a/05.md", "a/06.md", "a/07.md"]
    assert report.created == alone[0].created


@pytest.mark.usefixtures("processes")
def test_helpers_give_way_to_searches(
    tmp_path: Path, files: Path, started: list[_Helper], monkeypatch: pytest.MonkeyPatch
) -> None:
    niceness = []
    answer = _Helper.answer

    def looked_at(helper: _Helper) -> Any:
        answered = answer(helper)
        niceness.append(os.getpriority(os.PRIO_PROCESS, helper._process.pid))
        return answered

    monkeypatch.setattr(_Helper, "answer", looked_at)
    run(tmp_path / "helped", None, files, 2)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert set(niceness) == {min(own + reader_processes.NICENESS, 19)}


@pytest.mark.usefixtures("processes")
def test_nothing_is_lost_with_a_helper_that_is_killed(
    tmp_path: Path, files: Path, started: list[_Helper], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, rows = run(tmp_path / "alone", StaticEmbedder(), files, 0)
    answer = _Helper.answer

    def killed(helper: _Helper) -> Any:
        if helper is started[0]:
            helper._process.kill()
        return answer(helper)

    monkeypatch.setattr(_Helper, "answer", killed)
    report, helped_rows = run(tmp_path / "helped", StaticEmbedder(), files, 2)

    assert helped_rows == rows
    assert same(report, alone, but=["problems"])
    (told,) = [problem for problem in report.problems if "signal 9" in problem.message]
    assert told.code == "E096"


@pytest.mark.usefixtures("processes")
def test_nothing_is_lost_and_nobody_waits_for_ever_for_a_helper_that_is_stopped(
    tmp_path: Path, files: Path, started: list[_Helper], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, rows = run(tmp_path / "alone", StaticEmbedder(), files, 0)
    monkeypatch.setattr(reader_processes, "PATIENCE_SECONDS", 1)
    answer = _Helper.answer

    def stopped(helper: _Helper) -> Any:
        if helper is started[0] and helper.alive:
            os.kill(helper._process.pid, signal.SIGSTOP)
        return answer(helper)

    monkeypatch.setattr(_Helper, "answer", stopped)
    report, helped_rows = run(tmp_path / "helped", StaticEmbedder(), files, 2)

    assert helped_rows == rows
    assert same(report, alone, but=["problems"])
    assert any("did not respond for 1 seconds" in problem.message for problem in report.problems)
    assert started[0]._process.poll() == -signal.SIGKILL


@pytest.mark.usefixtures("processes")
def test_a_helper_that_waits_for_its_disk_is_not_given_up(
    tmp_path: Path, files: Path, started: list[_Helper], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = run(tmp_path / "alone", None, files, 0)
    (tmp_path / "slow_reader.py").write_text(
        "from speckit_memory.memory.indexing import reader_processes as reader; import time; "
        "process = reader._process_work; reader._process_work = lambda *given: (time.sleep(6), process(*given))[1]; "
        "main = reader.main\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(reader_processes, "PATIENCE_SECONDS", 3)
    monkeypatch.setattr(reader_processes, "TASKS_AT_ONCE", 100)
    monkeypatch.setattr(
        reader_processes, "start_python", lambda _, *given, **more: start_python("slow_reader", *given, **more)
    )

    assert run(tmp_path / "helped", None, files, 1) == alone
    assert len(started) == 1


@pytest.mark.usefixtures("processes")
def test_sources_are_made_by_helpers_as_without_them(
    database: Database, tmp_path: Path, started: list[_Helper]
) -> None:
    texts = [Source(f"n/{number}", f"Text {number} of é 日本.\n\n" * (number % 40)) for number in range(40)]
    with Database.open(tmp_path / "alone.db") as other:
        alone = Indexer(other, StaticEmbedder(), Analyser(), tmp_path).index_documents(texts, now=1.0)
        indexer = Indexer(database, StaticEmbedder(), Analyser(), tmp_path)
        report = indexer.index_documents(iter(texts), now=1.0, processes=2)
        for table in ("memories", "texts", "chunks", "chunk_tokens", "embedding_cache", "token_counts"):
            found, expected = (list(each.reader().execute(f"SELECT * FROM {table}")) for each in (database, other))
            assert found == expected

    assert started
    assert report == alone


def test_without_any_process_more_the_files_are_read_here(
    tmp_path: Path, files: Path, started: list[_Helper], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError("too many processes")

    alone = run(tmp_path / "alone", StaticEmbedder(), files, 0)
    monkeypatch.setattr("subprocess.Popen", refused)

    assert run(tmp_path / "helped", StaticEmbedder(), files, 2) == alone
    assert not started


@pytest.mark.usefixtures("processes")
def test_an_interrupt_ends_the_helpers_and_keeps_what_was_written(
    database: Database, files: Path, started: list[_Helper], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("speckit_memory.memory.indexing.batches.BATCH_DOCUMENTS", 8)

    def interrupt(_: IndexProgress) -> None:
        raise KeyboardInterrupt

    indexer = Indexer(database, StaticEmbedder(), Analyser(), files)
    with pytest.raises(KeyboardInterrupt):
        indexer.index([files], now=1.0, processes=2, progress=interrupt)

    assert [helper._process.poll() is not None for helper in started] == [True, True]
    assert len(indexer.index([files], now=2.0, processes=0).unchanged) == 8


@pytest.mark.usefixtures("processes")
def test_a_helper_ends_by_itself_when_nobody_is_at_the_other_end() -> None:
    helper = _Helper()
    helper._connection.close()

    assert helper._process.wait(60) == 0


@pytest.mark.usefixtures("processes")
def test_lists_may_be_longer_than_what_a_connection_holds(
    tmp_path: Path, root: Path, write: Write, started: list[_Helper], monkeypatch: pytest.MonkeyPatch
) -> None:
    def small() -> tuple[socket.socket, socket.socket]:
        ends = socket.socketpair()
        for end in ends:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)  # as small as the system has them
        return ends

    folder = "/".join(["x" * 200] * 8)
    for number in range(40):
        write(f"{folder}/{number:02}.md", "Some words of a note.\n\n" * 400)
    alone = run(tmp_path / "alone", None, root, 0)
    monkeypatch.setattr(reader_processes, "socketpair", small)
    ended: list[bool] = []

    def helped() -> None:
        ended.append(run(tmp_path / "helped", None, root, 2) == alone)

    thread = threading.Thread(target=helped, daemon=True)
    thread.start()
    thread.join(60)
    for helper in started:
        helper._process.kill()  # what waits for ever would do so in the tests that follow
    assert ended == [True]


def test_few_files_are_read_without_helpers(
    tmp_path: Path, files: Path, started: list[_Helper], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_processes, "LEAST_FILES", 1000)
    run(tmp_path / "few", None, files, 2)

    assert not started


@pytest.mark.parametrize(("processors", "of_use"), [(1, 0), (2, 2), (3, 3), (64, 4)])
def test_there_is_a_helper_per_processor_and_none_for_a_single_one(
    monkeypatch: pytest.MonkeyPatch, processors: int, of_use: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)), raising=False)

    assert reader_processes.helpful_processes() == of_use


@pytest.mark.requirement("I8")
def test_unchanged_files_are_not_opened_and_ask_the_store_nothing(
    database: Database, indexer: Indexer, root: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def nobody_reads(_root: Path, key: str, _largest: int) -> None:
        opened.append(key)

    def statements(number: int) -> int:
        for at in range(number):
            write(f"{number}/{at}.md", f"Words of {at}.\n")
        indexer.index([root / str(number)], now=1.0)
        ran: list[str] = []
        connection = database.reader()

        def noted(sql: str) -> bool:
            ran.append(sql)
            return True

        with monkeypatch.context() as patched:
            patched.setattr("speckit_memory.memory.scanning.inside.read", nobody_reads)
            connection.exec_trace = lambda _cursor, sql, _bindings: noted(sql)
            report = indexer.index([root / str(number)], now=2.0)
            connection.exec_trace = None
        assert len(report.unchanged) == number
        return len(ran)

    few, many = statements(3), statements(60)

    assert not opened
    assert many == few
