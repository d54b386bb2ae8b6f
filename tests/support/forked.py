"""Runs of an installed console script without the start of an interpreter: see `fork_server.py`.

A run is given arguments, environment, folder, mask of modes and standard streams as a new process would be, and runs
the text of the installed script. What interpreters and libraries read while they start is what it was when the first
run was asked for: `fits` tells whether an environment agrees with that.
"""

from __future__ import annotations

import atexit
import os
import selectors
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing import Pipe
from pathlib import Path
from tempfile import mkdtemp

import fork_client
import tiers
from fork_server import WORD

COMMON = (
    *(
        "speckit_memory.server.commands.cli",
        "speckit_memory.server.operations.terminal.searching",
        "speckit_memory.engine.api.memory",
    ),
    *("apsw", "numpy", "pydantic", "Stemmer", "yaml"),
)
"""Modules that nearly every command imports. What a command imports beyond them is imported in its own process."""
SERVING = (*COMMON, "structlog", "speckit_memory.server.transport.stdio", "speckit_memory.server.mcp_server.app")
"""The same of the server."""
_SERVER, _CLIENT = (Path(__file__).with_name(name) for name in ("fork_server.py", "fork_client.py"))
_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "TZ", "NPY_", "OPENBLAS_", "OMP_", "MKL_", "TOKENIZERS_")
"""Beginnings of the names of variables that interpreters and libraries read while they start."""


def _read_at_start(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.startswith(_AT_START)}


@cache
def _at_start() -> dict[str, str]:
    """The environment of all processes that are copied."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("SPECKIT_", "PYTHON"))}


def _place(modules: tuple[str, ...]) -> str:
    """The socket of a process that is copied, for a test that may start processes."""
    tiers.require_processes("a copy of a process")
    return _started(modules)


@cache
def _started(modules: tuple[str, ...]) -> str:
    """The socket of a process that is copied; it ends with this one."""
    folder = mkdtemp(prefix="fork-")
    place = f"{folder}/s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen(64)
        command = [sys.executable, str(_SERVER), str(listener.fileno()), *modules]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[listener.fileno()], env=_at_start(),
            cwd="/",
        )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline(), "the process to copy has ended"

    def end() -> None:
        process.communicate()
        shutil.rmtree(folder)

    atexit.register(end)
    return place


def fits(environ: Mapping[str, str]) -> bool:
    """Whether an interpreter that starts with this environment is what those are that are copied."""
    return _read_at_start(environ) == _read_at_start(_at_start())


def command(script: Path, modules: tuple[str, ...] = SERVING) -> list[str]:
    """What to start in place of a script, with its arguments behind it: it stands for the process of the script.

    Signals reach that process, but its id is another one.
    """
    return [sys.executable, "-I", "-S", str(_CLIENT), _place(modules), str(script)]


def run(
    script: Path, arguments: Sequence[str | Path], environ: Mapping[str, str], cwd: Path, timeout: float
) -> subprocess.CompletedProcess[bytes]:
    """A finished run that had nothing to read; TimeoutExpired after so many seconds, when it is killed."""
    line = [os.fsencode(part) for part in (script, *arguments)]
    named = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
    (out, out_theirs), (err, err_theirs) = Pipe(duplex=False), Pipe(duplex=False)
    with out, err:
        with out_theirs, err_theirs, Path(os.devnull).open("rb") as nothing:
            streams = [nothing.fileno(), out_theirs.fileno(), err_theirs.fileno()]
            asked = fork_client.ask(_place(COMMON), streams, line, named, os.fsencode(cwd.absolute()))
        with asked:
            received, late = _received([out.fileno(), err.fileno(), asked.fileno()], time.monotonic() + timeout)
    output, errors, said = received
    if late:
        raise subprocess.TimeoutExpired(line, timeout, output, errors)
    _process, status = (number for (number,) in WORD.iter_unpack(said))
    return subprocess.CompletedProcess(line, status, output, errors)


def _received(descriptors: Sequence[int], deadline: float) -> tuple[list[bytes], bool]:
    """What comes through each until it is closed, and whether the deadline came before."""
    received = {descriptor: bytearray() for descriptor in descriptors}
    with selectors.DefaultSelector() as selector:
        for descriptor in descriptors:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map() and (left := deadline - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                part = os.read(key.fd, 65536)
                received[key.fd] += part
                if not part:
                    selector.unregister(key.fd)
        late = bool(selector.get_map())
    return [bytes(received[descriptor]) for descriptor in descriptors], late
