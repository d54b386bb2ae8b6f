"""A store in PostgreSQL answers, through the Python door, as one in a file does: the same calls over both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from files import write_file
from postgres_server import link_at

from speckit_memory.engine import Memory
from speckit_memory.memory.store.segment_files.segment_store import SegmentStore

NOW = 1_795_700_000.0
WORDS = (
    "fusion",
    "segment",
    "ranking",
    "posting",
    "vector",
    "graph",
    "session",
    "journal",
    "lineage",
    "decay",
    "snapshot",
)
QUESTIONS = (
    "how are rankings fused?",
    "segment posting",
    '"journal and vector"',
    "note 17",
    "lineage of decay",
    "graph",
)
Both = tuple[Memory, Memory]


def write_notes(folder: Path, numbers: range) -> None:
    for number in numbers:
        words = [WORDS[(number * step + step) % len(WORDS)] for step in (1, 2, 3, 5, 7)]
        linked = f"---\ncausalLinks:\n  caused_by: [notes/{number - 1}.md]\n---\n" if number % 10 == 1 else ""
        write_file(folder / f"notes/{number}.md", f"{linked}# Note {number}\n\nOf {' and '.join(words)}.\n")


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Both]:
    """The product over a file and over PostgreSQL, each in a workspace of its own with the same documents."""
    with ExitStack() as opened:
        yield opened.enter_context(over(tmp_path / "file")), opened.enter_context(over(tmp_path / "server", link_at))


def over(root: Path, make: Callable[[Path], object] = lambda _path: None) -> Memory:
    write_notes(root, range(20))
    make(root / "m.db")
    return Memory.open(root / "m.db", root=root, environ={}, shadows=False)


def same(both: Both, call: Callable[[Memory], Any]) -> Any:
    of_file, of_server = (call(memory) for memory in both)
    assert of_server == of_file
    return of_file


def index(memory: Memory) -> Any:
    report = memory.index([memory.session.root])
    return report.created, report.updated, report.unchanged, report.failures, report.problems, report.verdicts


def answers(memory: Memory) -> list[list[tuple[int, str, float]]]:
    return [
        [(row.id, row.key, row.score) for row in memory.search(question, limit=50, now=NOW, deadline_ms=None).results]
        for question in QUESTIONS
    ]


def test_documents_are_indexed_saved_linked_and_found(both: Both) -> None:
    assert len(same(both, index)[0]) == 20
    assert all(same(both, answers))
    same(both, lambda memory: memory.documents.write("# New\n\nA posting of its own.\n", path="notes/new.md").key)
    same(both, lambda memory: memory.documents.edit("notes/3.md", "\nA lineage more.\n").key)
    made = same(both, lambda memory: memory.graph.link("notes/3.md", "supports", "notes/5.md").relation)
    assert made == "supports"
    same(both, lambda memory: [(s.source, s.target, s.hop) for s in memory.graph.lineage("notes/3.md").steps])
    assert any(row[1] == "notes/new.md" for rows in same(both, answers) for row in rows)
    assert same(both, lambda memory: memory.lifecycle.check()) == ()


def test_what_was_deleted_comes_back_from_the_record_and_from_a_checkpoint(both: Both) -> None:
    same(both, index)
    before = same(both, answers)
    for memory in both:
        memory.checkpoints.create("kept")
        gone = memory.deletions.delete("notes/7.md")
        assert "notes/7.md" not in set(memory.inventory.keys())
        assert memory.deletions.undelete(gone.name).memories == ("notes/7.md",)
    assert [[row[1:] for row in rows] for rows in same(both, answers)] == [[row[1:] for row in rows] for rows in before]
    for memory in both:
        memory.deletions.delete_folder("notes", confirm=True)
        assert not memory.inventory.keys()
        memory.checkpoints.restore("kept", replace=True)
    assert [[row[1] for row in rows] for rows in same(both, answers)] == [[row[1] for row in rows] for rows in before]
    assert same(both, lambda memory: memory.lifecycle.check()) == ()


def test_judgements_and_tasks_are_kept(both: Both) -> None:
    same(both, index)
    same(both, lambda memory: memory.learning.validate("notes/2.md", useful=True).validation_count)
    same(both, lambda memory: memory.learning.preflight("notes", "t", knowledge=40, uncertainty=60, context=50).task)
    same(both, lambda memory: memory.learning.postflight("notes", "t", knowledge=40, uncertainty=60, context=50).task)
    assert len(same(both, lambda memory: [task.task for task in memory.learning.history("notes").tasks])) == 1
    assert len(same(both, lambda memory: [one.kind for one in memory.learning.judgements("notes/2.md")])) == 1


@pytest.mark.usefixtures("exhaustive")
def test_a_segment_and_the_writes_after_it_answer_as_in_a_file(both: Both, tmp_path: Path) -> None:
    for memory in both:
        write_notes(memory.session.root, range(20, 320))
    same(both, index)
    before = same(both, answers)
    for memory in both:
        memory.lifecycle.write_segment()
        assert SegmentStore(memory.session.database).usable() is not None
    assert same(both, answers) == before

    # later writes: those of this process, and those of another machine, which has a folder and no segment of its own
    same(both, lambda memory: memory.documents.edit("notes/40.md", "\nA decay of fusion.\n").key)
    after = same(both, answers)
    assert after != before
    elsewhere = tmp_path / "elsewhere"
    write_notes(elsewhere, range(320))
    (elsewhere / "m.db").write_bytes((tmp_path / "server/m.db").read_bytes())
    with Memory.open(elsewhere / "m.db", root=elsewhere, environ={}, shadows=False) as other:
        assert answers(other) == after
        assert SegmentStore(other.session.database).trusted() is None
        other.documents.edit("notes/41.md", "\nA session of graphs.\n")
        both[0].documents.edit("notes/41.md", "\nA session of graphs.\n")
        assert answers(other) == same(both, answers) != after


def test_rows_and_words_that_contradict_one_another_are_found(both: Both) -> None:
    same(both, index)
    for memory in both:
        with memory.session.opened.database.write() as txn:
            txn.connection.execute("UPDATE memories SET chunk_count = 9 WHERE key = 'notes/2.md'")
            txn.connection.execute("UPDATE chunks SET text = 'Of quokkas.' WHERE id = (SELECT min(id) FROM chunks)")

    faults = same(both, lambda memory: memory.lifecycle.check())

    assert len(faults) >= 2
