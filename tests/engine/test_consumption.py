"""What becomes of the memories of an answer, noted without touching it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from speckit_memory.engine import Memory
from speckit_memory.memory.store.evaluation.attribution import WITHIN_SECONDS
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from speckit_memory.memory.store.evaluation.records import (
    AnswerRecord,
    Observation,
    QueryRecord,
    UsageSignal,
    UseRecord,
)

FIRST, SECOND = "1" * 16, "2" * 16


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for number in range(4):
        (tmp_path / f"note-{number}.md").write_text(f"# Rank fusion {number}\n\nHow scores are fused, {number}.\n")
    with Memory.open(tmp_path / "memory.db", root=tmp_path, environ={}) as memory:
        memory.index([tmp_path])
    return tmp_path


@pytest.fixture
def memory(root: Path) -> Iterator[Memory]:
    with Memory.open(root / "memory.db", root=root, environ={}) as memory:
        yield memory


def shown(memory: Memory, query_id: str, session: str = "") -> list[int]:
    """The memories of an answer that was served."""
    result = memory.search("rank fusion", query_id=query_id, session=session, dedup=False)
    memory.feedback.delivered(result)
    return [row.id for row in result.results]


def uses(memory: Memory) -> list[tuple[str, int, str, int]]:
    assert memory.session.opened.recorder.write()
    with EvaluationDatabase.open(evaluation_file(memory.session.settings.db), create=False) as database:
        return [(use.query, use.memory, use.use, use.rank) for use in database.uses()]


@pytest.mark.requirement("T28.chosen")
def test_a_memory_found_useful_is_a_use_of_the_answer_that_brought_it_last(memory: Memory) -> None:
    shown(memory, FIRST)
    ids = shown(memory, SECOND)
    memory.learning.validate(ids[2], useful=True)
    memory.learning.validate(ids[1], useful=False)
    assert uses(memory) == [(SECOND, ids[2], "validated", 3)]


@pytest.mark.requirement("T28.chosen")
def test_a_memory_asked_for_as_a_whole_is_a_use_of_the_answer_before(memory: Memory) -> None:
    ids = shown(memory, FIRST, session="mine")
    result = memory.search("rank fusion", limit=1, content=True, query_id=SECOND, session="mine", dedup=False)
    memory.feedback.delivered(result)
    opened = result.results[0].id
    assert uses(memory) == [(FIRST, opened, "opened", ids.index(opened) + 1)]


@pytest.mark.requirement("T28.chosen", "M2")
def test_a_memory_read_by_its_key_was_opened_where_the_answer_before_had_brought_it_and_is_kept_better(
    memory: Memory,
) -> None:
    ids = shown(memory, FIRST, session="mine")
    memory.documents.read(ids[1])  # nobody was shown this one
    reading = memory.documents.read(ids[3])
    memory.feedback.opened(reading, session="mine")
    memory.feedback.opened(replace(reading, origin="another store"))
    memory.feedback.write()

    assert uses(memory) == [(FIRST, ids[3], "opened", 4)]
    reviewed = memory.session.database.reader().execute("SELECT id, review_count FROM memories WHERE review_count > 0")
    assert list(reviewed) == [(ids[3], 1)]


@pytest.mark.requirement("T28.chosen")
def test_what_is_written_next_uses_what_it_links_and_cites(memory: Memory, root: Path) -> None:
    ids = shown(memory, FIRST)
    keys = {memory.get(one).key: one for one in ids}
    (root / "new.md").write_text(
        "---\ncausalLinks:\n  derived_from: [note-0.md]\n---\n# New\n\n"
        "As [there](./note-1.md) it says; my-note-2.md and note-3.mdx are others.\n"
    )
    assert memory.documents.save(root / "new.md").outcome == "created"
    expected = {(FIRST, keys["note-0.md"], "linked"), (FIRST, keys["note-1.md"], "cited")}
    assert {use[:3] for use in uses(memory)} - {(FIRST, keys["note-0.md"], "cited")} == expected
    (root / "later.md").write_text("# Later\n\nSee note-2.md.\n")
    memory.index([root])
    assert (FIRST, keys["note-2.md"], "cited") in {use[:3] for use in uses(memory)}


@pytest.mark.requirement("T28.ignored")
def test_what_no_reader_came_back_to_is_known_by_its_absence(memory: Memory, root: Path) -> None:
    ids = shown(memory, FIRST)
    memory.learning.validate(ids[0], useful=True)
    memory.close()
    with EvaluationDatabase.open(evaluation_file(root / "memory.db"), create=False) as database:
        [seen] = database.served()
        assert database.ignored() == {FIRST: tuple(ids[1:])}
    assert seen.control.memories == tuple(ids)


def answered(query: str, at: float, session: str, *memories: int) -> Observation:
    asked = QueryRecord(query, at, "understand", "simple", "", "auto", 10, 1, session, "s", 1)
    return Observation(asked, AnswerRecord("c", memories, tuple(0.5 for _ in memories)))


def test_sessions_reach_further_than_half_an_hour_and_never_into_another(tmp_path: Path) -> None:
    with EvaluationDatabase.open(tmp_path / "e.db") as database:
        database.record(
            [
                answered("mine", 1000.0, "a", 7, 8),
                answered("other", 5000.0, "b", 8, 9),
                answered("none", 6000.0, "", 9),
            ],
            signs=[
                UsageSignal(8, "opened", 7000.0, session="a"),  # the other session's answer is not taken for it
                UsageSignal(7, "validated", 1000.0 + WITHIN_SECONDS),
                UsageSignal(8, "validated", 5000.0 + WITHIN_SECONDS + 1),  # too late, and nobody knows whose it is
                UsageSignal(9, "cited", 6000.5),
                UsageSignal(9, "linked", 5500.0),
                UsageSignal(9, "opened", 6000.5, asked="none"),
            ],
        )
        assert set(database.uses()) == {
            UseRecord("mine", 8, "opened", 2, 7000.0, "a"),
            UseRecord("mine", 7, "validated", 1, 1000.0 + WITHIN_SECONDS, "a"),
            UseRecord("none", 9, "cited", 1, 6000.5, ""),
            UseRecord("other", 9, "linked", 2, 5500.0, "b"),
            UseRecord("other", 9, "opened", 2, 6000.5, "b"),
        }


@pytest.mark.requirement("T28.untouched")
@pytest.mark.parametrize("spoilt", ["text", "folder", "mistakes"])
@pytest.mark.usefixtures("in_a_file")
def test_a_file_that_cannot_be_written_changes_no_response(
    root: Path, tmp_path_factory: pytest.TempPathFactory, spoilt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def doing(memory: Memory, root: Path) -> list[object]:
        result = memory.search("rank fusion", content=True, now=2e9)
        (root / "new.md").write_text("# New\n\nSee note-1.md.\n")
        saved = memory.documents.save(root / "new.md")
        judged = memory.learning.validate("note-1.md", useful=True)
        report = memory.index([root])
        rows = [replace(row, snippet="") for row in result.results]
        (root / "new.md").unlink()
        memory.index([root])
        return [rows, memory.feedback.delivered(result), saved.outcome, judged.key, len(report.created), judged.tier]

    other = Path(shutil.copytree(root, tmp_path_factory.mktemp("other") / "root"))
    with Memory.open(other / "memory.db", root=other, environ={"SPECKIT_EVALUATION": "off"}) as memory:
        expected = doing(memory, other)
    path = root / "memory.evaluation.db"
    if spoilt == "text":
        path.write_text("not a database\n")
    elif spoilt == "folder":
        path.mkdir()
    else:
        for name in ("written_since", "cited_by", "UsageSignal", "in_share"):
            monkeypatch.setattr(f"speckit_memory.engine.session.usage_events.{name}", None)
    with Memory.open(root / "memory.db", root=root, environ={}) as memory:
        assert doing(memory, root) == expected
        memory.session.opened.recorder.write()
        assert (memory.session.opened.recorder.problem is None) == (spoilt == "mistakes")


def test_time_goes_by_the_clock_and_not_by_the_question(memory: Memory) -> None:
    memory.feedback.delivered(memory.search("rank fusion", now=1.0))
    assert memory.session.opened.recorder.write()
    with EvaluationDatabase.open(evaluation_file(memory.session.settings.db), create=False) as database:
        assert abs(database.queries()[0].at - time.time()) < 60
