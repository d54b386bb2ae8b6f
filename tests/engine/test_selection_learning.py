"""Learning trigger phrases in the background: from which selections, and what a search makes of it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from speckit_memory.engine import Memory
from speckit_memory.engine.upkeep.selection_learning import words_of
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from speckit_memory.memory.store.evaluation.records import AnswerRecord, Observation, QueryRecord, UseRecord
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.tables.sessions import selections
from speckit_memory.memory.store.tables.sessions.selections import Selection

DAY = 86_400.0
NOTES = {
    "ranks.md": "---\ntrigger_phrases: [rank fusion]\n---\n# Ranks\n\nRanks of two channels are fused.\n",
    "boats.md": "# Boats\n\nBoats are moored at the pier, and channels are narrow.\n",
    "bread.md": "# Bread\n\nBread is baked with sourdough.\n",
}
ON = {"SPECKIT_LEARN_FROM_SELECTION": "true"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace that has lived for a hundred days and keeps texts of questions."""
    for name, text in NOTES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    config = tmp_path / ".speckit" / "config.yaml"
    config.parent.mkdir()
    config.write_text("evaluation: {texts: true}\n", encoding="utf-8")
    with opened(tmp_path) as memory:
        memory.index(tmp_path)
    past = time.time() - 100 * DAY
    with Database.open(tmp_path / "memory.db") as database, database.write() as txn:
        txn.connection.execute("UPDATE memories SET created_at = ?", (past,))
        txn.connection.execute("UPDATE migrations SET applied_at = datetime(?, 'unixepoch')", (past,))
    return tmp_path


def opened(root: Path, **environ: str) -> Memory:
    return Memory.open(root / "memory.db", root=root, environ=environ)


@pytest.fixture
def seen(root: Path) -> None:
    """Enough was seen to learn."""
    watch(root)


def watch(root: Path) -> None:
    at = time.time() - 8 * DAY
    with Database.open(root / "memory.db") as database, database.write() as txn:
        for number in range(200):
            selections.note(txn, Selection(f"seen{number}", 1, "opened", 1, at, at, "refused", "found well", ()))


def select(root: Path, text: str | None, key: str, rank: int = 5, ago: float = 3600.0, query: str = "q") -> None:
    """Somebody asked this, and opened that memory of the answer."""
    at = time.time() - ago
    with Database.open(root / "memory.db") as database:
        [(memory,)] = rows(database.reader(), "SELECT id FROM memories WHERE key = ?", (key,))
    question = None if text is None else {"text": text}
    asked = QueryRecord(query, at, "understand", "simple", "", "auto", 10, 1, "", "s", 1, question)
    with EvaluationDatabase.open(evaluation_file(root / "memory.db")) as database_of_uses:
        database_of_uses.record(
            [Observation(asked, AnswerRecord("c", (memory,), (0.5,)))],
            uses=[UseRecord(query, memory, "opened", rank, at)],
        )


def learned(root: Path) -> list[tuple[str, str]]:
    with opened(root) as memory:
        memory.lifecycle.maintain()
        return [(one.key, one.phrase) for one in memory.triggers.learned().phrases]


def answers(root: Path, text: str, **environ: str) -> list[tuple[str, float]]:
    with opened(root, **environ) as memory:
        return [(row.key, row.score) for row in memory.search(text).results]


@pytest.mark.requirement("M12", "M12.apart")
@pytest.mark.usefixtures("seen")
def test_what_a_selection_taught_finds_its_memory_where_the_flag_is_on_and_changes_no_bit_where_it_is_off(
    root: Path,
) -> None:
    questions = ["zeppelin docking", "where do zeppelins moor", "zeppelin", "channels", "rank fusion"]
    before = [answers(root, text) for text in questions]
    flagged = [answers(root, text, **ON) for text in questions]
    assert flagged == before  # with nothing learned the flag changes nothing
    select(root, "zeppelin docking", "boats.md")
    assert learned(root) == [("boats.md", "zeppelin"), ("boats.md", "docking")][::-1]
    assert [answers(root, text) for text in questions] == before
    assert answers(root, "zeppelin", **ON)[0][0] == "boats.md"
    assert answers(root, "rank fusion", **ON) == flagged[-1]


@pytest.mark.requirement("M12.undone")
@pytest.mark.usefixtures("seen")
def test_what_was_learned_tells_what_taught_it_and_is_taken_back_for_good(root: Path) -> None:
    select(root, "zeppelin docking", "boats.md")
    select(root, "zeppelin landing", "boats.md", rank=1, ago=60.0, query="again")
    select(root, "zeppelin flour", "bread.md", query="other")
    with opened(root, **ON) as memory:
        memory.lifecycle.maintain()
        told = memory.triggers.learned()
        zeppelin = next(one for one in told.phrases if (one.key, one.phrase) == ("boats.md", "zeppelin"))
        assert [(by.query, by.rank, by.outcome) for by in zeppelin.taught_by] == [
            ("q", 5, "learned"), ("again", 1, "reinforced"),
        ]  # fmt: skip
        assert (told.learns, told.pairs, told.texts) == (True, 203, True)
        assert [row.key for row in memory.search("zeppelin").results][:2] != []
        assert [(one.key, one.phrase) for one in memory.triggers.forget("boats.md", "Zeppelin")] == [
            ("boats.md", "zeppelin")
        ]
        assert {one.key for one in memory.triggers.forget()} == {"boats.md", "bread.md"}
        assert memory.triggers.learned().phrases == ()
    assert answers(root, "zeppelin", **ON) == answers(root, "zeppelin")
    select(root, "zeppelin docking", "boats.md", query="once more", ago=30.0)
    with Database.open(root / "memory.db") as database, database.write() as txn:
        txn.connection.execute("DELETE FROM job_runs")  # due again
    assert learned(root) == []


@pytest.mark.requirement("M12")
@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize(
    ("text", "ago"),
    [
        (None, 60.0),  # its text was not kept
        ("zeppelin docking", 31 * DAY),  # what it taught would have ended
        ("zeppelin docking", 101 * DAY),  # asked of another store at this place
        ("zeppelin key AKIAIOSFODNN7EXAMPLQ docking", 60.0),  # holds a secret
        ('-zeppelin -"docking pier" where is the', 60.0),  # what must not be in an answer
    ],
)
def test_some_questions_teach_nothing(root: Path, text: str | None, ago: float) -> None:
    select(root, text, "boats.md", ago=ago)
    assert learned(root) == []


def test_the_words_of_a_question_are_those_that_are_searched_for() -> None:
    assert words_of('"rank fusion" -zeppelin -"rigid airship"') == words_of("rank fusion") == ("fusion", "rank")


@pytest.mark.requirement("M12", "M12.watched")
def test_each_pair_is_seen_once_in_batches_and_a_spoilt_file_of_uses_breaks_no_other_work(root: Path) -> None:
    for number in range(120):
        select(root, "zeppelin docking", "boats.md", query=f"q{number}")
    with opened(root) as memory:
        found = {done.job: (done.state, done.count) for done in memory.lifecycle.maintain(dry_run=True).jobs}
        assert found["learning"] == ("waiting", 120)
        found = {done.job: (done.state, done.count) for done in memory.lifecycle.maintain().jobs}
        assert found["learning"] == ("ran", 120)
        assert memory.triggers.learned().pairs == 120
        assert memory.triggers.learned().phrases == ()  # 80 more, and a week
    with Database.open(root / "memory.db") as database, database.write() as txn:
        txn.connection.execute("DELETE FROM job_runs")
    for file in root.glob("memory.evaluation.db*"):
        file.unlink()
    evaluation_file(root / "memory.db").write_bytes(b"no database, and long enough to be one\n" * 200)
    with opened(root) as memory:
        states = {done.job: done.state for done in memory.lifecycle.maintain().jobs}
    assert states.pop("learning") == "failed"
    assert set(states.values()) == {"ran"}
