from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from speckit_memory.engine import Memory
from speckit_memory.engine.answers.results import ResultRow, SearchResult
from speckit_memory.memory.store.tables.sessions.working_memory import LIFE

NOW = 1_800_000_000.0
PIPELINE = """\
pipeline: sessions
candidates:
  understand: []
  channels:
    - {use: bm25}
  recover: []
fusion:
  - {use: single, scale: bm25}
rerank: []
annotate:
  - {use: session_dedup}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for number in range(4):
        (tmp_path / f"{number}.md").write_text(f"# Rank fusion {number}\n\nHow scores are fused, part {number}.\n")
    (tmp_path / "sessions.yaml").write_text(PIPELINE)
    (tmp_path / "marked.yaml").write_text(PIPELINE.replace("session_dedup", "session_dedup, action: mark"))
    (tmp_path / "plain.yaml").write_text(PIPELINE.replace("session_dedup", "attribution"))
    return tmp_path


@pytest.fixture
def memory(root: Path) -> Iterator[Memory]:
    with Memory.open(root / "memory.db", str(root / "sessions.yaml"), root=root, environ={}, strict=True) as memory:
        assert len(memory.index([root]).created) == 4
        yield memory


def ask(memory: Memory, session: str, limit: int = 2, now: float = NOW) -> SearchResult:
    """Asks, and lets the session know what was served, as every door does."""
    result = memory.search("rank fusion", session=session, limit=limit, now=now, deadline_ms=None)
    assert memory.feedback.delivered(result) == ""
    return result


def keys(memory: Memory, session: str, limit: int = 2, now: float = NOW) -> list[str]:
    """The keys of an answer, with a mark where the text had been sent."""
    return [row.key + "*" * row.repeated for row in ask(memory, session, limit, now).results]


def evidence(memory: Memory) -> int:
    count = memory.session.database.reader().execute("SELECT count(*) FROM session_sent").get
    return int(count)


@pytest.mark.requirement("A2", "A2.saved")
def test_a_session_is_sent_no_text_twice_and_other_sessions_are(memory: Memory) -> None:
    first = ask(memory, "first")
    second = ask(memory, "first")
    assert [row.key for row in second.results] == [row.key for row in first.results] == ["0.md", "1.md"]
    assert [row.snippet for row in second.results] == ["", ""]
    assert [row.notes["already_sent"] for row in second.results] == ["0.md:1-3", "1.md:1-3"]
    assert second.notes.facts["deduplicated"] == {"already_sent": 2, "tokens_saved": 400}
    assert keys(memory, "first", 3) == ["0.md*", "1.md*", "2.md"]
    assert keys(memory, "second") == ["0.md", "1.md"]
    assert keys(memory, "first", 9, NOW + LIFE) == ["0.md", "1.md", "2.md", "3.md"]


@pytest.mark.requirement("A2")
def test_what_was_cut_off_before_it_reached_the_caller_is_served_again(memory: Memory) -> None:
    result = memory.search("rank fusion", session="s", limit=3, now=NOW, deadline_ms=None)
    memory.feedback.delivered(result.as_shown([result.results[0].snippet, result.results[1].snippet[:9]]), 2)
    assert keys(memory, "s", 3) == ["0.md*", "1.md", "2.md"]


@pytest.mark.requirement("A2")
def test_other_words_of_a_passage_and_other_passages_are_no_repeats(memory: Memory, root: Path) -> None:
    filler = " ".join(f"filler{number}" for number in range(90))
    (root / "long.md").write_text(
        f"# Lanterns\n\nZebrafish glow {filler} wombats dig.\n\n## Oil\n\nQuokkas burn oil. {filler}\n"
    )
    memory.index([root])

    def asked(words: str, **more: Any) -> ResultRow:
        result = memory.search(words, session="s", now=NOW, deadline_ms=None, **{"snippet": 200, **more})
        memory.feedback.delivered(result)
        return next(row for row in result.results if row.key == "long.md")

    assert not asked("zebrafish glow").repeated
    assert asked("zebrafish glow").notes["already_sent"].startswith("long.md:")
    assert "wombats" in asked("wombats").snippet
    assert "Quokkas" in asked("quokkas").snippet
    whole = asked("quokkas", content=True)
    assert not whole.repeated
    assert {"Zebrafish", "wombats", "Quokkas"} <= set(whole.content.split())
    # whoever has the whole memory has every passage of it, whichever words are asked for
    assert all(asked(words).repeated for words in ("filler77", "quokkas", "lanterns"))
    assert asked("quokkas", content=True).repeated


@pytest.mark.requirement("A2")
def test_a_memory_read_by_its_key_was_sent_as_far_as_it_was_shown(memory: Memory) -> None:
    memory.feedback.opened(replace(memory.documents.read("0.md"), text="# Rank"), session="s")
    memory.feedback.opened(memory.documents.read("1.md"), session="s")
    now = time.time()
    assert keys(memory, "s", now=now + 1) == ["0.md", "1.md*"]


@pytest.mark.requirement("A2")
def test_who_asks_for_repeats_gets_them(memory: Memory) -> None:
    assert keys(memory, "s") == ["0.md", "1.md"]
    again = memory.search("rank fusion", session="s", limit=2, now=NOW, deadline_ms=None, dedup=False)
    assert [row.key for row in again.results] == ["0.md", "1.md"]
    assert again.repeats == 0


@pytest.mark.requirement("A2.content")
def test_a_memory_that_changed_since_is_served_again(memory: Memory, root: Path) -> None:
    assert keys(memory, "s", 9) == ["0.md", "1.md", "2.md", "3.md"]
    (root / "2.md").write_text("# Rank fusion 2\n\nHow scores are fused now.\n")
    memory.index([root])
    assert [key for key in keys(memory, "s", 9) if not key.endswith("*")] == ["2.md"]


def test_no_session_and_a_pipeline_that_never_looks_back_leave_nothing_behind(memory: Memory, root: Path) -> None:
    assert keys(memory, "") == keys(memory, "") == ["0.md", "1.md"]
    with memory.using(str(root / "plain.yaml")) as plain:
        assert keys(plain, "s") == keys(plain, "s") == ["0.md", "1.md"]
    memory.explain.plan("rank fusion")
    assert ask(memory, "s", limit=1).results
    memory.status()
    assert evidence(memory) == 1


def test_a_pipeline_that_marks_repeats_serves_and_names_them(memory: Memory, root: Path) -> None:
    with memory.using(str(root / "marked.yaml")) as marking:
        assert [row.notes for row in ask(marking, "s").results] == [{}, {}]
        again = ask(marking, "s", 3).results
    assert [row.notes for row in again] == [{"already_sent": "0.md:1-3"}, {"already_sent": "1.md:1-3"}, {}]
    assert all(row.snippet for row in again)


def test_an_answer_that_cannot_be_noted_is_served_with_a_warning(memory: Memory) -> None:
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with memory.session.database.write():
            holding.set()
            done.wait(60)

    writer = threading.Thread(target=hold)
    writer.start()
    holding.wait(60)
    try:
        result = memory.search("rank fusion", session="s", limit=2, now=NOW, deadline_ms=None)
        warning = memory.feedback.delivered(result)
    finally:
        done.set()
        writer.join()
    assert [row.key for row in result.results] == ["0.md", "1.md"]
    assert warning.startswith("this answer could not be recorded in the session, so it may be repeated: ")
    assert evidence(memory) == 0
    assert keys(memory, "s") == ["0.md", "1.md"]


@pytest.mark.requirement("A2", "A4")
def test_asking_again_in_a_session_raises_no_false_alarm(root: Path) -> None:
    (root / "rules.md").write_text("---\nimportance_tier: constitutional\n---\n# Rules\n\nNever push on Fridays.\n")
    with Memory.open(root / "memory.db", root=root, environ={}, strict=True) as memory:
        memory.index([root])
        first, second = ask(memory, "s", 9), ask(memory, "s", 9)
    assert len(first.results) > 0
    assert [row.repeated for row in second.results] == [True] * len(first.results)
    assert second.notes.warnings == first.notes.warnings == ()


@pytest.mark.requirement("A7")
def test_sections_of_one_memory_are_handed_out_one_after_the_other(root: Path) -> None:
    (root / "plan.md").write_text(
        "# Plan\n\n<!-- ANCHOR:alpha -->\nRank fusion alpha.\n<!-- /ANCHOR:alpha -->\n\n"
        "<!-- ANCHOR:beta -->\nRank fusion beta.\n<!-- /ANCHOR:beta -->\n"
    )
    with Memory.open(root / "memory.db", root=root, environ={}, strict=True) as memory:
        memory.index([root])
        found = []
        for anchor in ("alpha", "beta"):
            result = memory.search("rank fusion", session="s", anchors=[anchor], now=NOW, deadline_ms=None)
            memory.feedback.delivered(result)
            found.append([row.key for row in result.results])
    assert ["plan.md" in keys for keys in found] == [True, True]
