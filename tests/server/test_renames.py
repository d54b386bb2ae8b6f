"""Files that are renamed, moved, exchanged and edited on the way: what was learned of them goes along."""

from __future__ import annotations

import os
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from speckit_memory.memory.store.file.guarding.queries import rows
from tests.server.doors import call
from tests.server.test_mcp_stdio import calls

pytestmark = pytest.mark.requirement("I8")

WAL = "docs/storage/wal.md"


def memories(root: Path) -> dict[str, dict[str, Any]]:
    """What the store holds of each memory that is to outlive a move, by key."""
    columns = "key, id, tier, m.confidence, m.validation_count, promoted_at"
    with closing(apsw.Connection(str(root / "memory.db"), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        found = rows(connection, f"SELECT {columns} FROM memories AS m LEFT JOIN promotions ON memory_id = id")
    names = [name.removeprefix("m.") for name in columns.split(", ")[1:]]
    return {row[0]: dict(zip(names, row[1:], strict=True)) for row in found}


def indexed(root: Path, *more: str) -> Any:
    return call(root, ["index", "docs", *more, "--json"]).ok().json


def moves(report: Any) -> list[tuple[str, str]]:
    return [(move["from"], move["to"]) for move in report["renamed"]]


def quiet(report: Any) -> bool:
    return not any(report[name] for name in ("created", "updated", "renamed", "vanished", "embedded", "cache_hits"))


@pytest.fixture
def judged(workspace: Path) -> tuple[Path, dict[str, Any]]:
    """A workspace in which one memory was judged, promoted and linked to, and what is listed of it."""
    (workspace / "docs" / "why.md").write_text(
        f"---\ncausalLinks: {{derived_from: [{WAL}]}}\n---\n# Why\n\nReaders must not wait for the writer.\n"
    )
    assert indexed(workspace)["links"] == 1
    useful = ("memory_validate", {"id": memories(workspace)[WAL]["id"], "wasUseful": True})
    *_, promoted = calls(workspace, *[useful] * 5, (useful[0], useful[1] | {"promote": True}))
    assert promoted["data"]["tier"] == "critical"
    return workspace, memories(workspace)[WAL]


def is_the_same(root: Path, key: str, before: dict[str, Any]) -> None:
    assert memories(root)[key] == before
    found = call(root, ["search", "computeMPAB", "--json"]).json["results"]
    assert (found[0]["key"], found[0]["id"]) == (key, before["id"])


def test_a_renamed_file_keeps_its_memory_with_everything_learned_of_it(judged: tuple[Path, dict[str, Any]]) -> None:
    root, before = judged
    (root / WAL).rename(root / "docs" / "log.md")

    dry = indexed(root, "--dry-run")
    report = indexed(root)

    assert moves(dry) == moves(report) == [(WAL, "docs/log.md")]
    assert (report["created"], report["updated"], report["vanished"]) == ([], [], [])
    assert (report["links"], report["problems"]) == (0, [])  # the link to the old place still means it
    is_the_same(root, "docs/log.md", before)
    context = calls(root, ("memory_search", {"query": "log.md"}))[0]["data"]["results"]
    assert before["id"] in [row["id"] for row in context]  # the words of the new path
    assert quiet(indexed(root))


def test_a_renamed_and_edited_file_keeps_its_memory(judged: tuple[Path, dict[str, Any]]) -> None:
    root, before = judged
    (root / "docs" / "storage").rename(root / "docs" / "store")
    edited = root / "docs" / "store" / "wal.md"
    edited.write_text(edited.read_text() + "Checkpoints run when nobody reads.\n")

    told = call(root, ["index", "docs"])

    assert "2 renamed" in told.out
    assert f"renamed: {WAL} -> docs/store/wal.md (edited, " in told.out
    is_the_same(root, "docs/store/wal.md", before)
    assert quiet(indexed(root))


def test_a_link_that_waits_is_told_only_when_no_memory_was_ever_there(judged: tuple[Path, dict[str, Any]]) -> None:
    root, _ = judged
    (root / WAL).rename(root / "docs" / "log.md")
    indexed(root)
    why = root / "docs" / "why.md"
    why.write_text(why.read_text().replace("must not", "do not"))
    report = indexed(root)
    assert (report["updated"], report["problems"]) == (["docs/why.md"], [])
    (root / WAL).write_text("# Another\n\nWhat lies at the old place now is what the link means.\n")
    assert indexed(root)["links"] == 1


def test_two_files_that_exchange_names_exchange_nothing_else(judged: tuple[Path, dict[str, Any]]) -> None:
    root, before = judged
    other, aside = root / "docs" / "tone.md", root / "aside"
    tone = memories(root)["docs/tone.md"]["id"]
    (root / WAL).rename(aside)
    other.rename(root / WAL)
    aside.rename(other)
    report = indexed(root)
    assert sorted(moves(report)) == [(WAL, "docs/tone.md"), ("docs/tone.md", WAL)]
    is_the_same(root, "docs/tone.md", before)
    assert memories(root)[WAL]["id"] == tone
    assert quiet(indexed(root))


def test_a_copy_is_a_memory_of_its_own(judged: tuple[Path, dict[str, Any]]) -> None:
    root, before = judged
    (root / "docs" / "copy.md").write_bytes((root / WAL).read_bytes())
    report = indexed(root)
    assert (report["created"], report["renamed"], report["aliases"]) == (
        ["docs/copy.md"], [], [["docs/copy.md", WAL]],
    )  # fmt: skip
    assert memories(root)[WAL] == before
    assert memories(root)["docs/copy.md"]["promoted_at"] is None


def test_a_file_that_leaves_the_folder_of_the_run_is_followed(judged: tuple[Path, dict[str, Any]]) -> None:
    root, before = judged
    (root / "notes").mkdir()
    (root / WAL).rename(root / "notes" / "wal.md")
    report = call(root, ["index", "notes", "--json"]).json  # says nothing of docs
    assert moves(report) == [(WAL, "notes/wal.md")]
    is_the_same(root, "notes/wal.md", before)


def test_a_file_that_is_saved_at_its_new_place_is_followed(judged: tuple[Path, dict[str, Any]]) -> None:
    root, before = judged
    (root / WAL).rename(root / "docs" / "log.md")
    [saved] = calls(root, ("memory_save", {"filePath": "docs/log.md"}))
    assert saved["data"]["id"] == before["id"], saved
    is_the_same(root, "docs/log.md", before)


def test_the_scan_of_an_agent_follows_as_well(judged: tuple[Path, dict[str, Any]]) -> None:
    root, before = judged
    (root / WAL).rename(root / "docs" / "log.md")
    [report] = calls(root, ("memory_index_scan", {}))
    assert (report["data"]["renamed"], report["data"]["deleted"]) == (1, 0)
    assert [(move["from"], move["to"]) for move in report["data"]["moves"]] == [(WAL, "docs/log.md")]
    is_the_same(root, "docs/log.md", before)


@pytest.mark.usefixtures("processes")
def test_a_folder_of_a_thousand_files_is_renamed(tmp_path: Path) -> None:
    old = tmp_path / "docs" / "old"
    old.mkdir(parents=True)
    for number in range(1000):
        text = "# Empty\n\nTo be written.\n" if number % 10 == 0 else f"# Note {number}\n\nWords of note {number}.\n"
        (old / f"{number}.md").write_text(text)
    indexed(tmp_path)
    before = memories(tmp_path)
    old.rename(old.with_name("new"))
    report = indexed(tmp_path)
    assert len(moves(report)) == 1000
    assert (report["created"], report["vanished"]) == ([], [])
    assert memories(tmp_path) == {key.replace("/old/", "/new/"): each for key, each in before.items()}
    assert quiet(indexed(tmp_path))


def git(root: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", "-C", root, *who, *arguments], check=True, capture_output=True, env=env)


@pytest.mark.usefixtures("processes")
def test_a_checkout_to_and_fro_leaves_everything_as_it_was(judged: tuple[Path, dict[str, Any]]) -> None:
    root, before = judged
    git(root, "init", "-b", "main")
    git(root, "add", "docs")
    git(root, "commit", "-m", "one")
    git(root, "checkout", "-b", "other")
    git(root, "mv", WAL, "docs/log.md")
    git(root, "commit", "-m", "two")
    indexed(root)
    first = memories(root)
    for branch, key in (("main", WAL), ("other", "docs/log.md"), ("main", WAL), ("other", "docs/log.md")):
        git(root, "checkout", branch)
        report = indexed(root)
        assert [new for _, new in moves(report)] == [key]
        is_the_same(root, key, before)
    assert {key: row["id"] for key, row in memories(root).items()} == {key: row["id"] for key, row in first.items()}
