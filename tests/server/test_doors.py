"""A console script that is run in a copy of a process does what it does in a new one."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import forked
import in_process
import pytest
from raw_server import INITIALIZE, call_of, raw_server

from tests.server.doors import Ran, call, environment

pytestmark = pytest.mark.usefixtures("processes")

TELLING = """\
import atexit, gc, json, locale, os, signal, sys, threading, warnings
from importlib import import_module

for name in {common}:  # some of them change what all modules share
    import_module(name)

def told():
    mask = os.umask(0o022)
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return {
        "arguments": sys.argv, "path": sys.path, "flags": str(sys.flags), "warnings": str(warnings.filters),
        "environment": {name: os.environ[name] for name in sorted(os.environ)}, "mask": mask, "folder": os.getcwd(),
        "encodings": [[s.encoding, s.errors, s.fileno(), s.isatty(), s.line_buffering] for s in streams],
        "same": [sys.stdin is sys.__stdin__, sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__],
        "read": sys.stdin.read(), "descriptors": sorted(os.listdir("/dev/fd")),
        "signals": {number: str(signal.getsignal(number)).split(" at ")[0] for number in signal.valid_signals()},
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])), "wakes": signal.set_wakeup_fd(-1),
        "locale": [locale.setlocale(locale.LC_ALL), sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()],
        "threads": threading.active_count(), "main": [__name__, sys.modules["__main__"].__name__],
        "collecting": [gc.isenabled(), gc.get_threshold()], "nested": sys.getrecursionlimit(),
        "groups": [os.getpgrp(), os.getsid(0)], "hooks": [str(sys.gettrace()), str(sys.getprofile())],
    }

if __name__ == "__main__":
    atexit.register(print, "at exit")
    print(json.dumps(told()), flush=True)
    print("left in a buffer", end="")
    print("to errors \\udcff", file=sys.stderr)
    if "raise" in sys.argv:
        raise KeyError("to whoever reads it")
    if "die" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(int(sys.argv[1]) if sys.argv[1:] else None)
"""
WORDS = "x" * 100_000


@pytest.fixture(scope="module")
def telling(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A script that tells what a process can know of itself."""
    script = tmp_path_factory.mktemp("scripts") / "telling"
    script.write_text(TELLING.replace("{common}", repr(forked.COMMON)), encoding="utf-8")
    return script


def spawned(script: Path, arguments: list[str], env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, script, *arguments], env=env, cwd=cwd, capture_output=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize("arguments", [[], ["3", "ünï \udcff", "--", ""], ["raise"], ["die"]])
def test_a_process_cannot_tell_in_which_way_it_was_made(telling: Path, tmp_path: Path, arguments: list[str]) -> None:
    env = environment(tmp_path, NAMED="ünï \udcff", EMPTY="")

    new, copied = spawned(telling, arguments, env, tmp_path), forked.run(telling, arguments, env, tmp_path, 60)

    assert forked.fits(env)
    assert copied.returncode == new.returncode
    of_new, of_copied = (json.loads(ran.stdout.splitlines()[0]) for ran in (new, copied))
    assert of_copied == of_new
    assert copied.stdout == new.stdout
    ends = [(ran.stderr.splitlines()[:1], ran.stderr.splitlines()[-1:]) for ran in (new, copied)]
    assert ends[0] == ends[1]  # between them a traceback has further lines


@pytest.mark.parametrize("name", ["PYTHONWARNINGS", "PYTHONPATH", "LC_ALL", "TZ", "OPENBLAS_NUM_THREADS"])
def test_what_is_read_at_the_start_takes_a_process_of_its_own(tmp_path: Path, name: str) -> None:
    assert not forked.fits(environment(tmp_path, **{name: "another"}))


def test_what_takes_too_long_is_ended(tmp_path: Path) -> None:
    script = tmp_path / "waiting"
    script.write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n")

    with pytest.raises(subprocess.TimeoutExpired) as raised:
        forked.run(script, [], environment(tmp_path), tmp_path, 2)

    ended = subprocess.run(["ps", "-o", "stat=", "-p", raised.value.stdout or b"0"], capture_output=True, check=False)
    assert ended.stdout.strip() in (b"", b"Z")


def test_many_at_once_and_long_ones_are_kept_apart(tmp_path: Path) -> None:
    script = tmp_path / "long"
    script.write_text("import sys\nprint(sys.argv[1] * int(sys.argv[2]))\nsys.exit(int(sys.argv[1]))\n")
    env = environment(tmp_path)

    def run(number: int) -> Any:
        return forked.run(script, [str(number), "300000", WORDS], env, tmp_path, 60)

    with ThreadPoolExecutor(8) as threads:
        ran = list(threads.map(run, range(10)))

    assert [one.returncode for one in ran] == list(range(10))
    assert [one.stdout for one in ran] == [f"{number}".encode() * 300_000 + b"\n" for number in range(10)]


COMMANDS = (
    "",
    "--version",
    "serch x",
    "init --json",
    "index docs --json",
    "pipeline plan fusion",
    "search",
    "show docs/cjk.md",
    "save docs/new.md --content Words.",
    "delete docs/tone.md --json",
    "maintain",
    "lineage docs/fusion.md --json",
    "links history",
    "graph show --json",
    "checkpoint list",
    "model list",
    "pipeline check broken.yaml",
    "pipeline schema",
    "flags audit --json",
    "eval history",
    "task history specs",
    "export out --json",
    "serve --pipeline broken.yaml",
)
_OF_EACH_RUN = re.compile(r'\d{8}-\d{6}-[0-9a-f]{6}|[0-9a-f]{16}|(?<="seconds": )[0-9.e-]+|indexing: .*\n')
_TIMES = re.compile(r'(?<=_ms": )[0-9.e-]+')
"""What differs from run to run whatever the process."""


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_says_and_does_the_same_in_any_way(unasked: Path, tmp_path: Path, line: str) -> None:
    told = []
    for way in ("new process", "copied process", "this process"):
        root = Path(shutil.copytree(unasked, tmp_path / "workspace"))
        (root / "broken.yaml").write_text("pipeline: mine\nfusoin: []\n")
        more = {"XDG_CACHE_HOME": str(tmp_path / way)}
        if way == "this process":
            ran = Ran(*in_process.run(line.split(), environment(root, **more), root))
        else:
            ran = call(root, line.split(), more, spawned=way == "new process")
        files = sorted(_OF_EACH_RUN.sub("", str(file.relative_to(root))) for file in root.rglob("*"))
        told.append((ran.status, _OF_EACH_RUN.sub("", ran.out), _OF_EACH_RUN.sub("", ran.err), files))
        shutil.rmtree(root)

    assert told[0] == told[1] == told[2]


SAID = (
    INITIALIZE,
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    call_of(2, "memory_list"),
    call_of(3, "memory_causal_stats"),
    call_of(4, "memory_sarch"),
)


def test_a_server_answers_the_same_in_either_way(unasked: Path, tmp_path: Path) -> None:
    told = []
    for is_new in (True, False):
        root = Path(shutil.copytree(unasked, tmp_path / "workspace"))
        with raw_server(root, spawned=is_new) as server:
            answers = []
            for message in SAID:
                server.send(message)
                answers += [server.answer(message["id"])] if "id" in message else []
            told.append((_OF_EACH_RUN.sub("", _TIMES.sub("", json.dumps(answers))), server.close()))
        shutil.rmtree(root)

    assert told[0] == told[1]
    assert told[0][1] == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_to_what_stands_for_a_server_reaches_it(workspace: Path, number: int) -> None:
    statuses = []
    for is_new in (True, False):
        with raw_server(workspace, "--no-warm-up", spawned=is_new) as server:
            server.start()
            server.process.send_signal(number)
            assert server.said.get(timeout=60) is None  # it has gone, and with it whatever held its output
            statuses.append(server.process.wait(60))

    assert statuses[0] == statuses[1]
