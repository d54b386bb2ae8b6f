"""Memories whose files are away: nothing finds them, and nothing of them is lost until their files are back."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Literal
from unicodedata import normalize

import apsw
import pytest

from speckit_memory.memory.store.file.guarding.queries import rows
from tests.server.doors import call
from tests.server.test_mcp_stdio import calls

pytestmark = pytest.mark.requirement("I8", "I8.absent")

WAL = "docs/storage/wal.md"
BACKUP = "docs/storage/backup.md"
LEARNED = (
    "SELECT id, key, tier, confidence, validation_count, stability, difficulty, review_count, expires_at "
    "FROM memories ORDER BY id",
    "SELECT source_id, target_id, relation, created_by FROM causal_edges ORDER BY id",
    "SELECT memory_id, kind, judged_at FROM judgements ORDER BY id",
    "SELECT session, memory_id, attention FROM working_memory ORDER BY 1, 2",
    "SELECT source_id, target_id, changed_by FROM edge_history ORDER BY id",
)
LFS = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)
Normal = Literal["NFC", "NFD"]
Away = Callable[[Path], Callable[[], object]]
"""Takes the file of a memory away, and returns what brings it back."""


def learned(root: Path) -> list[list[Any]]:
    """What a store has learned of its memories."""
    with closing(apsw.Connection(str(root / "memory.db"), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return [rows(connection, sql) for sql in LEARNED]


def index(root: Path, *arguments: str) -> Any:
    return call(root, ["index", *(arguments or ("docs",)), "--json"]).ok().json


def found(root: Path) -> dict[str, list[str]]:
    """The keys that each way of finding memories tells of."""
    listed, searched, matched, stored = calls(
        root,
        ("memory_list", {"limit": 50}),
        ("memory_search", {"query": "the store runs in WAL mode with a write-ahead log"}),
        ("memory_match_triggers", {"prompt": "how does reciprocal rank fusion and the wal trigger work"}),
        ("memory_stats", {}),
    )
    return {
        "list": [row["key"] for row in listed["data"]["memories"]],
        "search": [row["key"] for row in searched["data"]["results"]],
        "triggers": [row["key"] for row in matched["data"]["results"]],
        "stats": [f"{row['folder']}: {row['memories']}" for row in stored["data"]["folders"]],
    }


@pytest.fixture
def known(workspace: Path) -> Path:
    """A workspace with an indexed store that has learned something of its memories."""
    (workspace / WAL).write_text(
        "---\ntrigger_phrases: [wal trigger]\n---\n# Write-ahead log\n\nThe store runs SQLite in WAL mode.\n"
    )
    index(workspace)
    calls(
        workspace,
        ("memory_validate", {"id": WAL, "wasUseful": True, "sessionId": "work"}),
        ("memory_causal_link", {"sourceId": WAL, "targetId": BACKUP, "relation": "supports"}),
        ("memory_causal_link", {"sourceId": "docs/tone.md", "targetId": WAL, "relation": "supports"}),
        ("memory_search", {"key": WAL, "sessionId": "work"}),
    )
    return workspace


def deleted(root: Path) -> Callable[[], object]:
    text = (root / WAL).read_bytes()
    (root / WAL).unlink()
    return lambda: (root / WAL).write_bytes(text)


def absent(root: Path) -> Callable[[], object]:
    """Takes the file away and has a run notice it."""
    back = deleted(root)
    index(root)
    return back


def written_anew(root: Path) -> Callable[[], object]:
    back = deleted(root)

    def written() -> None:
        back()
        os.utime(root / WAL, ns=(5, 5))

    return written


def folder_renamed(root: Path) -> Callable[[], object]:
    (root / "docs/storage").rename(root / "docs/.storage")
    return lambda: (root / "docs/.storage").rename(root / "docs/storage")


def source_gone(root: Path) -> Callable[[], object]:
    (root / "docs").rename(root / "elsewhere")
    return lambda: (root / "elsewhere").rename(root / "docs")


def unmounted(root: Path) -> Callable[[], object]:
    back = source_gone(root)
    (root / "docs").mkdir()
    return back  # a folder may take the place of an empty one


def excluded(root: Path) -> Callable[[], object]:
    (root / ".gitignore").write_text("storage/\n")
    return (root / ".gitignore").unlink


def not_fetched(root: Path) -> Callable[[], object]:
    text = (root / WAL).read_bytes()
    (root / WAL).write_text(LFS)
    return lambda: (root / WAL).write_bytes(text)


def a_folder_in_its_place(root: Path) -> Callable[[], object]:
    back = deleted(root)
    (root / WAL).mkdir()

    def put_back() -> None:
        (root / WAL).rmdir()
        back()

    return put_back


WAYS = [deleted, written_anew, folder_renamed, source_gone, unmounted, excluded, not_fetched, a_folder_in_its_place]


@pytest.mark.parametrize("away", WAYS, ids=lambda way: way.__name__)
def test_a_memory_whose_file_is_away_is_found_by_nothing_and_as_it_was_once_it_is_back(known: Path, away: Away) -> None:
    before = learned(known)
    back = away(known)
    report = index(known)

    assert (WAL in report["absent"], report["deleted"], report["created"]) == (True, [], [])
    assert not [name for name, keys in found(known).items() if WAL in keys]
    assert index(known)["vanished"] == [], "it is told of as long as it is away, and is new but once"

    back()
    again = index(known)

    assert (WAL in again["returned"], again["absent"], again["created"]) == (True, [], [])
    assert learned(known) == before
    assert [name for name, keys in found(known).items() if WAL in keys] == ["list", "search", "triggers"]


def test_a_branch_without_memories_costs_nothing_that_was_learned(known: Path, processes: None) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", known, "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True)

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "nothing yet")
    git("branch", "bare")
    git("add", "docs")
    git("commit", "-q", "-m", "memories")
    before = learned(known)

    git("checkout", "-q", "bare")
    assert "absent: 6 memories without their files" in call(known, ["index", "."]).ok().out
    assert call(known, ["list", "--json"]).json["total"] == 0

    git("checkout", "-q", "main")
    assert "back: 6 memories taken up again" in call(known, ["index", "."]).out
    assert learned(known) == before


def test_a_locale_that_cannot_spell_a_name_costs_nothing(known: Path, processes: None) -> None:
    (known / "docs/café.md").write_text("# Café\n\nWhere the wombats meet.\n")
    index(known)
    before = learned(known)

    ran = call(
        known, ["index", "docs"], {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, spawned=True
    ).ok()
    assert "nothing has changed" in ran.out
    assert learned(known) == before


def test_one_line_tells_of_them_by_both_doors(known: Path) -> None:
    (known / "docs/storage").rename(known / "gone")
    printed = " ".join(call(known, ["index", "docs"]).out.split())
    assert "nothing has changed" not in printed
    [scanned] = calls(known, ("memory_index_scan", {"specFolder": "docs"}))
    line = (
        f"absent: 2 memories without their files ({BACKUP}, {WAL}): no search finds them; kept for 90 days with all "
        "that was learned, and taken up again when the files are back"
    )

    assert line in printed
    assert (scanned["hints"], scanned["data"]["absent"], scanned["data"]["deleted"]) == ([line], 2, 0)

    (known / "gone").rename(known / "docs/storage")
    [back] = calls(known, ("memory_index_scan", {"specFolder": "docs"}))
    assert back["hints"] == [f"back: 2 memories taken up again with all that was learned ({BACKUP}, {WAL})"]
    assert (back["data"]["absent"], back["data"]["returned"]) == (0, 2)


def test_the_text_at_another_place_takes_the_memory_up_also_when_it_was_away_in_between(known: Path) -> None:
    [[number, *_]] = [row for row in learned(known)[0] if row[1] == WAL]
    absent(known)()
    (known / WAL).rename(known / "docs/journal.md")

    report = index(known)

    assert [(move["from"], move["to"]) for move in report["renamed"]] == [(WAL, "docs/journal.md")]
    assert (report["returned"], report["absent"], report["created"]) == (["docs/journal.md"], [], [])
    assert [row[:2] for row in learned(known)[0] if row[0] == number] == [(number, "docs/journal.md")]


@pytest.mark.parametrize("door", ["memory_save", "save"])
def test_saving_the_file_takes_the_memory_up(known: Path, door: str) -> None:
    before = learned(known)
    absent(known)()

    if door == "save":
        assert call(known, ["save", WAL]).status == 0
    else:
        calls(known, ("memory_save", {"filePath": WAL}))

    assert learned(known)[:2] == before[:2]
    assert WAL in found(known)["list"]


def test_a_file_that_was_edited_while_it_was_away_updates_its_memory(known: Path) -> None:
    [[number, *_]] = [row for row in learned(known)[0] if row[1] == WAL]
    absent(known)
    (known / WAL).write_text("# Journal\n\nThe journal comes first.\n")

    report = index(known)

    assert (report["updated"], report["returned"], report["created"]) == ([WAL], [WAL], [])
    assert [row[:2] for row in learned(known)[0] if row[1] == WAL] == [(number, WAL)]


def test_who_reads_it_by_its_key_is_told_since_when_its_file_is_away(known: Path) -> None:
    absent(known)

    [read] = calls(known, ("memory_search", {"key": WAL}))
    shown = call(known, ["show", WAL, "--json"]).json

    assert "The store runs SQLite in WAL mode." in str(read["data"]["results"])
    assert any(hint.startswith("absent since ") for hint in read["hints"])
    assert shown["absent"] == read["data"]["absent"]


def test_a_dry_run_foresees_it_and_changes_nothing(known: Path) -> None:
    (known / WAL).unlink()

    report = index(known, "docs", "--dry-run")

    assert (report["absent"], report["vanished"]) == ([WAL], [WAL])
    assert WAL in found(known)["list"]


def test_what_is_absent_is_deleted_for_good_when_its_time_is_over_and_not_before(known: Path) -> None:
    absent(known)
    assert maintained(known) == {"state": "ran", "count": 0}
    with closing(apsw.Connection(str(known / "memory.db"))) as connection:
        connection.execute("UPDATE absences SET absent_since = absent_since - 91 * 86400")
        connection.execute("DELETE FROM job_runs")
    (known / ".speckit").mkdir(exist_ok=True)
    (known / ".speckit/config.yaml").write_text("absent_days: 92\n")
    assert maintained(known) == {"state": "ran", "count": 0}
    with closing(apsw.Connection(str(known / "memory.db"))) as connection:
        connection.execute("DELETE FROM job_runs")
    (known / ".speckit/config.yaml").write_text("")

    assert maintained(known) == {"state": "ran", "count": 1}
    assert [row for row in learned(known)[0] if row[1] == WAL] == []
    assert index(known)["absent"] == []


def maintained(root: Path) -> dict[str, object]:
    ran = call(root, ["maintain", "--json"])
    [job] = [job for job in ran.json["jobs"] if job["job"] == "absent"]
    return {"state": job["state"], "count": job["count"]}


def test_a_memory_that_is_deleted_by_name_stays_deleted_though_its_file_was_away(known: Path) -> None:
    back = absent(known)
    calls(known, ("memory_delete", {"id": WAL}))
    assert [row for row in learned(known)[0] if row[1] == WAL] == []
    back()
    assert index(known)["created"] == [WAL]


def test_what_was_archived_is_archived_again_when_its_file_is_back(known: Path) -> None:
    (known / WAL).write_text("---\nexpires: 2020-01-01\n---\n# Write-ahead log\n\nThe store runs SQLite.\n")
    index(known)
    call(known, ["maintain"])
    archived = call(known, ["unarchive", "--json"]).out
    back = absent(known)
    calls(known, ("memory_validate", {"id": WAL, "wasUseful": True}))
    assert not [name for name, keys in found(known).items() if WAL in keys]

    back()
    index(known)

    assert WAL not in found(known)["search"]
    assert call(known, ["unarchive", "--json"]).out == archived


def test_an_export_leaves_it_out_and_a_checkpoint_keeps_it(known: Path, tmp_path: Path) -> None:
    before = learned(known)
    back = absent(known)

    assert call(known, ["export", tmp_path / "export", "--json"]).status == 0
    assert not (tmp_path / "export/memories" / WAL).exists()
    assert call(known, ["checkpoint", "create", "now"]).status == 0
    assert call(known, ["index", "--forget", "docs"]).status == 0
    assert call(known, ["checkpoint", "restore", "now"]).status == 0
    assert WAL not in found(known)["list"]
    back()
    index(known)

    assert learned(known)[:2] == before[:2]


@pytest.mark.requirement("I8.set_back")
def test_an_edit_whose_times_and_size_were_set_back_is_seen(known: Path) -> None:
    state = (known / WAL).stat()
    edited = (known / WAL).read_text().replace("SQLite", "MySQLx")
    (known / WAL).write_text(edited)
    os.utime(known / WAL, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert (known / WAL).stat().st_size == state.st_size

    assert index(known)["updated"] == [WAL]
    assert index(known)["updated"] == []


@pytest.mark.parametrize(("on_disk", "typed"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_a_name_with_marks_is_found_in_either_normal_form(workspace: Path, on_disk: Normal, typed: Normal) -> None:
    key = "docs/café.md"
    (workspace / normalize(on_disk, key)).write_text("# Café\n\nWhere the wombats meet.\n")
    index(workspace)

    [read] = calls(workspace, ("memory_search", {"key": normalize(typed, key)}))

    assert "Where the wombats meet." in str(read["data"]["results"])
    assert call(workspace, ["show", normalize(typed, key)]).status == 0


@pytest.mark.requirement("I1.pointers")
@pytest.mark.parametrize("text", [LFS, LFS.replace("\n", "\r\n"), LFS.replace("oid", "ext-0-x sha256:00\noid")])
def test_a_pointer_of_git_lfs_is_no_memory(workspace: Path, text: str) -> None:
    (workspace / "docs/large.md").write_bytes(text.encode())
    (workspace / "docs/about.md").write_text(f"# Pointers\n\nThey look like this:\n\n{LFS}")

    report = index(workspace)

    assert {"key": "docs/large.md", "reason": "pointer of Git LFS"} in report["ignored"]
    assert ("docs/large.md" in report["created"], "docs/about.md" in report["created"]) == (False, True)
    call(workspace, ["save", "docs/large.md", "--json"]).refused("E090")
    shutil.rmtree(workspace / "docs")
