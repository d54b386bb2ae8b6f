"""A process that has imported what runs of a script have in common, and becomes each of them in a copy of itself.

Runs as a script, see `forked.py`: `fork_server.py DESCRIPTOR MODULE...`. Whoever connects to the socket DESCRIPTOR
sends three descriptors, which are standard input, output and error of a run, and what a caller gives to a process: the
script and its arguments, environment, folder, mask of modes, and whether it leads a session. A copy of this process
runs the text of the script as its main program. This process tells its id, and its exit status as soon as it has ended.
A copy whose caller has gone is killed. This process ends when its own standard input does.
"""

from __future__ import annotations

import atexit
import marshal
import os
import runpy
import select
import signal
import socket
import struct
import sys
import threading
from contextlib import suppress
from importlib import import_module
from io import BufferedReader, BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from typing import NoReturn, TextIO

WORD = struct.Struct("=q")
"""Ids, exit statuses and lengths as they are sent."""
UNFLUSHED = 120
"""How an interpreter ends that could not write what was left for standard output."""


def _prepare(modules: list[str]) -> None:
    """Imports what runs share, without a thread: a copy of a process has only one of them."""
    from speckit_memory.server.entry import SINGLE_THREADED
    from speckit_memory.server.logging.logs import without_rich

    before = dict(os.environ)
    for name in SINGLE_THREADED:  # as the console script has it before it imports anything
        os.environ[name] = "false" if name.startswith("TOKENIZERS") else "1"
    with without_rich():  # as the server has it
        for module in modules:
            import_module(module)
    os.environ.clear()
    os.environ.update(before)
    threads = Path("/proc/self/task")
    assert not threads.exists() or len(list(threads.iterdir())) == 1, "an import has started a thread"


class _Copies:
    """The copies that run, and who called for them."""

    def __init__(self) -> None:
        self.callers: dict[int, socket.socket] = {}
        self.poll = select.poll()

    def serve(self, listener: socket.socket) -> socket.socket | None:
        """Copies this process for each caller, whom it returns in the copy; None here, when this one shall end."""
        awake, woken = socket.socketpair()
        for end in (awake, woken):
            end.setblocking(False)
        signal.set_wakeup_fd(awake.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for descriptor in (listener.fileno(), woken.fileno(), sys.stdin.fileno()):
            self.poll.register(descriptor, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in self.poll.poll()}
            if woken.fileno() in ready:
                with suppress(BlockingIOError):
                    while woken.recv(4096):
                        pass
                self.report()
            self.end_forsaken(ready)
            if sys.stdin.fileno() in ready:
                self.end_forsaken({caller.fileno() for caller in self.callers.values()})
                return None
            if listener.fileno() in ready:
                caller, _ = listener.accept()
                process = os.fork()
                if not process:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    for other in (awake, woken, *self.callers.values()):
                        other.close()
                    return caller
                self.callers[process] = caller
                self.poll.register(caller, 0)  # what it sends is for the copy: this tells only that it has gone
                with suppress(OSError):
                    caller.sendall(WORD.pack(process))

    def report(self) -> None:
        """Tells the callers of copies that have ended how they did."""
        while self.callers:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return
            with self.callers.pop(process) as caller:
                with suppress(KeyError):
                    self.poll.unregister(caller)
                with suppress(OSError):
                    caller.sendall(WORD.pack(os.waitstatus_to_exitcode(status)))

    def end_forsaken(self, ready: set[int]) -> None:
        """Kills copies whose callers have gone."""
        for process, caller in self.callers.items():
            if caller.fileno() in ready:
                self.poll.unregister(caller)
                os.kill(process, signal.SIGKILL)


def _become(caller: socket.socket) -> None:
    """Takes the place that a new process would have."""
    with caller:
        _, streams, _, _ = socket.recv_fds(caller, 1, 3)
        with caller.makefile("rb") as sent:
            (length,) = WORD.unpack(sent.read(WORD.size))
            arguments, environment, folder, mask, leads = marshal.loads(sent.read(length))
    for wanted, descriptor in enumerate(streams):
        os.dup2(descriptor, wanted)
        os.close(descriptor)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = _opened(getattr(sys, name), mode)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    if leads:
        os.setsid()
    os.environb.clear()
    os.environb.update(environment)
    os.umask(mask)
    os.chdir(folder)
    sys.argv = [os.fsdecode(argument) for argument in arguments]
    sys.path[0] = str(Path(sys.argv[0]).parent)


def _opened(before: TextIO, mode: str) -> TextIOWrapper:
    """A standard stream, in the encoding that the interpreter has chosen for it."""
    raw = FileIO(before.fileno(), mode, closefd=False)
    buffered = BufferedReader(raw) if mode == "r" else BufferedWriter(raw)
    return TextIOWrapper(buffered, before.encoding, before.errors, line_buffering=bool(before.line_buffering))


def _run() -> NoReturn:
    """Runs the script and ends as an interpreter does, but for taking itself apart.

    That would copy nearly every page that is shared with the process which this one was copied from, and take longer
    than most commands. Threads are waited for, what was registered for the end is called, streams are flushed.
    """
    status: object = 0
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        status = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    if isinstance(status, str):
        print(status, file=sys.stderr)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        status = UNFLUSHED
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(status & 0xFF if isinstance(status, int) else 0 if status is None else 1)


def main() -> None:
    """Serves; a copy becomes what it is to be."""
    _prepare(sys.argv[2:])
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        print("ready", flush=True)
        caller = _Copies().serve(listener)
    if caller:
        _become(caller)
        _run()


if __name__ == "__main__":
    main()
