"""A neighbour process puts something else in the place of a file between the scan and the reading of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from files import write_file
from tally import Tally

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing import Analyser, Indexer, indexer, reader_processes
from speckit_memory.memory.scanning import scanner
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.reading import reader
from tests.attacks.swaps import KINDS, SECRET, in_time, outside, swap

GOOD = "# Good\n\nplankton inside of the workspace\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    for name in ("docs/deep/a.md", "docs/deep/b.md", "other/c.md"):
        write_file(folder / name, GOOD + name)
    return folder


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "memory.db") as opened:
        yield opened


@pytest.fixture
def indexing(database: Database, root: Path) -> Indexer:
    return Indexer(database, None, Analyser(), root)


def bodies(database: Database) -> dict[str, str]:
    connection = database.reader()
    return {key: reader.body(connection, known.id) for key, known in reader.known_files(connection).items()}


def between(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None]) -> None:
    """Lets something happen once, after the scan of the next run and before it reads."""
    todo = [happens]

    def decide(*values: Any, **named: Any) -> Any:
        decided = scanner.decide(*values, **named)
        if todo:
            todo.pop()()
        return decided

    monkeypatch.setattr(indexer, "decide", decide)


def as_it_reads(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None]) -> None:
    """Lets something happen once, when the next run has decided what is gone."""

    def beside(*values: Any, **named: Any) -> Any:
        monkeypatch.setattr(indexer, "process_sources", reader_processes.process_sources)
        happens()
        return reader_processes.process_sources(*values, **named)

    monkeypatch.setattr(indexer, "process_sources", beside)


@pytest.mark.requirement("I8")
@pytest.mark.parametrize("kind", KINDS)
def test_what_takes_the_place_of_a_file_is_neither_stored_nor_waited_for(
    kind: str, root: Path, indexing: Indexer, database: Database, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    between(monkeypatch, lambda: swap(root / "docs" / "deep" / "a.md", kind, outside(root)))

    report = in_time(lambda: indexing.index([root], now=1.0))

    assert sorted(report.created) == ["docs/deep/b.md", "other/c.md"]
    assert [problem.code for problem in report.failures] == ["E014"]
    assert "docs/deep/a.md" in report.failures[0].message
    assert SECRET not in str(bodies(database))
    tally.survived()


@pytest.mark.requirement("I8")
@pytest.mark.parametrize("folder", ["docs", "docs/deep"])
@pytest.mark.parametrize("absolute", [True, False])
def test_a_folder_on_the_way_that_becomes_a_link_leads_nowhere_outside(
    folder: str, absolute: bool, root: Path, indexing: Indexer, database: Database,
    monkeypatch: pytest.MonkeyPatch, tally: Tally,
) -> None:  # fmt: skip
    other = outside(root)
    (other / "deep").mkdir()
    for name in ("a.md", "b.md"):
        shutil.copy(other / name, other / "deep" / name)

    def turn() -> None:
        shutil.rmtree(root / folder)
        (root / folder).symlink_to(other if absolute else os.path.relpath(other, (root / folder).parent))

    between(monkeypatch, turn)

    report = in_time(lambda: indexing.index([root], now=1.0))

    assert report.created == ["other/c.md"]
    assert [str(problem) for problem in report.failures] == [
        f"E014 docs/deep/{name}.md: the link leads out of the workspace" for name in "ab"
    ]
    assert SECRET not in str(bodies(database))
    tally.survived()


def test_a_file_that_becomes_a_link_inside_the_workspace_is_read_through_it(
    root: Path, indexing: Indexer, database: Database, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    path = root / "docs" / "deep" / "a.md"

    def turn() -> None:
        path.unlink()
        path.symlink_to("../../other/c.md")

    between(monkeypatch, turn)

    indexing.index([root], now=1.0)

    assert bodies(database)["docs/deep/a.md"] == GOOD + "other/c.md"
    tally.survived()


def test_a_file_that_goes_between_scan_and_reading_is_nobodys_mistake(
    root: Path, indexing: Indexer, database: Database, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    for gone in (root / "other" / "c.md", root / "docs"):
        between(monkeypatch, partial(shutil.rmtree, gone) if gone.is_dir() else gone.unlink)

        report = indexing.index([root], now=1.0)

        assert (report.failures, report.problems) == ([], [])
        tally.survived()
    assert bodies(database).keys() == {"docs/deep/a.md", "docs/deep/b.md"}
    assert indexing.index([root], now=2.0).absent == ["docs/deep/a.md", "docs/deep/b.md"]


def test_the_time_of_what_was_read_is_kept_and_not_that_of_the_scan(
    root: Path, indexing: Indexer, database: Database, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    path = root / "other" / "c.md"

    def rewritten() -> None:
        path.write_text("# New\n\nrewritten\n", encoding="utf-8")
        os.utime(path, ns=(5_000, 5_000))

    between(monkeypatch, rewritten)
    indexing.index([root], now=1.0)

    assert reader.known_files(database.reader())["other/c.md"].mtime_ns == 5_000
    assert "other/c.md" in indexing.index([root], now=2.0).unchanged
    tally.survived()


@pytest.mark.requirement("I8.watched")
@pytest.mark.parametrize("back", ["after the scan", "while the run reads"])
def test_a_file_that_is_being_made_again_keeps_its_memory(
    root: Path, indexing: Indexer, database: Database, monkeypatch: pytest.MonkeyPatch, tally: Tally, back: str
) -> None:
    """As Git does it for each file of a checkout: it takes the file away and writes another."""
    indexing.index([root], now=1.0)
    before, path = reader.known_files(database.reader()), root / "other" / "c.md"

    def made_again() -> None:
        path.write_text("# New\n\nas it is on the other branch\n", encoding="utf-8")

    def scan(*values: Any, **named: Any) -> Any:
        path.unlink(missing_ok=True)
        found = scanner.scan(*values, **named)
        if back == "after the scan":
            made_again()
        return found

    with monkeypatch.context() as patched:
        patched.setattr(indexer, "scan", scan)
        if back == "while the run reads":
            as_it_reads(patched, made_again)
        assert indexing.index([root], now=2.0).absent == []
    assert indexing.index([root], now=3.0).updated == ["other/c.md"]
    assert {key: known.id for key, known in reader.known_files(database.reader()).items()} == {
        key: known.id for key, known in before.items()
    }
    tally.survived()


def away(monkeypatch: pytest.MonkeyPatch, *paths: Path, until_it_reads: bool = False) -> None:
    """Takes files or folders away before the scan of the next run, and puts them back after it."""

    def put_back() -> None:
        for path in paths:
            path.with_name("away" + path.name).rename(path)

    def scan(*values: Any, **named: Any) -> Any:
        for path in paths:
            path.rename(path.with_name("away" + path.name))
        monkeypatch.setattr(indexer, "scan", scanner.scan)
        found = scanner.scan(*values, **named)
        found.files = {key: file for key, file in found.files.items() if "away" not in key}
        if not until_it_reads:
            put_back()
        return found

    monkeypatch.setattr(indexer, "scan", scan)
    if until_it_reads:
        as_it_reads(monkeypatch, put_back)


@pytest.mark.requirement("I8.watched")
@pytest.mark.parametrize("until_it_reads", [False, True])
@pytest.mark.parametrize("again", [(".",), (".plans", "ignored", "docs/notes.log", "other")])
def test_what_only_its_name_brings_in_keeps_its_memory_as_well(
    root: Path, indexing: Indexer, database: Database, monkeypatch: pytest.MonkeyPatch, tally: Tally,
    until_it_reads: bool, again: tuple[str, ...],
) -> None:  # fmt: skip
    keys = (".plans/deep/a.md", "ignored/b.md", "docs/notes.log", "other/c.md")
    for key in keys:
        write_file(root / key, GOOD + key)
    (root / ".gitignore").write_text("ignored/\n")
    indexing.index([root, root / ".plans", root / "ignored", root / "docs/notes.log"], now=1.0)
    before = reader.known_files(database.reader())
    assert before.keys() >= {*keys}

    away(monkeypatch, *(root / key for key in keys), until_it_reads=until_it_reads)
    report = indexing.index([root / name for name in again], now=2.0)

    assert (report.absent, report.failures) == ([], [])
    assert sorted(indexing.index([root], now=3.0).unchanged) == sorted(before)
    after = reader.known_files(database.reader())
    assert {key: known[:4] for key, known in after.items()} == {key: known[:4] for key, known in before.items()}
    tally.survived()


@pytest.mark.requirement("I8.watched")
@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("until_it_reads", [False, True])
@pytest.mark.parametrize("key", ["other/c.md", "other"])
def test_what_was_named_and_is_back_is_not_called_missing(
    root: Path, indexing: Indexer, monkeypatch: pytest.MonkeyPatch, tally: Tally,
    until_it_reads: bool, key: str, dry_run: bool,
) -> None:  # fmt: skip
    indexing.index([root], now=1.0)

    away(monkeypatch, root / key, until_it_reads=until_it_reads)
    report = indexing.index([root / key, Path("nowhere.md")], now=2.0, dry_run=dry_run)

    assert report.absent == []
    assert list(map(str, report.failures)) == ["E010 nowhere.md: there is no such file or folder"]
    (remark,) = report.problems
    assert str(remark) == f"E010 {key}: missing during this run, and back now"
    assert remark.retryable
    again = indexing.index([root / key], now=3.0)
    assert (again.unchanged, again.failures, again.problems) == (["other/c.md"], [], [])
    tally.survived()


@pytest.mark.requirement("I8.ignored", "I8.aliases")
def test_what_is_there_and_not_taken_any_more_goes_all_the_same(
    root: Path, indexing: Indexer, database: Database, tally: Tally
) -> None:
    (root / "twice.md").write_text(GOOD + "twice", encoding="utf-8")
    (root / "linked").symlink_to(root / "other")
    (root / "other").rename(root / "zz")
    (root / "linked").unlink()
    (root / "linked").symlink_to(root / "zz")
    indexing.index([root / "linked"], now=1.0)
    indexing.index([root], now=1.0)
    held = set(reader.known_files(database.reader()))
    assert held == {"docs/deep/a.md", "docs/deep/b.md", "twice.md", "zz/c.md"}
    (root / "first.md").hardlink_to(root / "twice.md")
    (root / ".speckitignore").write_text("a.md\n")
    indexing.index([root], now=2.0)
    assert reader.keys(database.reader()) == ["docs/deep/b.md", "first.md", "zz/c.md"]
    tally.survived()


def test_what_was_known_stays_while_something_else_is_in_its_place(
    root: Path, indexing: Indexer, database: Database, tally: Tally
) -> None:
    indexing.index([root], now=1.0)
    before = bodies(database)
    for kind in [kind for kind in KINDS if kind != "a folder"]:
        swap(root / "other" / "c.md", kind, outside(root))

        report = in_time(lambda: indexing.index([root], now=2.0))

        assert (report.absent, bodies(database)) == ([], before), kind
        tally.survived()


def test_a_workspace_that_is_gone_for_a_while_loses_no_memory(
    root: Path, indexing: Indexer, database: Database, tally: Tally
) -> None:
    indexing.index([root], now=1.0)
    before = bodies(database)
    root.rename(root.parent / "unmounted")

    report = indexing.index([root], now=2.0)

    assert [problem.code for problem in report.failures] == ["E010"]
    assert bodies(database) == before
    tally.survived()


@pytest.mark.requirement("I8")
@pytest.mark.usefixtures("processes")
def test_hundreds_of_swaps_while_scans_and_saves_run_store_no_text_from_outside(
    root: Path, indexing: Indexer, database: Database, tally: Tally
) -> None:
    path, tries, beside = root / "docs" / "deep" / "a.md", 400, root.parent / "beside"
    refused: set[str] = set()
    beside.mkdir()
    script = Path(__file__).with_name("neighbour.py")
    neighbour = subprocess.Popen(
        [sys.executable, script, path, outside(root), beside], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def attack() -> None:
        for number in range(tries):
            if number % 2:
                indexing.index([root], now=float(number), force=True)
                continue
            try:
                indexing.save_file(path, now=float(number), force=True)
            except SpeckitError as error:
                refused.update(problem.code for problem in error.problems)

    try:
        in_time(attack)
    finally:
        swaps, _ = neighbour.communicate()
    assert SECRET not in str(bodies(database))
    assert refused <= {"E010", "E014"}
    assert int(swaps) > tries, "the neighbour hardly ran"
    tally.survived(tries)
