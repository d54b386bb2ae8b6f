"""Starts further processes of the product."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import Any


def start_python(module: str, *numbers: int, **further: Any) -> subprocess.Popen[bytes]:
    """Starts `main` of a module in a new process with the import path of this one, and as few garbage collections.

    It is not forked, since this process may have threads, and it is in a session of its own, so that Ctrl-C in a
    terminal reaches this process alone.

    Args:
        module: The dotted name of the module.
        numbers: What `main` is called with, such as the descriptor of a socket.
        further: Further arguments of `subprocess.Popen`: streams, descriptors to pass on, environment.

    Raises:
        OSError: The process cannot be started.
    """
    # "" in sys.path means the current folder, which may change until the process starts.
    path = [entry or str(Path.cwd()) for entry in sys.path]
    first = 1 + len(numbers)
    program = (
        f"import gc, sys; gc.set_threshold{gc.get_threshold()}; sys.path[:] = sys.argv[{first}:]; "
        f"from {module} import main; main(*map(int, sys.argv[1:{first}]))"
    )
    # -P keeps the current folder off the path until the program restores that of this process.
    command = [sys.executable, "-P", "-c", program, *map(str, numbers), *path]
    return subprocess.Popen(command, start_new_session=True, **further)
