"""The workspace that all clients ask, and servers over it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COMMAND = Path(sys.executable).parent / "speckit-memory"
NOTES = 200
"""Enough documents for several reports of progress: a scan tells of it after each 64."""
PATIENCE = 60


def make(root: Path) -> None:
    """Writes the documents and indexes them."""
    (root / ".speckit").mkdir(parents=True)
    (root / "notes").mkdir()
    for number in range(NOTES):
        (root / "notes" / f"{number}.md").write_text(
            f"# Note {number}\n\nRelay {number} is wired to bus {number % 7}.\n"
        )
    (root / "notes" / "wal.md").write_text("# Write-ahead log\n\nThe quokka store runs in WAL mode.\n")
    subprocess.run([COMMAND, "index", "notes"], cwd=root, env=environment(root), check=True, capture_output=True)


def environment(root: Path) -> dict[str, str]:
    """The environment of a server over the workspace."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPECKIT_", "PYTHON"))}
    return {**kept, "SPECKIT_ROOT": str(root)}


def command() -> list[str]:
    """The command of a server, over stdio unless more is said."""
    return [str(COMMAND), "serve"]


@contextmanager
def serving(root: Path) -> Iterator[str]:
    """A server over HTTP on a free port: its address."""
    started = [*command(), "--transport", "http", "--port", "0"]
    log = root.parent / "http.log"
    with log.open("w") as stderr, subprocess.Popen(started, cwd=root, env=environment(root), stderr=stderr) as process:
        try:
            yield _address(log)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)


def _address(log: Path) -> str:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := re.search(r'"url": "([^"]+)"', log.read_text()):
            return found[1]
        time.sleep(0.05)
    raise SystemExit(f"the server over HTTP does not listen:\n{log.read_text()}")
