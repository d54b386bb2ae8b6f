"""What a checkpoint has brought back stays until a file changes, whatever index runs find meanwhile."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.server.doors import call
from tests.server.test_mcp_stdio import calls

pytestmark = pytest.mark.requirement("M14", "M14.holds")

EDITED = "notes/edited.md"
LATER = "notes/later.md"


@pytest.fixture
def restored(workspace: Path) -> Path:
    """A workspace with a checkpoint, of which one file was edited, one was renamed and one came since."""
    (workspace / "notes").mkdir()
    (workspace / EDITED).write_text("# Edited\n\nWombats dig burrows.\n")
    (workspace / "notes/same.md").write_text("# Same\n\nEmus run past.\n")
    index(workspace)
    calls(workspace, ("checkpoint_create", {"name": "one"}))
    (workspace / EDITED).write_text("# Edited\n\nQuokkas smile.\n")
    (workspace / LATER).write_text("# Later\n\nNumbats eat termites.\n")
    index(workspace)
    return workspace


def index(root: Path, *more: str) -> Any:
    return call(root, ["index", "notes", *more, "--json"]).ok().json


def texts(root: Path) -> dict[str, str]:
    rows = call(root, ["list", "--folder", "notes", "--json"]).json["memories"]
    return {row["key"]: call(root, ["show", row["key"], "--json"]).json["text"].split("\n")[-1] for row in rows}


AS_THEN = {EDITED: "Wombats dig burrows.", "notes/same.md": "Emus run past."}


@pytest.mark.parametrize("force", [(), ("--force",)], ids=["", "forced"])
@pytest.mark.parametrize("replace", [False, True], ids=["merged", "replaced"])
def test_index_runs_leave_it(restored: Path, replace: bool, force: tuple[str, ...]) -> None:
    [done] = calls(restored, ("checkpoint_restore", {"name": "one", "clearExisting": replace}))
    [hint] = done["hints"]
    there = AS_THEN if replace else {**AS_THEN, LATER: "Numbats eat termites."}

    first = index(restored, *force)
    os.utime(restored / EDITED, ns=(5, 5))
    second = index(restored, *force)

    assert f"1 memory differs from its file: {EDITED}" in hint
    assert (f"1 file has no memory any more: {LATER}" in hint) == replace
    assert [done["data"][name] for name in ("differing", "without_file", "without_memory")] == [1, 0, int(replace)]
    for report in (first, second):
        assert [report[name] for name in ("created", "updated", "absent")] == [[], [], []]
        left_out = [row for row in report["ignored"] if row["key"] == LATER]
        assert left_out == [{"key": LATER, "reason": "removed by a restored checkpoint"}] * replace
    assert texts(restored) == there


def test_a_file_that_changes_holds_again(restored: Path) -> None:
    calls(restored, ("checkpoint_restore", {"name": "one", "clearExisting": True}))
    (restored / EDITED).write_text("# Edited\n\nQuokkas smile at you.\n")
    (restored / LATER).write_text("# Later\n\nNumbats sleep.\n")

    report = index(restored)

    assert (report["updated"], report["created"]) == ([EDITED], [LATER])
    assert texts(restored) == {**AS_THEN, EDITED: "Quokkas smile at you.", LATER: "Numbats sleep."}


def test_saving_a_file_takes_what_it_says(restored: Path) -> None:
    calls(
        restored,
        ("checkpoint_restore", {"name": "one", "clearExisting": True}),
        ("memory_save", {"filePath": EDITED}),
    )
    assert call(restored, ["save", LATER]).status == 0

    report = index(restored)

    assert (report["updated"], report["created"], report["ignored"]) == ([], [], [])
    assert texts(restored) == {**AS_THEN, EDITED: "Quokkas smile.", LATER: "Numbats eat termites."}


def test_it_goes_with_a_file_that_is_renamed(restored: Path) -> None:
    calls(restored, ("checkpoint_restore", {"name": "one"}))
    (restored / EDITED).rename(restored / "notes/moved.md")

    report = index(restored)

    assert [(move["from"], move["to"]) for move in report["renamed"]] == [(EDITED, "notes/moved.md")]
    assert texts(restored)["notes/moved.md"] == "Wombats dig burrows."


def test_where_files_say_what_came_back_nothing_is_to_be_told(restored: Path) -> None:
    (restored / EDITED).write_text("# Edited\n\nWombats dig burrows.\n")

    [done] = calls(restored, ("checkpoint_restore", {"name": "one"}))
    printed = call(restored, ["checkpoint", "restore", "one"])

    assert (done["hints"], done["data"]["differing"]) == ([], 0)
    assert "no file was touched, and all agree with what came back" in printed.out
    assert index(restored)["updated"] == []
