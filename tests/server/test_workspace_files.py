"""The files of a workspace that people edit, through the console script and over MCP."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from files import write_file
from raw_server import raw_server

from speckit_memory.config.workspace.settings import FLAGS_FILE, PIPELINE_FILE, workspace_root
from tests.server.doors import Ran, call

OURS = "pipeline: ours\nfusion:\n  - {use: z_score, weights: {graph: 0.3}}\n"


def write(root: Path, file: Path, text: str) -> str:
    path = write_file(root / file, text)
    return str(path)


def searched(root: Path, *more: str, **env: str) -> dict[str, str]:
    pipeline: dict[str, str] = call(root, ["search", "fusion", "--json", *more], env=env).ok().json["pipeline"]
    return pipeline


def told(ran: Ran, name: str) -> str:
    [detail] = [check["detail"] for check in ran.json["checks"] if check["name"] == name]
    return str(detail)


@pytest.mark.requirement("P2")
def test_the_workspaces_pipeline_is_served_unless_something_nearer_names_another(workspace: Path) -> None:
    shipped = searched(workspace)
    file = write(workspace, PIPELINE_FILE, OURS)
    (workspace / "other.yaml").write_text("pipeline: other\n")
    ours = searched(workspace)
    assert (shipped["name"], ours["name"]) == ("default", "ours")
    assert ours["hash"] != shipped["hash"]
    assert searched(workspace, "--pipeline", "default") == shipped
    assert searched(workspace, SPECKIT_PIPELINE="default") == shipped
    assert searched(workspace, SPECKIT_PIPELINE="other.yaml")["name"] == "other"
    assert searched(workspace, "--pipeline", file, SPECKIT_PIPELINE="other.yaml") == ours
    assert call(workspace, ["search", "fusion", "--json"], cwd=workspace / "docs").json["pipeline"] == ours
    plan = call(workspace, ["pipeline", "show", "--json"]).json
    assert plan["pipeline"] == file


@pytest.mark.requirement("P2", "T7")
def test_what_is_shown_names_the_file_of_each_value(workspace: Path) -> None:
    file = write(workspace, PIPELINE_FILE, OURS + "rerank: [min_max, {use: pin, flag: SPECKIT_OURS}]\n")
    own = '{state: "off", group: D, owner: us, since: 2026-11-01, expires: 2026-12-01, evidence: e}'
    flags = write(workspace, FLAGS_FILE, f"flags:\n  SPECKIT_OURS: {own}\n  SPECKIT_SPELLING: {{state: enabled}}\n")
    write(workspace, Path(".speckit/config.yaml"), "deadline_ms: 900\n")
    shown = call(workspace, ["pipeline", "show", "--effective", "--origin"]).out.splitlines()
    assert shown[0] == f"# {file}"
    assert f"# flag SPECKIT_OURS: off ({flags}:2)" in shown
    assert f"      graph: 0.3  # {file}:3:37" in shown
    assert any(line.startswith("      bm25: ") and "# (shipped) config/pipeline.yaml:" in line for line in shown)
    [inactive] = [line for line in shown if line.startswith("# not active: rerank: pin")]
    assert inactive == f"# not active: rerank: pin (use: pin, flag: SPECKIT_OURS; {file}:4:19)"
    doctor = call(workspace, ["doctor", "--json"]).ok()
    assert told(doctor, "pipeline").endswith(f": {file}")
    decided = f"SPECKIT_SPELLING enabled ({flags}:3), SPECKIT_OURS off ({flags}:2)"
    waits = "SPECKIT_SPELLING: ours does not use it, catalogue does"
    assert told(doctor, "flags").endswith(f" flags; {decided}; {waits}")
    assert told(doctor, "configuration").startswith(
        f"deadline_ms: {workspace}/.speckit/config.yaml:1:1; shipped: store, read_from, read_lag_seconds, "
    )
    other = call(workspace, ["doctor", "--json", "--pipeline", "bm25"], env={"SPECKIT_OURS": "true"})
    assert told(other, "pipeline").endswith(f": bm25, chosen by this call; {file} is not served")
    assert "SPECKIT_OURS enabled (environment)" in told(other, "flags")
    by_variable = call(workspace, ["doctor", "--json"], env={"SPECKIT_PIPELINE": "bm25", "SPECKIT_DEADLINE_MS": "5"})
    assert f": bm25, chosen by SPECKIT_PIPELINE; {file} is not served" in told(by_variable, "pipeline")
    assert "deadline_ms: SPECKIT_DEADLINE_MS" in told(by_variable, "configuration")


@pytest.mark.parametrize("command", [["search", "x"], ["pipeline", "plan", "x"], ["pipeline", "show"],
                                     ["doctor", "-v"]])  # fmt: skip
@pytest.mark.parametrize("file", [PIPELINE_FILE, FLAGS_FILE])
def test_a_broken_file_is_refused_with_its_place_by_every_command_that_needs_it(
    workspace: Path, file: Path, command: list[str]
) -> None:
    text = {PIPELINE_FILE: "pipeline: ours\nfusoin: []\n", FLAGS_FILE: "flags:\n  SPECKIT_RRF: {state: maybe}\n"}[file]
    path = write(workspace, file, text)
    ran = call(workspace, command)
    assert ran.status == (1 if "doctor" in command else 2)
    assert f"{path}:2:" in ran.out + ran.err
    if "doctor" in command and file == PIPELINE_FILE:
        assert "'default'" in ran.out


@pytest.mark.parametrize("lies_there", ["folder", "link that leads nowhere", "bytes", "pipe"])
def test_what_cannot_be_read_is_never_passed_over_for_the_shipped_pipeline(workspace: Path, lies_there: str) -> None:
    file = workspace / PIPELINE_FILE
    file.parent.mkdir(exist_ok=True)
    match lies_there:
        case "folder":
            file.mkdir()
        case "bytes":
            file.write_bytes(b"\xff")
        case "pipe":
            os.mkfifo(file)
        case _:
            file.symlink_to(workspace / "nowhere.yaml")
    error = call(workspace, ["search", "fusion", "--json"]).refused("E110")
    assert str(file) in error["message"]


def test_a_link_is_followed_and_an_empty_file_is_the_shipped_pipeline(workspace: Path) -> None:
    shipped = searched(workspace)["hash"]
    write(workspace, PIPELINE_FILE, "")
    assert searched(workspace)["hash"] == shipped
    (workspace / PIPELINE_FILE).unlink()
    (workspace / "shared.yaml").write_text(OURS)
    (workspace / PIPELINE_FILE).symlink_to(workspace / "shared.yaml")
    assert searched(workspace)["name"] == "ours"


@pytest.mark.requirement("P2")
def test_a_flag_of_the_workspace_opens_a_step_of_its_pipeline(workspace: Path) -> None:
    write(workspace, PIPELINE_FILE, "rerank: [min_max, {use: pin, flag: SPECKIT_OURS}]\n")
    write(workspace, FLAGS_FILE, "flags:\n  SPECKIT_OURS: {state: enabled, owner: us}\n")
    enabled = searched(workspace)["hash"]
    assert searched(workspace, SPECKIT_OURS="false")["hash"] != enabled
    write(workspace, FLAGS_FILE, "")
    ran = call(workspace, ["search", "x", "--json"])
    assert ran.json["error"]["message"].startswith("the flag 'SPECKIT_OURS' is not declared")


def test_the_audit_looks_at_the_workspaces_flags_too(workspace: Path) -> None:
    today = datetime.now(UTC).date()
    life = f"since: {today - timedelta(days=30)}, expires: {today + timedelta(days=30)}"
    life += ", was: dark_run, criterion: {metric: Hit@1, direction: better}"
    good = f"  SPECKIT_OURS: {{state: shadow, group: D, owner: us, {life}}}\n"
    file = write(workspace, FLAGS_FILE, f"flags:\n{good}  SPECKIT_SPELLING: {{state: dark_run}}\n")
    before = call(workspace, ["flags", "list", "--json"]).json["flags"]
    origins = {flag["name"]: flag["origin"] for flag in before}
    assert (origins["SPECKIT_OURS"], origins["SPECKIT_SPELLING"]) == (f"{file}:2", f"{file}:3")
    assert origins["SPECKIT_RRF"].startswith("config/flags.yaml:")
    assert call(workspace, ["flags", "audit"]).status == 0
    expired = (
        "  SPECKIT_OLD: {state: enabled, group: D, owner: us, since: 2026-01-01, expires: 2026-02-01, evidence: e}\n"
    )
    write(workspace, FLAGS_FILE, f"flags:\n{good}{expired}  SPECKIT_BARE: {{state: enabled, owner: us, group: E}}\n")
    ran = call(workspace, ["flags", "audit"]).ended(1)
    assert f"{file}:3:3: E124 SPECKIT_OLD expired on 2026-02-01" in ran.out
    assert f"{file}:4:3: E124 SPECKIT_BARE is enabled without evidence" in ran.out
    assert f"{file}:4:3: E124 SPECKIT_BARE belongs to group 'E', accepted: A, B, C, D" in ran.out


def test_more_active_flags_than_are_allowed_are_told_where_the_workspace_opens_them(workspace: Path) -> None:
    shipped = [flag["name"] for flag in call(workspace, ["flags", "list", "--json"]).json["flags"]
               if flag["state"] == "off"]  # fmt: skip
    opened = "".join(f"  {name}: {{state: enabled}}\n" for name in shipped[:7])
    file = write(workspace, FLAGS_FILE, f"flags:\n{opened}")
    ran = call(workspace, ["flags", "audit"])
    assert f"{file}:8:3: E124 7 flags are active, accepted: at most 6" in ran.out


def test_an_evaluation_measures_the_workspaces_pipeline_with_its_flags(workspace: Path) -> None:
    dataset = workspace / "set"
    (dataset / "qrels").mkdir(parents=True)
    (dataset / "corpus.jsonl").write_text('{"_id": "a", "title": "Rank", "text": "fusion", "metadata": {}}\n')
    (dataset / "queries.jsonl").write_text('{"_id": "q", "text": "rank", "metadata": {}}\n')
    (dataset / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n")
    write(workspace, PIPELINE_FILE, OURS + "rerank: [min_max, {use: pin, flag: SPECKIT_OURS}]\n")
    write(workspace, FLAGS_FILE, "flags:\n  SPECKIT_OURS: {state: enabled, owner: us}\n")
    [measured] = call(workspace, ["eval", "run", "--dataset", "set", "--json"]).ok().json["pipelines"]
    assert {"name": measured["name"], "hash": measured["hash"]} == searched(workspace)


@pytest.mark.requirement("P2")
@pytest.mark.usefixtures("processes")
def test_the_five_lines_of_the_readme_add_one_channel_to_the_default(workspace: Path) -> None:
    readme = (workspace_root(Path(__file__).parent) / "README.md").read_text(encoding="utf-8")
    [text] = [block for block in re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL) if "add:" in block]
    assert len(text.splitlines()) == 5
    shipped = call(workspace, ["pipeline", "plan", "fusion", "--json"]).json["plan"]["channels"]
    file = write(workspace, PIPELINE_FILE, text)
    channels = [
        channel["id"] for channel in call(workspace, ["pipeline", "plan", "fusion", "--json"]).json["plan"]["channels"]
    ]
    assert channels == ["bm25", "fts5", *(channel["id"] for channel in shipped if channel["id"] != "bm25")]
    diff = call(workspace, ["pipeline", "diff", "default", file, "--json"]).json["diff"].splitlines()
    changed = [line for line in diff[2:] if line[0] in "+-"]
    assert changed[0].strip() == "+  fts5 (use: fts5)"
    assert "+    z_score.weights.fts5: 1.0" in changed
    assert not [line for line in changed if line.startswith("-") or "fts5" not in line]
    with raw_server(workspace) as server:
        server.start()
        found = server.call(1, "memory_search", {"query": "fusion"})["structuredContent"]["data"]["results"]
    assert found[0]["key"] == "docs/fusion.md"
    row = call(workspace, ["search", "fusion", "--json"]).json["results"][0]
    assert "fts5" in row["channels"]
