"""Runs of the installed console script that are killed at a point which is the same each time.

A point is a statement or a commit of SQLite in the store's files, a message to PostgreSQL, or a change of the files
below a folder. A run that is let go on tells how many points it passes; another one is killed with SIGKILL when it
comes to one of them.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess

import forked

SCRIPT = Path(sys.executable).parent / "speckit-memory"
_KILLED = Path(__file__).with_name("killed_script.py")
PATIENCE = 240
"""Seconds after which a run is given up."""


def _run(root: Path, arguments: Sequence[str], env: Mapping[str, str], **more: str) -> CompletedProcess[bytes]:
    environ = {**env, "KILLED_ROOT": str(root), **{f"KILLED_{name}": value for name, value in more.items()}}
    return forked.run(_KILLED, [SCRIPT, *arguments], environ, root, PATIENCE)


def points(root: Path, arguments: Sequence[str], env: Mapping[str, str]) -> int:
    """How many points a run passes below a folder. It must succeed."""
    told = root.parent / f"{root.name}.points"
    told.unlink(missing_ok=True)
    ran = _run(root, arguments, env, TOLD=str(told))
    assert ran.returncode == 0, ran.stderr.decode()
    return int(told.read_text())


def killed(root: Path, arguments: Sequence[str], env: Mapping[str, str], at: int) -> bool:
    """Runs the script until it comes to this point; False when it ended before."""
    ran = _run(root, arguments, env, AT=str(at))
    assert ran.returncode in (0, -signal.SIGKILL), ran.stderr.decode()
    return ran.returncode != 0


def spread(passed: int, wanted: int, first: int = 1) -> list[int]:
    """So many points from `first` to the last, evenly."""
    step = (passed - first) / max(wanted - 1, 1)
    return sorted({first + round(step * number) for number in range(wanted)})
