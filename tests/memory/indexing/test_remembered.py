"""Sources: what was named stays, what is no longer in any source goes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from files import write_file

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing import Analyser, Indexer
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.reading import reader

Write = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@pytest.fixture
def indexer(database: Database, root: Path) -> Indexer:
    return Indexer(database, None, Analyser(), root)


def stored(database: Database) -> list[str]:
    return reader.keys(database.reader())


@pytest.mark.requirement("I8")
def test_a_file_that_becomes_ignored_leaves_and_one_that_was_named_in_spite_of_it_stays(
    indexer: Indexer, database: Database, root: Path, write: Write
) -> None:
    for key in ("a.md", "docs/secret.md", "docs/wanted.md", ".notes/n.md"):
        write(key, f"text of {key}")
    indexer.index([root / "docs", root / "a.md"], now=1.0)
    write(".gitignore", "secret.md\nwanted.md\n")

    report = indexer.index([root, root / ".notes", root / "docs" / "wanted.md"], now=2.0)
    assert (report.absent, report.ignored["docs/secret.md"]) == (["docs/secret.md"], ".gitignore:1: secret.md")
    assert report.overruled == {".notes": "hidden", "docs/wanted.md": ".gitignore:2: wanted.md"}
    assert report.sources == ["", ".notes", "a.md", "docs", "docs/wanted.md"]

    assert indexer.index([root], now=3.0).vanished == []
    assert stored(database) == [".notes/n.md", "a.md", "docs/wanted.md"]
    (root / ".notes" / "n.md").unlink()
    (root / "docs" / "wanted.md").unlink()
    assert indexer.index([root], now=4.0).vanished == [".notes/n.md", "docs/wanted.md"]


def test_a_saved_file_stays_though_no_folder_was_indexed(
    indexer: Indexer, database: Database, root: Path, write: Write
) -> None:
    write(".claude/.notes/n.md", "text of n")
    write("a.md", "text of a")
    indexer.save_file(root / ".claude" / ".notes" / "n.md", now=1.0)

    indexer.index([root], now=2.0)

    assert stored(database) == [".claude/.notes/n.md", "a.md"]


def test_a_dry_run_remembers_nothing(indexer: Indexer, root: Path, write: Write) -> None:
    write(".notes/n.md", "text of n")
    assert indexer.index([root / ".notes"], dry_run=True, now=1.0).sources == []
    indexer.save_file(root / ".notes" / "n.md", dry_run=True, now=1.0)
    assert indexer.sources() == {}


def test_what_could_not_be_indexed_is_no_source(indexer: Indexer, root: Path, write: Write) -> None:
    write("a.md", "text")
    (root / "out").symlink_to(root.parent)
    (root / os.fsdecode(b"caf\xe9")).mkdir()

    indexer.index([root / "nowhere", root / "out", root / os.fsdecode(b"caf\xe9"), root / "a.md"], now=1.0)

    assert indexer.sources() == {"a.md": False}


def test_a_forgotten_source_takes_along_what_no_other_source_holds(
    indexer: Indexer, database: Database, root: Path, write: Write
) -> None:
    for key in ("docs/a.md", ".notes/n.md", ".notes/deep/m.md", "notes.md"):
        write(key, f"text of {key}")
    indexer.index([root / "docs", root / ".notes", root / ".notes" / "deep"], now=1.0)

    preview = indexer.forget([root / ".notes"], dry_run=True, now=2.0)
    assert (preview.deleted, preview.sources) == ([".notes/deep/m.md", ".notes/n.md"], ["docs"])
    assert len(stored(database)) == 3

    report = indexer.forget([root / ".notes"], now=2.0)
    assert (report.deleted, report.sources) == ([".notes/deep/m.md", ".notes/n.md"], ["docs"])
    assert stored(database) == ["docs/a.md"]
    indexer.index([root], now=3.0)
    assert stored(database) == ["docs/a.md", "notes.md"]


def test_what_another_source_holds_stays_and_is_said(
    indexer: Indexer, database: Database, root: Path, write: Write
) -> None:
    write("docs/a.md", "text of a")
    indexer.index([root, root / "docs"], now=1.0)

    report = indexer.forget([root / "docs"], now=2.0)

    assert (report.deleted, report.unchanged, report.sources) == ([], ["docs/a.md"], [""])
    assert [problem.message for problem in report.problems] == ["1 memory stays, docs/a.md: another source holds it"]
    indexer.forget([root], now=3.0)
    assert stored(database) == []


def test_a_path_that_nothing_was_indexed_from_cannot_be_forgotten(
    indexer: Indexer, database: Database, root: Path, write: Write
) -> None:
    write("docs/a.md", "text of a")
    indexer.index([root / "docs"], now=1.0)

    with pytest.raises(SpeckitError) as raised:
        indexer.forget([root / "docs", root / "nowhere", root.parent], now=2.0)

    assert [problem.code for problem in raised.value.problems] == ["E014", "E014"]
    assert raised.value.problems[0].hint == "The sources are: docs."
    assert stored(database) == ["docs/a.md"]


def test_a_memory_of_a_source_that_is_gone_can_be_forgotten(
    indexer: Indexer, database: Database, root: Path, write: Write
) -> None:
    write("old/a.md", "text of a")
    indexer.index([root / "old"], now=1.0)
    (root / "old" / "a.md").unlink()
    (root / "old").rmdir()

    assert indexer.forget([root / "old"], now=2.0).deleted == ["old/a.md"]


def test_workspaces_that_share_a_store_do_not_take_each_others_memories_for_absent(
    indexer: Indexer, database: Database, root: Path, write: Write, tmp_path: Path
) -> None:
    write("a.md", "text of a")
    second = tmp_path / "second"
    write_file(second / "b.md", "text of b")
    other = Indexer(database, None, Analyser(), second)

    indexer.index([root], now=1.0)
    assert other.index([second], now=2.0).absent == []
    assert stored(database) == ["a.md", "b.md"]
    (root / "a.md").unlink()
    assert other.index([second], now=3.0).absent == ["a.md"]


def test_a_workspace_that_is_renamed_keeps_its_sources(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    write_file(before / ".notes" / "n.md", "text of n")
    with Database.open(before / ".speckit" / "memory.db") as database:
        Indexer(database, None, Analyser(), before).index([before / ".notes"], now=1.0)
    before.rename(after)

    with Database.open(after / ".speckit" / "memory.db") as database:
        indexer = Indexer(database, None, Analyser(), after)
        assert indexer.index([after], now=2.0).absent == []
        assert stored(database) == [".notes/n.md"]


def test_the_configuration_is_read_anew_for_every_run(
    indexer: Indexer, database: Database, root: Path, write: Write
) -> None:
    write("a.md", "text of a")
    write("drafts/d.md", "text of d")
    indexer.index([root], now=1.0)
    write(".speckit/config.yaml", "sources:\n  exclude: [drafts/]\n")

    assert indexer.index([root], now=2.0).absent == ["drafts/d.md"]
    write(".speckit/config.yaml", "sources:\n  exlude: [drafts/]\n")
    with pytest.raises(SpeckitError, match="E115"):
        indexer.index([root], now=3.0)
