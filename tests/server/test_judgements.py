"""What readers judged is told, attributed and taken back by one command, at the command line and over MCP."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.memory.store.file.test_every_schema import make_older
from tests.server.doors import Ran, call
from tests.server.test_exchange import exported, other, outcomes
from tests.server.test_mcp_stdio import calls
from tests.server.test_renames import memories

TONE, WAL = "docs/tone.md", "docs/storage/wal.md"
LISTED = ["learned", "judgements", "--json"]


def known(root: Path, key: str = TONE) -> dict[str, Any]:
    """How a memory stands."""
    return memories(root)[key]


def judged(
    root: Path, *useful: bool, session: str = "", promote: bool = False, key: str = TONE
) -> list[dict[str, Any]]:
    said = {"id": known(root, key)["id"], **({"sessionId": session} if session else {})}
    wanted = [("memory_validate", {**said, "wasUseful": each}) for each in useful]
    if promote:
        wanted[-1][1]["promote"] = True
    return [answer["data"] for answer in calls(root, *wanted)]


def told(ran: Ran, name: str = "judgements") -> list[tuple[str, str, bool]]:
    return [(one["kind"], one["session"], one["undone_at"] is not None) for one in ran.json[name]]


@pytest.mark.requirement("F17.attributed", "F17.undone")
def test_what_an_agent_judged_is_listed_with_its_session_and_taken_back_by_one_command(workspace: Path) -> None:
    before = known(workspace)
    *_, last = judged(workspace, True, True, True, True, session="mine")
    assert last["session"] == "mine"
    [promoted] = judged(workspace, True, session="yours", promote=True)
    assert promoted["tier"] == "critical"
    listed = call(workspace, LISTED)
    assert told(listed) == [("promoted", "yours", False), ("useful", "yours", False), *[("useful", "mine", False)] * 4]
    one = listed.json["judgements"][-1]
    assert (one["key"], one["before"]["confidence"], one["after"]["confidence"]) == (TONE, 0.5, 0.6)
    text = " ".join(call(workspace, ["learned", "judgements", "--memory", TONE]).out.split())
    assert "critical instead of normal" in text
    assert "confidence 0.5 -> 0.6, kept 1 -> 2.08 days" in text

    undone = call(workspace, ["learned", "undo", "--session", "mine", "--json"])
    assert told(undone, "undone") == [("useful", "mine", False)] * 4
    assert told(undone, "followed") == [("promoted", "yours", False)]
    assert undone.json["memories"] == [
        {"id": before["id"], "key": TONE, "tier": "normal", "confidence": 0.6, "validations": 1, "kept_days": 2.1}
    ]
    assert call(workspace, ["learned", "undo", str(one["id"])]).err.startswith("error E030: judgement ")
    assert "5 judgements" not in call(workspace, ["learned", "undo", "--memory", TONE]).out
    assert known(workspace) == before
    assert [taken for *_, taken in told(call(workspace, LISTED))] == [True] * 6
    assert "; undone " in " ".join(call(workspace, ["learned", "judgements"]).out.split())
    assert call(workspace, ["doctor"]).status == 0


def test_what_is_meant_must_be_said_in_one_way(workspace: Path) -> None:
    for wrong in ([], ["1", "--memory", TONE], ["1", "--session", "s"]):
        assert call(workspace, ["learned", "undo", *wrong]).status == 2
    assert call(workspace, ["learned", "undo", "1"]).err.startswith("error E080: there is no judgement 1")
    assert call(workspace, ["learned", "judgements", "--memory", "none.md"]).status != 0


@pytest.mark.requirement("F17.undone", "M14.lossless")
def test_what_was_judged_goes_along_with_an_export_and_is_taken_back_there(workspace: Path) -> None:
    judged(workspace, True, False, True, True, True, True, session="s")
    judged(workspace, True, session="t", promote=True)
    out = exported(workspace)
    root = other(workspace)
    assert call(root, ["import", str(out)]).status == 0
    for name in ("kind", "at", "session", "before", "after"):
        there, ours = ([one[name] for one in call(each, LISTED).json["judgements"]] for each in (root, workspace))
        assert there == ours
    for each in (root, workspace):
        second = call(each, LISTED).json["judgements"][-2]
        assert second["kind"] == "not useful"
        assert call(each, ["learned", "undo", str(second["id"])]).status == 0
    assert {**known(root), "id": 0} == {**known(workspace), "id": 0}
    assert known(root)["confidence"] == 1.0
    # taking back is later than what the export tells, though it leaves fewer judgements
    assert outcomes(call(root, ["import", str(out), "--json"]))[TONE] in ("kept", "unchanged")
    assert known(root)["validation_count"] == 6


@pytest.mark.requirement("F17.undone", "M14.edited")
def test_of_two_stores_the_one_that_judged_last_knows_best_whatever_was_taken_back_before(workspace: Path) -> None:
    judged(workspace, False, session="rash")
    judged(workspace, True)
    out = exported(workspace)
    root = other(workspace)
    assert call(root, ["import", str(out)]).status == 0
    assert call(workspace, ["learned", "undo", "--session", "rash"]).status == 0
    judged(root, True, True, True, True)
    assert call(workspace, ["export", str(out)]).status == 0
    assert outcomes(call(root, ["import", str(out), "--json"]))[TONE] == "kept"
    assert (known(root)["confidence"], known(root)["validation_count"]) == (0.95, 6)
    assert len(call(root, [*LISTED, "--memory", TONE]).json["judgements"]) == 6
    later = workspace.parent / "later"
    assert call(root, ["export", str(later)]).status == 0
    assert outcomes(call(workspace, ["import", str(later), "--json"]))[TONE] == "updated"
    assert (known(workspace)["confidence"], known(workspace)["validation_count"]) == (0.95, 6)


@pytest.mark.requirement("F17.undone")
def test_a_promotion_that_is_taken_back_after_an_import_leaves_the_tier_of_the_text_here(workspace: Path) -> None:
    judged(workspace, True, True, True, True, True, promote=True)
    out = exported(workspace)
    record = out / f"learned/{TONE}.json"
    document = json.loads(record.read_text())
    assert "judgements" in json.dumps(document)
    root = other(workspace)
    shutil.copytree(workspace / "docs", root / "docs")
    text = (root / TONE).read_text()
    assert not text.startswith("---")
    (root / TONE).write_text(f"---\nimportance_tier: important\n---\n{text}")
    assert call(root, ["index", "docs"]).status == 0
    assert call(root, ["import", str(out), "--json"]).status == 0
    assert known(root)["tier"] == "critical"
    assert call(root, ["learned", "undo", "--memory", TONE]).status == 0
    assert known(root)["tier"] == "important"


@pytest.mark.requirement("F17.undone", "M14.rows")
def test_what_comes_back_into_a_copy_that_went_another_way_keeps_its_order(workspace: Path) -> None:
    copy = other(workspace)
    shutil.copytree(workspace, copy, dirs_exist_ok=True)
    judged(workspace, False, True, True, session="here", key=WAL)
    assert call(workspace, ["checkpoint", "create", "storage", "--folder", "docs/storage"]).status == 0
    for key in (TONE, WAL, WAL, TONE):  # the first number is another's then, and the others are free
        judged(copy, True, key=key)
    shutil.copytree(workspace / "memory.db.checkpoints", copy / "memory.db.checkpoints")
    assert call(copy, ["checkpoint", "restore", "storage"]).status == 0
    listed = call(copy, [*LISTED, "--memory", WAL])
    assert told(listed) == [("useful", "here", False)] * 2 + [("not useful", "here", False)]
    assert call(copy, ["learned", "undo", str(listed.json["judgements"][-1]["id"])]).status == 0
    assert known(copy, WAL)["confidence"] == 0.7
    assert [one["id"] for one in call(copy, [*LISTED, "--memory", TONE]).json["judgements"]] == [4, 1]
    assert call(copy, ["doctor"]).status == 0


@pytest.mark.requirement("F17.undone")
@pytest.mark.parametrize("declared", ["important", "temporary", "critical"])
@pytest.mark.parametrize("first", ["index", "undo"])
def test_a_promotion_of_an_older_store_leaves_the_tier_that_the_file_declares_now(
    workspace: Path, declared: str, first: str
) -> None:
    judged(workspace, *[True] * 5, promote=True)
    text = (workspace / TONE).read_text()
    (workspace / TONE).write_text(f"---\nimportance_tier: {declared}\n---\n{text}")
    assert call(workspace, ["index", "docs"]).status == 0
    make_older(workspace / "memory.db", "0019")
    undo, index = ["learned", "undo", "--memory", TONE], ["index", "docs", "--json"]
    one, other = (index, undo) if first == "index" else (undo, index)
    assert call(workspace, one).status == 0
    assert call(workspace, other).status == 0
    assert known(workspace)["tier"] == declared
    assert call(workspace, index).json["updated"] == []
    assert call(workspace, ["doctor"]).status == 0


@pytest.mark.requirement("F17.undone", "M14.lossless")
def test_an_older_store_that_is_exported_before_it_is_indexed_tells_no_time_of_a_file_that_it_has_to_read(
    workspace: Path,
) -> None:
    judged(workspace, *[True] * 5, promote=True)
    make_older(workspace / "memory.db", "0019")
    out, root = exported(workspace), other(workspace)
    assert call(root, ["import", str(out)]).status == 0
    assert (root / TONE).stat().st_mtime_ns > 10**18
    assert call(root, ["learned", "undo", "--memory", TONE]).status == 0
    assert known(root)["tier"] == "normal"


@pytest.mark.requirement("F17.undone", "M14")
def test_what_is_brought_back_can_be_taken_back(workspace: Path) -> None:
    """A checkpoint brings the judgements of its time, an undone deletion those of its memories, a rename keeps them."""
    judged(workspace, True, True, session="s")
    assert call(workspace, ["checkpoint", "create", "two"]).status == 0
    judged(workspace, False, session="t")
    assert call(workspace, ["checkpoint", "restore", "two"]).status == 0
    assert told(call(workspace, LISTED)) == [("useful", "s", False)] * 2
    assert call(workspace, ["delete", TONE]).status == 0
    assert told(call(workspace, LISTED)) == []
    assert (
        call(workspace, ["undelete", call(workspace, ["undelete", "--json"]).json["deletions"][0]["name"]]).status == 0
    )
    assert told(call(workspace, LISTED)) == [("useful", "s", False)] * 2
    (workspace / TONE).rename(workspace / "docs/voice.md")
    assert call(workspace, ["index", "docs"]).status == 0
    assert call(workspace, ["learned", "undo", "--memory", "docs/voice.md"]).status == 0
    assert (known(workspace, "docs/voice.md")["confidence"], call(workspace, ["doctor"]).status) == (0.5, 0)


@pytest.mark.requirement("F17.undone")
def test_a_session_of_the_console_judges_and_numbers_are_taken_as_they_are_shown(workspace: Path) -> None:
    said = call(workspace, ["validate", TONE, "--useful", "--session", "mine", "--json"]).json
    assert (said["session"], said["validations"]) == ("mine", 1)
    assert "session" not in call(workspace, ["validate", TONE, "--useful", "--json"]).json
    assert told(call(workspace, LISTED)) == [("useful", "", False), ("useful", "mine", False)]
    shown = call(workspace, ["learned", "judgements"]).out
    assert "#2" in shown
    for wrong in ("##2", "#", "#-1", "2#", "#0"):
        assert call(workspace, ["learned", "undo", wrong]).status == 2
    assert "1 judgement undone" in call(workspace, ["learned", "undo", "#2"]).out

    undo = ["learned", "undo", "--session"]
    nobody = call(workspace, [*undo, "nobody"])
    assert nobody.out == "0 judgements undone: no judgement by session 'nobody' is on record\n"
    assert call(workspace, [*undo, "nobody", "--json"]).json["undone"] == []
    assert call(workspace, [*undo, "mine"]).out.count("1 judgement undone\n")
    again = f"0 judgements undone: every judgement of {TONE} by session 'mine' was undone before\n"
    assert call(workspace, [*undo, "mine", "--memory", TONE]).out == again
    assert "validations" not in known(workspace)


@pytest.mark.requirement("M7")
def test_changes_of_links_are_undone_by_the_numbers_that_are_shown(workspace: Path) -> None:
    assert call(workspace, ["links", "add", TONE, "supports", "docs/storage/wal.md"]).status == 0
    [change] = re.findall(r"^#\d+", call(workspace, ["links", "history"]).out, re.MULTILINE)
    assert "1 change undone" in call(workspace, ["links", "undo", change]).out
    assert call(workspace, ["links", "remove", "#999"]).status == 2
    assert "there is no contradiction 7" in call(workspace, ["links", "review", "--dismiss", "#7"]).err
