from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from answered import refused

from speckit_memory.engine import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing import IndexProgress
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.current import ReadModel
from speckit_memory.memory.store.read_model.snapshot import Snapshot


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    for number in range(70):
        (tmp_path / "docs" / f"n{number:02}.md").write_text(f"# Note {number}\n\nThe marmot of number {number}.\n")
    return tmp_path


@pytest.fixture
def memory(root: Path) -> Iterator[Memory]:
    with Memory.open(root / "memory.db", root=root, environ={}) as memory:
        memory.index([root / "docs"])
        yield memory


def without(path: Path) -> None:
    for part in ("", "-wal", "-shm"):
        path.with_name(path.name + part).unlink(missing_ok=True)


def test_a_run_during_which_the_store_is_deleted_is_done_again_in_a_new_one(memory: Memory, root: Path) -> None:
    turns: list[int] = []

    def deleting(_: IndexProgress) -> None:
        if not turns:
            without(root / "memory.db")
        turns.append(1)

    report = memory.index([root / "docs"], force=True, progress=deleting)
    assert len(report.created) == 70
    with Database.open(root / "memory.db", create=False) as database:
        assert database.reader().execute("SELECT count(*) FROM memories").get == 70
    assert [change.what for change in memory.session.store.replacements] == ["was removed (No such file or directory)"]


def test_reading_never_makes_a_deleted_store_anew(memory: Memory, root: Path) -> None:
    without(root / "memory.db")
    for read in (
        lambda: memory.search("marmot"),
        memory.inventory.stats,
        memory.list,
        lambda: memory.get(1),
        memory.lifecycle.check,
    ):
        with refused("E010"):
            read()
    assert not (root / "memory.db").exists()


def test_an_answer_of_another_store_is_neither_counted_nor_explained(memory: Memory, root: Path) -> None:
    result = memory.search("marmot", limit=2)
    shutil.copy(root / "memory.db", root / "copy.db")
    without(root / "memory.db")
    (root / "copy.db").rename(root / "memory.db")
    assert len(memory.search("marmot", limit=2).results) <= 2
    assert memory.feedback.delivered(result) == ""
    for ask in (memory.explain.row, memory.explain.why_not):
        with refused("E026", match="was replaced since this search"):
            ask(result, result.results[0].id)


@pytest.mark.parametrize("ask", ["row", "why_not", "smallest_change"])
def test_a_store_that_is_replaced_while_an_answer_is_told_of_tells_nothing_of_it(
    memory: Memory, root: Path, ask: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks has read the earlier store by then; its ids mean others in the new one."""
    result = memory.search("marmot", limit=2)
    shutil.copy(root / "memory.db", root / "copy.db")
    current = ReadModel.current

    def replaced(model: ReadModel) -> Snapshot:
        found = current(model)
        if (root / "copy.db").exists():
            without(root / "memory.db")
            (root / "copy.db").rename(root / "memory.db")
        return found

    monkeypatch.setattr(ReadModel, "current", replaced)
    with pytest.raises(SpeckitError, match="was replaced since this search"):
        getattr(memory.explain, ask)(result, result.results[0].id)


def test_a_judgement_by_an_id_of_another_store_is_refused_once(memory: Memory, root: Path) -> None:
    shutil.copy(root / "memory.db", root / "copy.db")
    without(root / "memory.db")
    (root / "copy.db").rename(root / "memory.db")
    with refused("E026"):
        memory.learning.validate(1, useful=True)


def test_a_run_that_ends_early_says_how_many_documents_it_had_written(memory: Memory, root: Path) -> None:
    def full(_: IndexProgress) -> None:
        raise SpeckitError("E081", "there is no space left")

    with refused("E081", match="64 documents of this run had been written before and are kept") as caught:
        memory.index([root / "docs"], force=True, progress=full)
    assert "Nothing was written" not in caught.value.problems[0].hint
