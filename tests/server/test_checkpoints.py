"""Checkpoints through the installed console script: kept, listed, brought back and deleted."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from mcp import Client
from storing.contents import contents

from speckit_memory.engine import Memory
from tests.server.doors import COMMAND, call, environment, with_client

ASKED = ("why are ranks fused", "computeMPAB", "quokka cache", "検索の設計", "backups")
DERIVED = {
    "changes", "job_runs", "job_lease", "uncounted_folders", "sqlite_sequence", "id_sequence", "meta",
    "embedding_cache", "embedding_models", "migrations", "graph_state",
}  # fmt: skip
"""What belongs to no memory, or is made anew."""


def answers(root: Path) -> list[list[tuple[int, str, float]]]:
    """What a new process would answer; no use is counted."""
    with Memory.open(root / "memory.db", root=root, environ={}, create=False, shadows=False) as memory:
        found = [memory.search(query, limit=20, deadline_ms=None).results for query in ASKED]
    return [[(row.id, row.key, row.score) for row in rows] for rows in found]


def state(root: Path) -> dict[str, list[str]]:
    """All rows that belong to memories, but for the pages of the full-text table, which are laid out as they came."""
    return {
        name: rows
        for name, rows in contents(root / "memory.db").items()
        if name not in DERIVED and not name.startswith(("memory_fts", "surface_fts", "chunk_vectors_"))
    }


def ruined(root: Path) -> None:
    """Some memories go, one comes, one changes."""
    (root / "docs" / "fusion.md").unlink()
    (root / "docs" / "zebra.md").write_text("# Zebra\n\nA zebra at the backups.\n")
    (root / "docs" / "tone.md").write_text("# Tone\n\nSomething else altogether.\n")
    assert call(root, ["index", "docs", "--json"]).status == 0


@pytest.mark.requirement("M14", "M14.modes")
def test_a_checkpoint_is_made_listed_restored_and_deleted(workspace: Path) -> None:
    made = call(workspace, ["checkpoint", "create", "first", "--metadata", '{"why": "a test"}', "--json"]).ok()
    about = made.json["checkpoint"]
    assert (about["name"], about["folder"], about["metadata"], about["memories"]) == ("first", "", {"why": "a test"}, 6)
    assert (about["problem"], about["faults"], made.json["dropped"]) == (None, [], [])
    answered = answers(workspace)
    ruined(workspace)
    assert answers(workspace) != answered

    restored = call(workspace, ["checkpoint", "restore", "first", "--replace", "--json"]).ok()
    counts = {key: restored.json[key] for key in ("returned", "set_back", "removed", "pending")}
    assert counts == {"returned": 1, "set_back": 5, "removed": 1, "pending": 0}
    assert answers(workspace) == answered
    assert call(workspace, ["doctor"]).status == 0

    # the state before the restore was kept too, and can be brought back
    names = [one["name"] for one in call(workspace, ["checkpoint", "list", "--json"]).json["checkpoints"]]
    assert names == [restored.json["before"], "first"]
    assert call(workspace, ["checkpoint", "restore", restored.json["before"], "--replace", "--no-backup"]).status == 0
    assert "docs/zebra.md" in {key for found in answers(workspace) for _, key, _ in found}

    assert call(workspace, ["checkpoint", "delete", "first", "--json"]).json["deleted"] == "first"
    assert "first" not in call(workspace, ["checkpoint", "list"]).out.split()
    assert call(workspace, ["checkpoint", "restore", "first"]).status == 2


@pytest.mark.requirement("M14", "M14.rows")
def test_every_row_comes_back_into_an_empty_store_and_every_answer_is_equal(workspace: Path) -> None:
    for query in ASKED:
        assert call(workspace, ["search", query, "--session", "s"]).status == 0
    assert call(workspace, ["checkpoint", "create", "all"]).status == 0
    before = state(workspace)
    for file in workspace.glob("memory.db*"):
        if file.is_file():
            file.unlink()
    assert call(workspace, ["checkpoint", "restore", "all"]).status == 0
    assert state(workspace) == before
    after = answers(workspace)
    assert call(workspace, ["checkpoint", "restore", "all", "--replace"]).status == 0
    assert answers(workspace) == after
    assert call(workspace, ["doctor"]).status == 0


@pytest.mark.requirement("M14", "M14.modes")
def test_what_is_merged_comes_back_and_what_is_newer_stays(workspace: Path) -> None:
    assert call(workspace, ["checkpoint", "create", "first"]).status == 0
    ruined(workspace)
    ran = call(workspace, ["checkpoint", "restore", "first", "--json"])
    assert (ran.json["returned"], ran.json["set_back"], ran.json["removed"], ran.json["before"]) == (1, 5, 0, None)
    [rows] = [call(workspace, ["search", "zebra", "--json"]).json["results"]]
    assert rows[0]["key"] == "docs/zebra.md"
    [tone] = call(workspace, ["search", "how we write to one another", "--limit", "1", "--json"]).json["results"]
    assert tone["key"] == "docs/tone.md"
    assert "how we write to one another" in tone["snippet"]
    assert call(workspace, ["doctor"]).status == 0


@pytest.mark.requirement("M14", "M14.scope")
def test_a_checkpoint_of_a_folder_touches_that_folder_alone(workspace: Path) -> None:
    made = call(workspace, ["checkpoint", "create", "storage", "--folder", "docs/storage", "--json"])
    assert (made.json["checkpoint"]["memories"], made.json["checkpoint"]["folder"]) == (2, "docs/storage")
    (workspace / "docs" / "storage" / "wal.md").unlink()
    ruined(workspace)
    ran = call(workspace, ["checkpoint", "restore", "storage", "--replace", "--json"])
    assert [ran.json[key] for key in ("returned", "set_back", "removed")] == [1, 1, 0]
    keys = {key for found in answers(workspace) for _, key, _ in found}
    assert {"docs/storage/wal.md", "docs/zebra.md"} <= keys
    assert "docs/fusion.md" not in keys
    empty = call(workspace, ["checkpoint", "create", "none", "--folder", "docs/nothing", "--json"])
    assert empty.json["error"]["code"] == "E080"
    listed = call(workspace, ["checkpoint", "list", "--folder", "docs/storage", "--json"]).json["checkpoints"]
    assert {one["folder"] for one in listed} == {"docs/storage", ""}


@pytest.mark.requirement("M14")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["create", "../x"], "E030"),
        (["create", "x" * 101], "E032"),
        (["create", "FIRST"], "E063"),
        (["create", "new", "--metadata", "[]"], "E030"),
        (["create", "new", "--metadata", json.dumps({"a": "x" * 10_000})], "E032"),
        (["restore", "frist"], "E060"),
        (["delete", "frist"], "E060"),
    ],
)
def test_what_cannot_be_done_is_told(workspace: Path, arguments: list[str], code: str) -> None:
    assert call(workspace, ["checkpoint", "create", "first"]).status == 0
    call(workspace, ["checkpoint", *arguments, "--json"]).refused(code)
    listed = call(workspace, ["checkpoint", "list", "--json"]).json["checkpoints"]
    assert [one["name"] for one in listed] == ["first"]


def torn(workspace: Path, leaf: dict[str, Any]) -> str:
    file = workspace / "memory.db.checkpoints" / leaf["file"]
    with file.open("r+b") as written:
        written.seek(5000)
        written.write(b"\x00\xff" * 64)
    return "digest"


def cut_off(workspace: Path, leaf: dict[str, Any]) -> str:
    file = workspace / "memory.db.checkpoints" / leaf["file"]
    os.truncate(file, 8192)
    return "8192 bytes"


def lost(workspace: Path, leaf: dict[str, Any]) -> str:
    (workspace / "memory.db.checkpoints" / leaf["file"]).unlink()
    return "cannot be read"


def without_its_leaf(workspace: Path, leaf: dict[str, Any]) -> str:
    (workspace / "memory.db.checkpoints" / f"{leaf['name']}.json").write_text('{"name": "fir')
    return "torn"


def of_tomorrow(workspace: Path, leaf: dict[str, Any]) -> str:
    from speckit_memory.memory.store.checkpoints.folder import digest

    file = workspace / "memory.db.checkpoints" / leaf["file"]
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute("INSERT INTO migrations VALUES ('9999_tomorrow', '2099-01-01T00:00:00Z')")
    changed = leaf | {"sha256": digest(file), "bytes": file.stat().st_size}
    (workspace / "memory.db.checkpoints" / f"{leaf['name']}.json").write_text(json.dumps(changed))
    return "9999_tomorrow"


def of_another_store(workspace: Path, leaf: dict[str, Any]) -> str:
    (workspace / "memory.db.checkpoints" / f"{leaf['name']}.json").write_text(json.dumps(leaf | {"store_id": "0" * 32}))
    return "another store"


@pytest.mark.requirement("M14", "M14.refused")
@pytest.mark.parametrize("spoil", [torn, cut_off, lost, without_its_leaf, of_tomorrow, of_another_store])
def test_what_cannot_be_restored_is_told_and_changes_nothing(
    workspace: Path, spoil: Callable[[Path, dict[str, Any]], str]
) -> None:
    assert call(workspace, ["checkpoint", "create", "first"]).status == 0
    ruined(workspace)
    leaf = json.loads((workspace / "memory.db.checkpoints" / "first.json").read_text())
    why = spoil(workspace, leaf)
    before = contents(workspace / "memory.db")
    for replace in ([], ["--replace", "--no-backup"]):
        ran = call(workspace, ["checkpoint", "restore", "first", "--json", *replace]).ended(1)
        assert ran.json["error"]["code"] == ("E025" if spoil is of_tomorrow else "E061")
        assert why in ran.json["error"]["message"]
    assert contents(workspace / "memory.db") == before
    assert call(workspace, ["checkpoint", "delete", "first"]).status == 0
    assert list((workspace / "memory.db.checkpoints").glob("first*")) == []


@pytest.mark.requirement("M14")
def test_one_of_another_store_is_taken_with_ids_of_its_own_where_that_is_meant(workspace: Path) -> None:
    assert call(workspace, ["checkpoint", "create", "first"]).status == 0
    of_another_store(workspace, json.loads((workspace / "memory.db.checkpoints" / "first.json").read_text()))
    ruined(workspace)
    ran = call(workspace, ["checkpoint", "restore", "first", "--foreign", "--json"])
    assert (ran.status, ran.json["returned"], ran.json["set_back"]) == (0, 1, 5)
    [fusion] = call(workspace, ["search", "why are ranks fused", "--limit", "1", "--json"]).json["results"]
    assert fusion["key"] == "docs/fusion.md"
    assert call(workspace, ["doctor"]).status == 0


@pytest.mark.requirement("M14")
def test_the_oldest_go_beyond_what_the_workspace_keeps(workspace: Path) -> None:
    (workspace / ".speckit").mkdir(exist_ok=True)
    (workspace / ".speckit" / "config.yaml").write_text("checkpoints: {keep: 2}\n")
    assert [call(workspace, ["checkpoint", "create", name, "--json"]).json["dropped"] for name in "abc"] == [
        [], [], ["a"],
    ]  # fmt: skip
    # what is to be restored is spared by the checkpoint that is made before
    call(workspace, ["checkpoint", "restore", "b", "--replace", "--json"]).ok()
    (workspace / ".speckit" / "config.yaml").write_text("checkpoints: {keep: 0, days: x}\n")
    refused = call(workspace, ["checkpoint", "create", "d", "--json"])
    assert [one["code"] for one in refused.json["errors"]] == ["E114", "E114"]


@pytest.mark.requirement("M14")
def test_a_folder_that_may_not_be_written_to_is_told(workspace: Path) -> None:
    (workspace / "memory.db.checkpoints").write_text("in the way")
    call(workspace, ["checkpoint", "create", "first", "--json"]).refused("E062", 1)
    assert answers(workspace)


def with_little_room(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Runs a command that may write files of 64 KB: no more room is what a full disk has."""
    script = 'ulimit -f 64; trap "" XFSZ; exec "$@"'
    command: list[str] = ["bash", "-c", script, "bash", str(COMMAND), "checkpoint", *arguments, "--json"]
    return subprocess.run(command, capture_output=True, env=environment(root), cwd=root, check=False)


@pytest.mark.requirement("M14", "M14.killed")
@pytest.mark.usefixtures("processes")
def test_a_full_disk_leaves_the_store_and_no_checkpoint(workspace: Path) -> None:
    made = with_little_room(workspace, "create", "first")
    assert made.returncode == 1, made.stdout
    assert json.loads(made.stdout)["error"]["code"] == "E062"
    left = [file.name for file in (workspace / "memory.db.checkpoints").iterdir()]
    assert left == [".lock"]
    assert call(workspace, ["checkpoint", "create", "first"]).status == 0
    ruined(workspace)
    before = contents(workspace / "memory.db")
    restored = with_little_room(workspace, "restore", "first", "--replace", "--no-backup")
    assert restored.returncode == 1, restored.stdout
    assert contents(workspace / "memory.db") == before
    assert call(workspace, ["doctor"]).status == 0


@pytest.mark.requirement("M14", "M14.running")
def test_a_server_that_is_running_goes_on_with_what_came_back(workspace: Path) -> None:
    assert call(workspace, ["checkpoint", "create", "first"]).status == 0

    async def work(client: Client) -> None:
        async def keys(query: str) -> list[str]:
            result = await client.call_tool("memory_search", {"query": query, "enableDedup": False})
            assert isinstance(result.structured_content, dict)
            return [row["key"] for row in result.structured_content["data"]["results"]]

        assert (await keys("why are ranks fused"))[0] == "docs/fusion.md"
        ruined(workspace)
        assert "docs/fusion.md" not in await keys("why are ranks fused")
        assert (await keys("zebra"))[0] == "docs/zebra.md"
        assert call(workspace, ["checkpoint", "restore", "first", "--replace"]).status == 0
        assert (await keys("why are ranks fused"))[0] == "docs/fusion.md"
        assert "docs/zebra.md" not in await keys("zebra")

    with_client(workspace, work)


@pytest.mark.requirement("M14", "M14.modes")
@pytest.mark.parametrize("mode", [[], ["--replace"]])
@pytest.mark.parametrize("taken", [False, True])
def test_a_memory_whose_file_was_renamed_since_is_set_back_where_it_lies(
    workspace: Path, mode: list[str], taken: bool
) -> None:
    def known(key: str) -> tuple[int, float, int]:
        with Memory.open(workspace / "memory.db", root=workspace, environ={}, shadows=False) as memory:
            found = memory.get(key)
            return found.id, found.confidence, len(memory.graph.history(key))

    for at, key in enumerate(("docs/fusion.md", "docs/tone.md")):
        call(workspace, ["links", "add", key, "supports", "docs/cjk.md", "--strength", f"0.{at + 4}"]).ok()
    before = known("docs/fusion.md")
    assert call(workspace, ["checkpoint", "create", "first"]).status == 0
    old, new = workspace / "docs/fusion.md", workspace / "docs/storage/ranks.md"
    old.rename(new)
    assert len(call(workspace, ["index", "docs", "--json"]).json["renamed"]) == 1
    new.write_text("# Something else\n\nNothing of the old text stays.\n")
    if taken:
        old.write_text("# Newcomer\n\nA zebra took the name.\n")
    assert call(workspace, ["index", "docs"]).status == 0
    with Memory.open(workspace / "memory.db", root=workspace, environ={}) as memory:
        memory.learning.validate("docs/storage/ranks.md", useful=True)

    restored = call(workspace, ["checkpoint", "restore", "first", *mode, "--json"]).ok()
    assert (restored.json["returned"], restored.json["set_back"]) == (0, 6)
    assert known("docs/storage/ranks.md") == before
    [found] = call(workspace, ["search", "why are ranks fused", "--limit", "1", "--json"]).json["results"]
    assert (found["id"], found["key"]) == (before[0], "docs/storage/ranks.md")
    assert call(workspace, ["doctor"]).status == 0

    indexed = call(workspace, ["index", "docs", "--json"])
    assert (indexed.json["vanished"], indexed.json["created"]) == ([], [])
    assert known("docs/storage/ranks.md") == before
    removed = {"key": "docs/fusion.md", "reason": "removed by a restored checkpoint"}
    assert (removed in indexed.json["ignored"]) == bool(taken and mode)
    if taken and not mode:
        assert known("docs/fusion.md")[0] != before[0]
