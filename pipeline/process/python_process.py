"""Starts further processes of the product, and limits their memory and time."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
from contextlib import suppress
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


def bound_memory(most: int, *, for_good: bool) -> None:
    """Forbids core dumps and limits the address space of this process, where the platform supports it.

    `most` is in bytes, 0 for no limit. With `for_good` the limit cannot be raised again, nor by child processes.
    """
    try:
        import resource
    except ImportError:
        return
    wanted = [("RLIMIT_CORE", 0)] + ([("RLIMIT_AS", most)] if most else [])
    for name, limit in wanted:
        with suppress(ValueError, OSError, AttributeError):  # the platform lacks this limit, or a lower one is set
            kind = getattr(resource, name)
            hard = resource.getrlimit(kind)[1]
            soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(kind, (soft, soft if for_good else hard))


def expect_within(seconds: float | None) -> None:
    """Sets a timer by which the system ends this process unless it is called again, even during a loop in C.

    `seconds` is None to cancel the timer. Does nothing on platforms without such timers.
    """
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds or 0.0)
