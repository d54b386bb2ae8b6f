from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from files import write_file

from speckit_memory.engine import Memory
from speckit_memory.errors import InvalidRequestError
from speckit_memory.memory.indexing import IndexProgress, Source
from speckit_memory.memory.store.segment_files.segment_store import FEWEST

NOW = 1_800_000_000.0


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "memory.db", root=tmp_path, environ={}, strict=True) as memory:
        yield memory


def interference(memory: Memory) -> dict[str, float]:
    attributes = memory.session.view().attributes
    ids = np.array([record.id for record in memory.list(sort="key", limit=100)[0]], np.int64)
    keys, counts = attributes.label("key", ids).tolist(), attributes.number("interference", ids).tolist()
    return dict(zip(keys, counts, strict=True))


@pytest.mark.requirement("I6", "I9.deferred")
def test_a_deferred_embedding_is_made_by_the_next_index_run_though_the_file_is_the_same(
    memory: Memory, tmp_path: Path
) -> None:
    file = write_file(tmp_path / "notes.md", "# Rank fusion\n\nScores of channels are fused.\n")
    saved = memory.documents.save(file, defer_embedding=True)
    assert (saved.outcome, memory.get("notes.md").embedding_status) == ("created", "pending")
    assert memory.inventory.stats().pending_embeddings == 1
    assert not memory.session.view().vectors.vectors(np.array([saved.id])).any()

    report = memory.index([file])

    assert (report.unchanged, report.embedded, report.pending) == (["notes.md"], 1, 0)
    assert memory.get("notes.md").embedding_status == "done"
    assert memory.session.view().vectors.vectors(np.array([saved.id])).any()
    again = memory.index([file])
    assert (again.unchanged, again.embedded, again.pending) == (["notes.md"], 0, 0)


@pytest.mark.requirement("I1")
def test_one_path_may_be_given_as_it_is_and_several_in_any_collection(memory: Memory, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write_file(tmp_path / name / "note.md", f"# Note {name}\n\nText of {name}.\n")

    assert memory.index(str(tmp_path / "a")).created == ["a/note.md"]
    assert memory.index(tmp_path / "b").created == ["b/note.md"]
    assert memory.index(path for path in [tmp_path / "c"]).created == ["c/note.md"]
    assert set(memory.documents.sources()) == {"a", "b", "c"}
    assert memory.documents.forget(str(tmp_path / "b")).deleted == ["b/note.md"]
    with pytest.raises(InvalidRequestError, match="the path is of the type int"):
        memory.index(3)  # type: ignore[arg-type]
    assert memory.inventory.stats().memories == 2


@pytest.mark.requirement("F9.indexing")
def test_every_way_of_indexing_counts_the_near_duplicates_of_a_folder(memory: Memory, tmp_path: Path) -> None:
    for folder, number in (("a", 1), ("a", 2), ("b", 1)):
        write_file(tmp_path / folder / f"{number}.md", f"# Weekly status report\n\nText {folder} {number}.\n")
    memory.index([tmp_path])
    assert interference(memory) == {"a/1.md": 1.0, "a/2.md": 1.0, "b/1.md": 0.0}

    (tmp_path / "b/2.md").write_text("# Weekly status report\n\nSaved alone.\n")
    memory.documents.save(tmp_path / "b/2.md")
    assert interference(memory) == {"a/1.md": 1.0, "a/2.md": 1.0, "b/1.md": 1.0, "b/2.md": 1.0}

    (tmp_path / "a/1.md").unlink()
    memory.index([tmp_path])
    assert interference(memory) == {"a/2.md": 0.0, "b/1.md": 1.0, "b/2.md": 1.0}

    memory.index_documents(
        Source(f"{number}", f"Text {number}.", title="Weekly status report", folder="a") for number in range(3)
    )
    assert interference(memory) == {
        "0": 3.0, "1": 3.0, "2": 3.0, "a/2.md": 3.0, "b/1.md": 1.0, "b/2.md": 1.0,
    }  # fmt: skip


@pytest.mark.requirement("I1")
def test_a_run_over_many_files_tells_how_far_what_searches_read_is(memory: Memory, tmp_path: Path) -> None:
    for number in range(FEWEST):
        (tmp_path / f"note-{number}.md").write_text(f"# Note {number}\n\nWords of note {number}.\n")
    told: list[IndexProgress] = []

    report = memory.index(tmp_path, progress=told.append)

    parts = [(now.done, now.total) for now in told if now.phase]
    assert not report.problems
    assert parts == [(done, len(parts) - 1) for done in range(len(parts))]
    assert len(parts) > 5
    assert [now.phase for now in told] == sorted(now.phase for now in told)  # after the documents
    told.clear()
    memory.index(tmp_path, progress=told.append)
    assert not any(now.phase for now in told)  # nothing was due


@pytest.mark.requirement("T9", "M14")
@pytest.mark.parametrize("way", ["undelete", "restore", "replace"])
def test_what_was_deleted_and_came_back_between_two_searches_is_found(memory: Memory, tmp_path: Path, way: str) -> None:
    for name in ("first", "second", "third"):
        links = "" if name == "first" else "---\ncausalLinks: {supersedes: [docs/first.md]}\n---\n"
        write_file(tmp_path / "docs" / f"{name}.md", f"{links}# The {name} quokka\n\nQuokkas of note {name}.\n")
    memory.index(tmp_path / "docs")

    def answer() -> list[tuple[str, float, object]]:
        rows = memory.search("quokka", now=NOW, deadline_ms=None).results
        return [(row.key, row.score, row.notes.get("superseded_by")) for row in rows]

    before = answer()
    memory.checkpoints.create("kept")
    gone = memory.deletions.delete("docs/first.md")
    if way == "undelete":
        memory.deletions.undelete(gone.name)
    else:
        memory.checkpoints.restore("kept", replace=way == "replace")

    assert len(before) == 3
    assert answer() == before
