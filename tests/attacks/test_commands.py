"""Standard streams that are closed, full or left, for every command; and arguments that nobody means."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hostile_component import install
from raw_server import PATIENCE
from tally import Tally

from tests.server.doors import COMMAND, DOCUMENTS, environment

pytestmark = pytest.mark.usefixtures("processes")

COMMANDS = {
    "--help": 0,
    "--version": 0,
    "no-such-command": 2,
    "index docs": 0,
    "index docs --json": 0,
    "search fusion": 0,
    "search fusion --json": 0,
    "search fusion --explain": 0,
    "search": 2,
    "init": 0,
    "doctor": 0,
    "doctor --json": 0,
    "pipeline check default": 0,
    "pipeline check nowhere.yaml": 2,
    "pipeline show --effective --origin": 0,
    "pipeline plan fusion": 0,
    "pipeline diff default bm25": 0,
    "pipeline schema": 0,
    "flags list": 0,
    "flags audit": 0,
    "serve": 0,
    "serve --host 0.0.0.0 --transport http": 2,
}
FULL = 1
STREAMS = {
    ">&-": None,
    "2>&-": None,
    "<&-": None,
    "<&- >&- 2>&-": None,
    "2>/dev/full": None,
    ">/dev/full": FULL,
    ">/dev/full 2>/dev/full": FULL,
    ">/dev/full 2>&-": FULL,
}
"""What a shell writes after a command, and the exit status of commands that have something to say then."""
SPEAKS_TO_STDERR = {command for command in COMMANDS if COMMANDS[command] == 2}


def in_shell(root: Path, command: str, streams: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["sh", "-c", f'"$0" {command} {streams}', COMMAND],
        capture_output=True, check=False, cwd=root, env=environment(root), timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize("streams", ["<&- >&- 2>&-", ">/dev/full"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_ends_as_it_should_whatever_its_streams_are(
    indexed: Path, workspace: Path, tally: Tally, command: str, streams: str
) -> None:
    writes = command.startswith(("index", "init"))
    ran = in_shell(workspace if writes else indexed, command, streams)
    silent = command == "serve" or command in SPEAKS_TO_STDERR
    expected = STREAMS[streams] if STREAMS[streams] and not silent else COMMANDS[command]
    assert ran.returncode == expected, ran.stderr
    assert b"Traceback" not in ran.stdout + ran.stderr
    assert b"Exception ignored" not in ran.stderr
    if expected == FULL and streams == ">/dev/full":
        assert ran.stderr.count(b"E201") == 1
    tally.survived()


@pytest.mark.parametrize("streams", STREAMS)
def test_what_is_indexed_is_found_whatever_the_streams_were(tmp_path: Path, tally: Tally, streams: str) -> None:
    for name, text in DOCUMENTS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    in_shell(tmp_path, "index docs", streams)
    assert b"docs/storage/wal.md" in in_shell(tmp_path, "search computeMPAB", "").stdout
    assert (tmp_path / "memory.db").read_bytes().startswith(b"SQLite format 3\0")
    tally.survived()


@pytest.mark.parametrize("command", ["--help", "index docs", "search fusion --json", "doctor", "no-such-command"])
def test_a_reader_that_leaves_early_sees_no_traceback(indexed: Path, tally: Tally, command: str) -> None:
    if command.startswith("index"):
        command += " --dry-run"
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(
        [COMMAND, *command.split()], stdout=writing, stderr=subprocess.PIPE, env=environment(indexed), cwd=indexed
    ) as process:
        os.close(writing)
        _, err = process.communicate(timeout=PATIENCE)
    expected = COMMANDS[command] if command in SPEAKS_TO_STDERR else 141
    assert process.returncode == expected
    assert b"Traceback" not in err
    assert b"Exception ignored" not in err
    tally.survived()


@pytest.mark.parametrize("raises", ["SystemExit", "GeneratorExit", "Unspeakable", "Endless"])
def test_a_component_that_wants_to_end_the_command_is_an_error(
    indexed: Path, tmp_path: Path, tally: Tally, raises: str
) -> None:
    env = environment(indexed, **install(tmp_path))
    ran = subprocess.run(
        [COMMAND, "search", f"{raises} fusion"],
        capture_output=True,
        check=False,
        env=env,
        cwd=indexed,
        timeout=PATIENCE,
    )
    assert ran.stderr.startswith((b"error E199: ", b"error E040: "))
    assert (ran.returncode, ran.stdout) == (1, b"")
    assert len(ran.stderr) < 5000
    tally.survived()


def test_an_exit_while_components_are_registered_costs_their_components(
    indexed: Path, tmp_path: Path, tally: Tally
) -> None:
    env = environment(indexed, **install(tmp_path), HOSTILE_AT="registering")
    for command, status, code in (("search fusion", 2, b"E116"), ("doctor", 1, b"E116")):
        ran = subprocess.run([COMMAND, *command.split()], capture_output=True, check=False, env=env, cwd=indexed)
        assert ran.returncode == status
        assert code in ran.stdout + ran.stderr
        assert b"E199" not in ran.stdout + ran.stderr
        tally.survived()
