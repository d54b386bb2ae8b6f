"""What commands do whose evaluation database is damaged, through the installed command: nothing measured is lost."""

from __future__ import annotations

from pathlib import Path

import judged_sets
import pytest

from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from tests.server.doors import call

TWO = ("--pipeline", "bm25", "--pipeline", "fts5")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judged_sets.titles(tmp_path_factory.mktemp("sets") / "mixed", by_title=4, by_text=4, by_mention=4)


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A workspace whose evaluation database was overwritten but for its first page."""
    file = evaluation_file(tmp_path / "memory.db")
    EvaluationDatabase.open(file).close()
    content = file.read_bytes()
    file.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))
    return tmp_path


def test_a_comparison_is_shown_though_it_cannot_be_kept(damaged: Path, mixed: Path) -> None:
    shown = call(damaged, ["eval", "compare", "--dataset", mixed, *TWO]).ok()
    assert "noise floor" in shown.out
    told = " ".join(shown.out.split())
    assert "not kept: " in told and "is damaged" in told and "(E024); copy " in told
    document = call(damaged, ["eval", "compare", "--dataset", mixed, *TWO, "--json"]).json
    assert document["id"] is None
    assert document["keeping"].startswith("not kept: ")
    assert {pipeline["name"] for pipeline in document["pipelines"]} == {"bm25", "fts5"}


def test_a_gate_decides_though_it_cannot_be_kept(damaged: Path, mixed: Path) -> None:
    gated = call(damaged, ["eval", "gate", "--dataset", mixed, "--pipeline", "bm25", "--against", "bm25", "--json"])
    assert (gated.status, gated.json["gate"]["verdict"], gated.json["flags"]) == (0, "pass", [])
    assert gated.json["keeping"].startswith("not kept: ")
    assert "warning: no flag is tested against its criterion: " in " ".join(gated.err.split())


def test_what_is_kept_nowhere_shows_no_id(tmp_path: Path, mixed: Path) -> None:
    shown = call(tmp_path, ["eval", "baseline", "--dataset", mixed, "--no-keep"])
    assert "not kept: --no-keep" in shown.out.splitlines()
    document = call(tmp_path, ["eval", "baseline", "--dataset", mixed, "--no-keep", "--json"]).json
    assert (document["id"], document["keeping"]) == (None, "not kept: --no-keep")


def test_the_advice_on_a_damaged_file_tells_what_it_holds(damaged: Path) -> None:
    refused = call(damaged, ["eval", "history", "--json"])
    error = refused.json["error"]
    assert (refused.status, error["code"]) == (1, "E024")
    assert "stored evaluations, labels and the evidence for flags" in error["hint"]
    assert error["actions"][0].startswith("copy ")


def test_a_change_of_a_flag_that_cannot_be_noted_is_told(damaged: Path) -> None:
    flags = damaged / ".speckit" / "flags.yaml"
    flags.parent.mkdir()
    flags.write_text("flags: {SPECKIT_RSF_FUSION: {state: shadow}}\n", encoding="utf-8")
    told = " ".join(call(damaged, ["flags", "demote", "SPECKIT_RSF_FUSION"]).ok().out.split())
    assert "shadow → dark_run" in told
    assert "the time and reason are not recorded: " in told and "is damaged" in told
    again = call(damaged, ["flags", "demote", "SPECKIT_RSF_FUSION", "--json"]).json
    assert again["recorded"] is False
    assert "is damaged" in again["unrecorded"]


def test_a_file_that_a_full_disk_left_empty_is_made_anew(tmp_path: Path) -> None:
    assert call(tmp_path, ["init"]).status == 0
    file = evaluation_file(tmp_path / "memory.db")
    file.write_bytes(b"")
    (tmp_path / "note.md").write_text("# Quokkas\n\nThey live on an island.\n", encoding="utf-8")
    assert call(tmp_path, ["index", "note.md"]).status == 0

    checked = call(tmp_path, ["doctor", "--json"])

    (check,) = (check for check in checked.json["checks"] if check["name"] == "evaluation")
    assert (checked.status, check["verdict"]) == (0, "ok"), check
    with EvaluationDatabase.open(file, create=False) as database:
        assert database.counts()["queries"] == 0
