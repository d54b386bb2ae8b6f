"""What people, scripts and agents name where a path belongs: each is answered with a code, and none with a defect."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from tally import Tally

from speckit_memory.errors.codes import CODES
from speckit_memory.server.commands.cli import run
from tests.attacks.swaps import in_time
from tests.server.doors import with_client

CODED = {
    "E010", "E011", "E012", "E013", "E014", "E020", "E024", "E032", "E037",
    "E110", "E111", "E114", "E120", "E121", "E123",
}  # fmt: skip
NAMED = [
    "~nobody_here/x.md", "loop", "loop/x.md", "x" * 300, "x/" * 3000, "docs/a.md/b", "docs/a.md", "docs", ".", "..", "",
    " ", "/", "/dev/zero", "/dev/null", "/proc/self/mem", "/proc/kmsg", "pipe", "pipe/x", "socket", "dangling",
    "docs/../../..", "closed", "closed/x.md", "-", "a\nb", "\x1b[2J", "%00", "\udcff", "huge.yaml", "outside/a.md",
]  # fmt: skip
NO_PATHS = ["~nobody_here/x.md", "loop", "loop/x.md", "x" * 300, "x/" * 3000, "docs/a.md/b", ""]
"""Those at which nothing can be made; where something can, `demo` does its work."""
LINES: dict[str, Callable[[str], list[str]]] = {
    "index": lambda path: ["index", "--", path],
    "index --dry-run": lambda path: ["index", "--dry-run", "--", path],
    "index --forget": lambda path: ["index", "--forget", "--", path],
    "pipeline check": lambda path: ["pipeline", "check", "--", path],
    "pipeline diff": lambda path: ["pipeline", "diff", "--", "bm25", path],
    "search --pipeline": lambda path: ["search", "quokka", f"--pipeline={path or ' '}"],
    "eval run": lambda path: ["eval", "run", f"--dataset={path}"],
    "eval run --pipeline": lambda path: ["eval", "run", "--dataset=set", f"--pipeline={path or ' '}"],
    "eval run --run-file": lambda path: ["eval", "run", "--dataset=set", f"--run-file={path}/x"],
    "eval make-queries": lambda path: ["eval", "make-queries", f"--dataset={path}", "--out=made"],
    "pipeline tune": lambda path: ["pipeline", "tune", "bm25", "--dataset=nowhere", f"--out={path}"],
    "demo --keep": lambda path: ["demo", f"--keep={path}"],
    "serve --token-file": lambda path: ["serve", "--transport=http", "--host=0.0.0.0", f"--token-file={path}"],
}


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with all that the paths name, in which the commands run."""
    root = tmp_path / "far" / "below" / "workspace"  # some paths lead above it
    for folder in (".git", "docs", "closed", "set"):
        (root / folder).mkdir(parents=True)
    (root / "docs" / "a.md").write_text("# A\n\nquokka\n", encoding="utf-8")
    (root / "closed").chmod(0)
    (root / "loop").symlink_to("loop")
    (root / "dangling").symlink_to("nowhere")
    (root / "outside").symlink_to("/usr")
    os.mkfifo(root / "pipe")
    os.mknod(root / "socket", stat.S_IFSOCK | 0o600)
    (root / "huge.yaml").touch()
    os.truncate(root / "huge.yaml", 1_000_000_000)  # a hole: it takes no room on the disk
    for name in [name for name in os.environ if name.startswith("SPECKIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(root)
    return root


def told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The status and the words of a command line, which must come to an end."""
    status = in_time(lambda: run(arguments))
    captured = capsys.readouterr()
    return status, captured.out + captured.err


@pytest.mark.requirement("T26")
@pytest.mark.parametrize("command", LINES)
def test_a_command_answers_every_path_with_a_code(
    command: str, workspace: Path, capsys: pytest.CaptureFixture[str], tally: Tally
) -> None:
    for path in NO_PATHS if command.startswith("demo") else NAMED:
        status, said = told(LINES[command](path), capsys)

        assert "E199" not in said, (path, said)
        assert status == 0 or any(code in said for code in CODED), (path, said)
        assert "\x1b[2J" not in said, path
        tally.tried()


INDEX, SEARCH = ["index", "docs"], ["search", "quokka", "--limit=1"]
VARIABLES = {
    "SPECKIT_ROOT": INDEX, "SPECKIT_PIPELINE": SEARCH, "SPECKIT_EMBEDDER": SEARCH, "SPECKIT_CROSS_ENCODER": SEARCH,
    "HOME": INDEX, "XDG_CONFIG_HOME": INDEX,
}  # fmt: skip


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_variable_may_name_anything(
    variable: str, workspace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    run(INDEX)
    if variable == "SPECKIT_ROOT":  # one of the places is the whole file system, which a store is not left in
        monkeypatch.setenv("SPECKIT_DB", str(workspace / "memory.db"))
    for path in NAMED:
        monkeypatch.setenv(variable, path)

        status, said = told(VARIABLES[variable], capsys)

        assert "E199" not in said, (path, said)
        assert status == 0 or any(code in said for code in CODED), (path, said)
        tally.tried()


COMMANDS = [
    ["index", "."], ["index", "docs", "--dry-run"], ["search", "x"], ["doctor"], ["init"], ["init", "--write"],
    ["serve"], ["demo", "--json"], ["pipeline", "check", "x.yaml"], ["pipeline", "show"], ["pipeline", "plan", "x"],
    ["pipeline", "diff", "bm25", "rrf"], ["pipeline", "schema"], ["pipeline", "tune", "bm25", "--dataset=d", "--out=o"],
    ["pipeline", "calibrate", "bm25", "--dataset=d", "--out=o"], ["flags", "list"], ["flags", "audit"],
    ["eval", "run", "--dataset=d"], ["eval", "ablate", "--dataset=d"],
    ["eval", "make-queries", "--dataset=d", "--out=o"],
]  # fmt: skip


def test_a_deleted_working_folder_is_said_and_spares_what_does_not_need_it(
    workspace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    assert told(["index", "docs"], capsys)[0] == 0
    gone = workspace.parent / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for line in [line for line in COMMANDS if line not in (["demo", "--json"], ["serve"])]:
        status, said = told(line, capsys)

        assert "E199" not in said, (line, said)
        assert status == 0 or "E014" in said or "E121" in said, (line, said)
        tally.tried()
    assert "does not exist any more" in told(["search", "x"], capsys)[1]
    monkeypatch.setenv("SPECKIT_ROOT", str(workspace))
    for line in (["search", "quokka"], ["doctor"], ["pipeline", "show"], ["index", str(workspace / "docs")]):
        status, said = told(line, capsys)

        assert status == 0, (line, said)
        tally.tried()


def test_tools_answer_every_path_with_a_code(workspace: Path, tally: Tally) -> None:
    paths = [path for path in NAMED if path != "\udcff" and len(path) <= 500] + ["a\0b.md", "\0"]
    calls: list[tuple[str, dict[str, Any]]] = [("memory_index_scan", {})]
    calls += [("memory_save", {"filePath": path}) for path in [*paths, *(f"{path}.md" for path in paths)]]
    calls += [("memory_index_scan", {"specFolder": path}) for path in paths]
    calls += [("memory_search", {"query": "quokka", "specFolder": path}) for path in paths]
    calls += [("memory_list", {"specFolder": path}) for path in paths]

    async def work(client: Client) -> list[dict[str, Any]]:
        answers = []
        for name, arguments in calls:
            answer = await client.call_tool(name, arguments)
            assert answer.structured_content is not None
            answers.append(answer.structured_content)
        return answers

    for (name, arguments), answer in zip(calls, with_client(workspace, work), strict=True):
        code = answer.get("error", {}).get("code", "")
        assert code in ("", "E030", "E031", "E032", *(known for known in CODED if CODES[known].callers_fault)), (
            name, arguments, answer,
        )  # fmt: skip
        tally.tried()


def test_a_server_goes_on_when_the_folder_it_was_started_in_is_deleted(workspace: Path, tally: Tally) -> None:
    async def work(client: Client) -> list[str]:
        started = workspace.parent / "started"
        started.rmdir()
        codes = []
        for name, arguments in [
            ("memory_index_scan", {}),
            ("memory_search", {"query": "quokka"}),
            ("memory_health", {}),
        ]:
            answer = await client.call_tool(name, arguments)
            codes.append((answer.structured_content or {}).get("error", {}).get("code", ""))
        return codes

    (workspace.parent / "started").mkdir()
    started = workspace.parent / "started"
    codes = with_client(started, work, SPECKIT_ROOT=str(workspace), SPECKIT_DB=str(workspace / "memory.db"))
    assert codes == ["", "", ""]
    tally.survived()


@pytest.mark.parametrize("named", ["", "a\0b", "~nobody_here", "loop", "y" * 300])
def test_a_path_that_no_file_can_have_is_named_with_what_to_do(
    named: str, workspace: Path, capsys: pytest.CaptureFixture[str], tally: Tally
) -> None:
    status = run(["index", "--json", "--", named])
    error = json.loads(capsys.readouterr().out)["error"]

    assert (status, error["code"]) == (2, "E014")
    assert error["actions"]
    assert named.replace("\0", "\\x00")[:80] in error["message"]
    tally.tried()
