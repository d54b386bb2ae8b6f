"""What saving says through the doors: the verdict, what was left out, and how good the document is."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from speckit_memory import Memory
from speckit_memory.engine.api.documents import DocumentService
from tests.server.doors import call
from tests.server.test_life import stored
from tests.server.test_mcp_stdio import calls

OLD = "# Cache of answers\n\nThe cache of answers lives in Redis and is kept for one hour by every worker.\n"
NEW = "# Cache of answers\n\nThe cache of answers no longer lives in Redis and is kept for one hour by every worker.\n"
SECRET = "ghp_" + "a1B2c3D4e5" * 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "old.md").write_text(OLD)
    (tmp_path / "docs" / "new.md").write_text(NEW)
    (tmp_path / "docs" / "key.md").write_text(f"# Deploying\n\nThe token is {SECRET} here.\n")
    return tmp_path


@pytest.mark.requirement("M6.supersede", "M6.override", "T4")
def test_memory_save_tells_the_verdict_with_its_evidence_and_acts_on_it(folder: Path) -> None:
    first, foreseen, saved, found = calls(
        folder,
        ("memory_save", {"filePath": "docs/old.md"}),
        ("memory_save", {"filePath": "docs/new.md", "dryRun": True}),
        ("memory_save", {"filePath": "docs/new.md"}),
        ("memory_search", {"query": "where does the cache of answers live"}),
    )

    assert first["data"]["verdict"]["kind"] == "create"
    for answer in (foreseen, saved):
        verdict = answer["data"]["verdict"]
        assert (verdict["kind"], verdict["key"], verdict["pattern"]) == ("supersede", "docs/old.md", "negation")
        assert verdict["similarity"] > 0.85
    assert foreseen["data"]["verdict"]["done"] == ""
    assert saved["data"]["verdict"]["done"].startswith("docs/old.md is marked as superseded")
    by_key = {row["key"]: row for row in found["data"]["results"]}
    assert [other["key"] for other in by_key["docs/old.md"]["notes"]["superseded_by"]] == ["docs/new.md"]


@pytest.mark.requirement("I9.secrets", "I10.score", "I4.memory")
def test_memory_save_and_index_tell_what_was_left_out_and_never_the_secret(folder: Path) -> None:
    [saved] = calls(folder, ("memory_save", {"filePath": "docs/key.md"}))
    ran = call(folder, ["index", "docs", "--force", "--json"])
    shown = call(folder, ["index", "docs", "--force"])

    assert saved["data"]["redacted"] == ran.json["redacted"] == {"github token": 1}
    assert saved["data"]["quality"]["passed"] is False
    assert saved["data"]["memory_type"] == {"kind": "declarative", "by": "default", "confidence": 0.5}
    assert "secrets left out of the store: 1 github token" in shown.out
    assert SECRET not in str(saved) + ran.out + ran.err + shown.out + shown.err


@pytest.mark.requirement("M6.index")
def test_index_tells_verdicts_of_new_documents(folder: Path) -> None:
    (folder / "docs" / "new.md").rename(folder / "later.md")
    call(folder, ["index", "docs"])
    ran = call(folder, ["index", "later.md", "--json"])

    assert ran.json["verdicts"]["later.md"]["kind"] == "supersede"


@pytest.mark.requirement("I9.recalled")
def test_an_answer_that_was_pasted_into_a_file_is_not_remembered_again(folder: Path) -> None:
    call(folder, ["index", "docs"])
    answer = call(folder, ["search", "cache of answers"]).out
    (folder / "docs" / "pasted.md").write_text(f"# What I found\n\nIt is this:\n\n{answer}")

    with Memory.open(folder / "memory.db", root=folder) as memory:
        saved = memory.documents.save(folder / "docs" / "pasted.md")
        assert len(saved.intake.recalled) >= 2
        rows = memory.search("Redis kept for one hour by every worker", limit=10).results
    assert "docs/pasted.md" not in [row.key for row in rows if "Redis" in row.snippet]


@pytest.mark.requirement("M7.withdrawn", "M7.history", "M7.undo")
@pytest.mark.parametrize("door", ["memory_save", "index"])
@pytest.mark.parametrize(
    ("key", "text"), [("docs/new.md", OLD), ("docs/old.md", NEW), ("docs/new.md", "# Cats\n\nCats sleep in the sun.\n")]
)  # fmt: skip
def test_a_mark_of_superseding_goes_when_an_edit_takes_its_reason_away(
    folder: Path, door: str, key: str, text: str
) -> None:
    marked = "SELECT count(*) FROM causal_edges"
    calls(folder, ("memory_save", {"filePath": "docs/old.md"}), ("memory_save", {"filePath": "docs/new.md"}))
    (folder / key).write_text((folder / key).read_text() + "\nSee the wiki.\n")
    if door == "index":
        assert call(folder, ["index", "docs"]).status == 0
    else:
        calls(folder, ("memory_save", {"filePath": key}))
    assert stored(folder, marked) == [(1,)]  # its reason stands

    (folder / key).write_text(text + "\nSee the wiki, page two.\n")
    if door == "index":
        verdict = call(folder, ["index", "docs", "--json"]).json["verdicts"][key]
    else:
        [saved] = calls(folder, ("memory_save", {"filePath": key, "force": True}))
        verdict = saved["data"]["verdict"]
    assert "docs/old.md is no longer marked as superseded by docs/new.md" in verdict["done"]
    assert stored(folder, marked) == [(0,)]
    history = call(folder, ["links", "history", "--json"]).json["changes"]
    assert [(change["changed_by"], change["old"], change["new"]) for change in history] == [
        ("prediction_error", 0.5, None), ("prediction_error", None, 0.5),
    ]  # fmt: skip
    assert call(folder, ["links", "undo", "2"]).status == 0
    assert stored(folder, marked) == [(1,)]


@pytest.mark.requirement("M7.told", "M7.twenty")
def test_declared_links_beyond_twenty_are_told(tmp_path: Path) -> None:
    for number in range(22):
        (tmp_path / f"{number:02}.md").write_text(f"# Note {number}\n\nAbout {number} things.\n")
    links = ", ".join(f"{number:02}.md" for number in range(22))
    (tmp_path / "all.md").write_text(f"---\ncausalLinks:\n  derived_from: [{links}]\n---\n# All\n\nEvery note.\n")
    ran = call(tmp_path, ["index", ".", "--json"])
    assert (ran.status, ran.json["links"]) == (0, 20)
    told = [problem for problem in ran.json["problems"] if problem["code"] == "E094"]
    assert [problem["message"] for problem in told] == [
        f"'all.md derived_from {number}.md' is left out: a memory has at most 20 links" for number in (20, 21)
    ]


@pytest.mark.requirement("T4")
def test_a_text_that_is_saved_once_more_under_another_name_is_refused_and_makes_no_file(workspace: Path) -> None:
    saved = ["save", "--title", "Voles", "--content", "Voles dig where the snow lies long."]
    assert call(workspace, saved).status == 0
    again = call(workspace, [*saved, "memories/other.md"])
    assert (again.status, "E092" in again.err) == (2, True)
    assert not (workspace / "memories" / "other.md").exists()
    assert call(workspace, [*saved, "memories/other.md", "--force"]).status == 0


@pytest.mark.requirement("T4.repeated")
def test_a_save_that_was_killed_before_the_store_had_it_is_completed_by_the_next(workspace: Path) -> None:
    text = "The cache of answers lives in Redis.\n"
    with Memory.open(workspace / "memory.db", root=workspace) as memory:
        with patch.object(DocumentService, "save", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
            memory.documents.write(text, title="Cache of answers", tier="important")
        [file] = (workspace / "memories").iterdir()

        other = memory.documents.write(text, title="Cache of answers", tier="normal", force=True)
        saved = memory.documents.write(text, title="Cache of answers", tier="important", force=True)

        assert (workspace / other.key).name == "cache-of-answers-2.md", "it declares something else"
        assert (saved.outcome, workspace / saved.key) == ("created", file)
        assert len(list((workspace / "memories").iterdir())) == 2
