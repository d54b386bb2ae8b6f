"""Summaries from the doors: made by `maintain` in a large store alone, shown where no passage matched, gone with their
text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from speckit_memory.engine import Memory
from speckit_memory.memory.indexing import Source
from speckit_memory.memory.indexing import summaries as job
from tests.server.doors import call
from tests.server.test_mcp_stdio import calls

RAIN = "It was a rainy day on which nobody came, and coffee was served in the small room at nine. "
RULE = (
    "---\nimportance_tier: constitutional\ntrigger_phrases: [journal rule]\n---\n"
    "# The journal goes before the cache\n\n"
    f"{RAIN * 12}\n\n## Rule\n\nThe cache writes the journal before any entry of the cache.\n\n"
    f"{' '.join(f'Room {n} has {n} chairs and a lamp.' for n in range(60))}\n\n"
    "Entries of the cache that the journal lacks are lost when the cache is killed.\n\n"
    "So the journal goes before the cache.\n"
)
SAID = "The cache writes the journal before any entry of the cache."


def filled(root: Path, count: int) -> Path:
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "rule.md").write_text(RULE)
    with Memory.open(root / "memory.db", root=root) as memory:
        memory.index_documents([Source(f"n{number}", f"note {number}") for number in range(count)])
    assert call(root, ["index", "docs"]).status == 0
    return root


def shown(root: Path) -> tuple[str, str, dict[str, Any]]:
    """What is shown of the rule: by its phrase, and in the answer to a question that it does not match."""
    matched, searched = calls(
        root, ("memory_match_triggers", {"prompt": "the journal rule"}), ("memory_search", {"query": "note"})
    )
    [row] = [row for row in searched["data"]["results"] if row["key"] == "docs/rule.md"]
    return matched["data"]["results"][0]["memory_text"], row["memory_text"], row.get("notes", {})


def made(root: Path) -> dict[str, Any]:
    done: dict[str, Any]
    [done] = [each for each in call(root, ["maintain", "--json"]).json["jobs"] if each["job"] == "summaries"]
    return done


@pytest.mark.requirement("I11.summaries")
@pytest.mark.usefixtures("exhaustive")
def test_a_large_store_has_summaries_where_no_passage_matched(tmp_path: Path) -> None:
    root = filled(tmp_path / "large", job.LARGE_STORE)
    assert made(root)["count"] == 1
    by_phrase, by_question, notes = shown(root)
    assert SAID in by_phrase
    assert SAID in by_question
    assert notes["shown"] == "summary"

    # a passage that matched says more about the question than a summary
    [found] = calls(root, ("memory_search", {"query": "how many chairs does room 41 have"}))
    [row] = [row for row in found["data"]["results"] if row["key"] == "docs/rule.md"]
    assert "chairs and a lamp" in row["memory_text"]
    assert "shown" not in row.get("notes", {})

    (root / "docs" / "rule.md").write_text(RULE.replace("journal before any", "ledger before any"))
    assert call(root, ["index", "docs"]).status == 0
    assert SAID not in "".join(shown(root)[:2])  # it was of another text
    assert made(root)["state"] == "not due"
    assert call(root, ["doctor"]).status == 0


@pytest.mark.requirement("I11.summaries")
def test_a_store_that_is_not_large_has_none(tmp_path: Path) -> None:
    root = filled(tmp_path / "small", 3)
    assert made(root)["count"] == 0
    assert SAID not in "".join(shown(root)[:2])


@pytest.mark.requirement("I11.summaries", "M1.migrations")
def test_a_run_goes_on_where_the_last_one_ended_and_follows_its_memories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "LARGE_STORE", 2)
    monkeypatch.setattr(job, "BATCH", 1)
    with Memory.open(tmp_path / "memory.db", root=tmp_path) as memory:
        memory.index_documents([Source(f"d{number}", RULE.replace("lamp", f"lamp{number}")) for number in range(30)])
        reader = memory.session.database.reader
        first, second, third = (
            next(done for done in memory.lifecycle.maintain().jobs if done.job == "summaries") for _ in range(3)
        )
        assert [(done.state, done.count) for done in (first, second, third)] == [
            ("unfinished", 20), ("ran", 10), ("not due", 0),
        ]  # fmt: skip
        assert reader().execute("SELECT count(*) FROM summaries").get == 30
        memory.deletions.delete("d3", confirm=True)
        assert reader().execute("SELECT count(*) FROM summaries").get == 29
        assert memory.session.database.check() == []
