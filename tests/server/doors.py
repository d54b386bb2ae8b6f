"""The doors of the product, command line and MCP, and the documents that their tests share.

A test with the fixture `processes` goes through the installed console script; any other stays in this process.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, TypeVar

import anyio
import forked
import in_process
import tiers
from files import write_file
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

T = TypeVar("T")

COMMAND = Path(sys.executable).parent / "speckit-memory"
PATIENCE = 240
"""Seconds after which a run is given up."""

DOCUMENTS = {
    "docs/fusion.md": (
        "---\ntitle: Why rank fusion\ntrigger_phrases: [reciprocal rank fusion]\nimportance_tier: important\n"
        "context_type: decision\n---\n# Why rank fusion\n\nScores of lexical and dense channels cannot be compared, "
        "so the ranks are fused.\n"
    ),
    "docs/storage/wal.md": (
        "# Write-ahead log\n\nThe store runs SQLite in WAL mode. The function `computeMPAB` and the setting "
        "busy_timeout are described in REQ-006.\n"
    ),
    "docs/storage/backup.md": "# Backups\n\nCopy the file with the online backup, never with cp.\n",
    "docs/cjk.md": "# 検索の設計\n\n全文検索は二文字の並びで日本語を索引する。\n",
    "docs/tone.md": "# Tone\n\nBe or not to be: what this is about is how we write to one another.\n",
    "docs/long.md": "# Long passage\n\n" + "The quokka cache keeps warm entries close to the reader. " * 60 + "\n",
}


def note_as_read(store: Path, file: Path, key: str) -> None:
    """Has a store take this file for the one that it read: a copy, or a change behind its back, shows in its ctime."""
    with closing(sqlite3.connect(store)) as database, database:
        database.execute("UPDATE memories SET ctime_ns = ? WHERE key = ?", (file.stat().st_ctime_ns, key))


@dataclass(frozen=True)
class Ran:
    """A finished run of the console script."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON document."""
        return json.loads(self.out)

    def ended(self, status: int) -> Ran:
        """This run, which must have ended with this status."""
        assert self.status == status, self.err or self.out
        return self

    def ok(self) -> Ran:
        """This run, which must have ended well."""
        return self.ended(0)

    def refused(self, code: str, status: int = 2) -> dict[str, Any]:
        """The error, of this code, with which this run must have ended."""
        error: dict[str, Any] = self.json["error"]
        assert (self.status, error["code"]) == (status, code), self.err or self.out
        return error


Run = Callable[..., Ran]


def at(document: Any, path: str) -> Any:
    """What stands at a dotted path, such as "results.0.key"; None where that ends early."""
    for name in path.split("."):
        if isinstance(document, list):
            document = document[int(name)] if document else None
        else:
            document = (document or {}).get(name)
    return document


def environment(root: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPECKIT_", "PYTHON"))}
    return {**kept, "SPECKIT_ROOT": str(root), "SPECKIT_DB": str(root / "memory.db"), **more}


def call(
    root: Path,
    arguments: Sequence[str | Path],
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    *,
    spawned: bool = False,
    stdin: bytes = b"",
) -> Ran:
    """Runs a command line.

    A process of its own is a copy of one that has imported what commands share (`forked.py`), or a new one where the
    interpreter's own start is the point, `spawned`, or depends on the environment.
    """
    environ, folder = environment(root, **(env or {})), cwd or root
    if not tiers.may_spawn():
        assert not spawned, "a new process is a matter for a test with the fixture `processes`"
        ran = Ran(*in_process.run(arguments, environ, folder, stdin))
    else:
        if spawned or stdin or not forked.fits(environ):
            start = [COMMAND] if spawned else script(environ)
            finished = subprocess.run(
                [*start, *arguments], capture_output=True, check=False, cwd=folder, env=environ, input=stdin,
                timeout=PATIENCE,
            )  # fmt: skip
        else:
            finished = forked.run(COMMAND, arguments, environ, folder, PATIENCE)
        ran = Ran(finished.returncode, finished.stdout.decode(), finished.stderr.decode())
    assert "Traceback" not in ran.out + ran.err
    return ran


@asynccontextmanager
async def connected(
    root: Path, *arguments: str, env: Mapping[str, str] | None = None, errlog: TextIO | None = None, **client: Any
) -> AsyncIterator[Client]:
    """A client of `serve` with these arguments, over stdio or over streams in memory; `client` are settings of its.

    A process writes its log to `errlog`; in memory there is none.
    """
    environ = environment(root, **(env or {}))
    if not tiers.may_spawn():
        async with in_process.connected(root, environ, *arguments, **client) as connection:
            yield connection
        return
    command, *rest = server_command(environ, *arguments)
    server = StdioServerParameters(command=command, args=rest, env=environ, cwd=root)
    async with Client(stdio_client(server, errlog=errlog or sys.stderr), **client) as connection:
        yield connection


def with_client(root: Path, work: Callable[[Client], Awaitable[T]], *arguments: str, **env: str) -> T:
    """What this work with a client returns; `env` adds to the environment of the server."""

    async def session() -> T:
        async with connected(root, *arguments, env=env) as client:
            return await work(client)

    return anyio.run(session)


def script(environ: Mapping[str, str], modules: tuple[str, ...] = forked.COMMON) -> list[str]:
    """What starts the console script with this environment: a process that stands for a copy of one that has imported
    these modules, or the script itself where the interpreter's own start depends on the environment."""
    tiers.require_processes("the console script")
    return forked.command(COMMAND, modules) if forked.fits(environ) else [str(COMMAND)]


def server_command(environ: Mapping[str, str], *arguments: str, spawned: bool = False) -> list[str]:
    """What starts `serve` with this environment: the script itself where the interpreter's own start is the point,
    `spawned`."""
    tiers.require_processes("serve")
    start = [str(COMMAND)] if spawned else script(environ, forked.SERVING)
    return [*start, "serve", *arguments]


def indexed_workspace(root: Path) -> Path:
    """Writes the documents into a folder and indexes them."""
    for name, text in DOCUMENTS.items():
        write_file(root / name, text)
    assert call(root, ["index", "docs", "--json"]).ok().json["created"] == sorted(DOCUMENTS)
    return root
