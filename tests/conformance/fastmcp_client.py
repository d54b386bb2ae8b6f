"""The fastmcp client, in an environment of its own: sessions over both transports, in both eras of the protocol."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.conformance.outcome import Outcome
from tests.conformance.workspace import COMMAND, environment

SESSION = Path(__file__).with_name("fastmcp_session.py")
MODES = ("legacy", "auto")
PATIENCE = 300


def run(python: Path, url: str, root: Path) -> Iterator[Outcome]:
    """What became of each part of the sessions."""
    for transport, server in (("http", url), ("stdio", str(COMMAND))):
        for mode in MODES:
            done = subprocess.run(
                [python, SESSION, server, root, mode], env=environment(root), capture_output=True, text=True,
                check=False, timeout=PATIENCE,
            )  # fmt: skip
            client = f"fastmcp {mode}"
            if done.returncode:
                yield Outcome(client, transport, "session", 0, (done.stderr[-1000:],))
                continue
            for part, problem in json.loads(done.stdout.splitlines()[-1]).items():
                yield Outcome(client, transport, part, 1, (problem,) if problem else ())
