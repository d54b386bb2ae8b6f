"""The console script and the MCP server inside this process, with the environment, folder and streams of their own.

What a process reads while it starts (locale, interpreter flags), its exit and signals are not seen here: the proof tier
runs the installed script for those.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any
from unittest import mock

from mcp import Client

if TYPE_CHECKING:
    from speckit_memory.server.transport.workspace_registry import WorkspaceRegistry


@contextmanager
def standing_in(environ: Mapping[str, str], folder: Path) -> Iterator[None]:
    """This process has the environment and the working folder of another one."""
    before = Path.cwd()
    with mock.patch.dict(os.environ, environ, clear=True):
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


@contextmanager
def _streams(*files: io.IOBase) -> Iterator[None]:
    """Descriptors 0, 1 and 2 lead to these files, and so do `sys.stdin`, `sys.stdout` and `sys.stderr`."""
    objects = {name: getattr(sys, name) for name in ("stdin", "stdout", "stderr", "__stdout__", "__stderr__")}
    for name in ("stdout", "stderr"):
        objects[name].flush()
    kept = [os.dup(descriptor) for descriptor in range(3)]
    try:
        for descriptor, file in enumerate(files):
            os.dup2(file.fileno(), descriptor)
        encoding = os.environ.get("PYTHONIOENCODING", "").partition(":")[0] or "utf-8"
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, "r", closefd=False)), encoding)
        for descriptor, name in ((1, "stdout"), (2, "stderr")):
            raw = io.BufferedWriter(io.FileIO(descriptor, "w", closefd=False))
            setattr(sys, name, io.TextIOWrapper(raw, "utf-8", "backslashreplace", line_buffering=True))
        yield
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        for descriptor, own in enumerate(kept):
            os.dup2(own, descriptor)
            os.close(own)
        for name, stream in objects.items():
            setattr(sys, name, stream)


def run(
    arguments: Sequence[str | Path], environ: Mapping[str, str], folder: Path, stdin: bytes = b""
) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command line."""
    from speckit_memory.server.commands.cli import run as run_command

    with TemporaryFile() as out, TemporaryFile() as err, TemporaryFile() as given:
        given.write(stdin)
        given.seek(0)
        line = [os.fspath(argument) for argument in arguments]
        script = mock.patch.object(sys, "argv", [str(Path(sys.executable).parent / "speckit-memory"), *line])
        with standing_in(environ, folder), _streams(given, out, err), script:
            status = run_command(line)
        for file in (out, err):
            file.seek(0)
        return status, out.read().decode(), err.read().decode()


@asynccontextmanager
async def connected(root: Path, environ: Mapping[str, str], *arguments: str, **client: Any) -> AsyncIterator[Client]:
    """A client of `serve` with these arguments, over streams in memory."""
    from speckit_memory.server.commands.cli import run as run_command
    from speckit_memory.server.replies.worker_calls import ThreadLimits
    from speckit_memory.server.transport import stdio

    wanted: list[WorkspaceRegistry] = []

    def started(served: WorkspaceRegistry) -> int:
        wanted.append(served)
        return 0

    with standing_in(environ, root):
        with mock.patch.object(stdio, "serve_stdio", started):
            # a store that is still being loaded when the client leaves is never closed: a process would end
            status = run_command(["serve", "--no-warm-up", *arguments])
        assert wanted, f"serve ended with {status}"
        limits = ThreadLimits()
        workspace, middleware = stdio.workspace_of_client(wanted[0])
        server = stdio.server_of(wanted[0], workspace, middleware, limits)
        try:
            async with Client(server, **client) as connection:
                yield connection
        finally:
            workspace.finish(limits.running)
