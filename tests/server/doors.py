"""The installed console script and the documents that the tests of the doors share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forked

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


Run = Callable[..., Ran]


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
) -> Ran:
    """Runs the console script, in a copy of a process that has imported what commands share (`forked.py`).

    In a new process where the interpreter's own start is the point, `spawned`, or depends on the environment.
    """
    environ = environment(root, **(env or {}))
    if spawned or not forked.fits(environ):
        finished = subprocess.run(
            [COMMAND, *arguments], capture_output=True, check=False, cwd=cwd or root, env=environ,
            stdin=subprocess.DEVNULL, timeout=PATIENCE,
        )  # fmt: skip
    else:
        finished = forked.run(COMMAND, arguments, environ, cwd or root, PATIENCE)
    ran = Ran(finished.returncode, finished.stdout.decode(), finished.stderr.decode())
    assert "Traceback" not in ran.out + ran.err
    return ran


def server_command(environ: Mapping[str, str], *arguments: str, spawned: bool = False) -> list[str]:
    """What starts `serve` with this environment: a process that stands for a copy of one that has imported the server.

    The script itself where the interpreter's own start is the point, `spawned`, or depends on the environment.
    """
    start = [str(COMMAND)] if spawned or not forked.fits(environ) else forked.command(COMMAND)
    return [*start, "serve", *arguments]


def indexed_workspace(root: Path) -> Path:
    """Writes the documents into a folder and indexes them."""
    for name, text in DOCUMENTS.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    ran = call(root, ["index", "docs", "--json"])
    assert ran.status == 0, ran.err
    assert ran.json["created"] == sorted(DOCUMENTS)
    return root
