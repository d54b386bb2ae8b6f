"""What selections taught, through the installed command."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.tables.sessions import selections
from speckit_memory.memory.store.tables.sessions.selections import Selection
from tests.server.doors import call

DAY = 86_400.0


def taught(root: Path) -> None:
    """The store as it is after the background work learned from a selection."""
    now = time.time()
    with Database.open(root / "memory.db") as database, database.write() as txn:
        [(memory,)] = rows(txn.connection, "SELECT id FROM memories WHERE key = 'docs/tone.md'")
        selections.learn(txn, memory, "zeppelin", now, now + 30 * DAY)
        seen = Selection("00ff00ff00ff00ff", memory, "opened", 5, now, now, "learned", "", ("zeppelin",))
        selections.note(txn, seen)


@pytest.mark.requirement("M12.undone", "M12.apart")
def test_what_was_learned_is_listed_with_what_taught_it_counts_behind_its_flag_and_is_forgotten(
    workspace: Path,
) -> None:
    taught(workspace)
    [phrase] = call(workspace, ["learned", "list", "--json"]).ok().json["phrases"]
    assert (phrase["key"], phrase["phrase"]) == ("docs/tone.md", "zeppelin")
    assert [(by["query"], by["use"], by["rank"]) for by in phrase["taught_by"]] == [("00ff00ff00ff00ff", "opened", 5)]
    assert "opened at rank 5, query 00ff00ff00ff00ff" in " ".join(call(workspace, ["learned", "list"]).out.split())

    def first(**environ: str) -> dict[str, object]:
        ran = call(workspace, ["search", "zeppelin", "--json", "--limit", "1"], env=environ)
        found: list[dict[str, object]] = ran.json["results"]
        return found[0] if found else {}

    assert first(SPECKIT_LEARN_FROM_SELECTION="true")["key"] == "docs/tone.md"
    assert "trigger" not in str(first())

    assert call(workspace, ["learned", "forget"]).status == 2  # nothing named, and not --all
    call(workspace, ["learned", "forget", "none.md", "--json"]).refused("E080")
    gone = call(workspace, ["learned", "forget", "--all", "--json"])
    assert [(one["key"], one["phrase"]) for one in gone.json["forgotten"]] == [("docs/tone.md", "zeppelin")]
    assert call(workspace, ["learned", "list", "--json"]).json["phrases"] == []
