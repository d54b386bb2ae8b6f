"""One process of isolated extensions, from start to end."""

from __future__ import annotations

import atexit
import logging
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context
from socket import socketpair
from threading import Lock, Thread
from typing import Any
from weakref import WeakSet

from speckit_memory.pipeline.isolation.codec import UnreadableError, UnsendableError, pack, unpack
from speckit_memory.pipeline.isolation.limits import (
    ANSWER_ARRAYS,
    ANSWER_DOCUMENT,
    LONGEST_LINE,
    LOST,
    SHOWN_LINES,
    STORE_ARRAYS,
    STORE_DOCUMENT,
)
from speckit_memory.pipeline.isolation.remote_store import StoreServer
from speckit_memory.pipeline.isolation.wire import ArrayWire, EndedError, GarbledError, Remaining
from speckit_memory.pipeline.model.errors import IsolatedFailureError, NotStartedError
from speckit_memory.pipeline.process.python_process import start_python

LOGGER = logging.getLogger("speckit_memory.extensions")
_CHUNK = 65_536
"""In bytes; at least the capacity of a pipe."""


class OutputReader:
    """Reads the pipe of one process until all writers have closed it, so that writers never block.

    It reads in a separate thread that serves no call. Lines are therefore logged in the context of the call during
    which they began, so that log fields such as the id of the query appear in them too.
    """

    def __init__(self, descriptor: int, pid: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._pid = pid
        self._begun = b""
        self._shown = 0
        self._reading = Lock()
        self._ended = False
        self._context = Context()
        self._of_begun = self._context
        Thread(target=self._drain, name="extension-output", daemon=True).start()

    @contextmanager
    def of_one_call(self) -> Iterator[None]:
        """Attributes output written until the end of the block to the caller's call, even if it is read later."""
        with self._reading:
            self._context = copy_context()
        try:
            yield
        finally:
            with self._reading:
                if not self._ended:
                    self._read()
                self._context = Context()

    def _drain(self) -> None:
        readable = select.poll()
        readable.register(self._descriptor, select.POLLIN)
        while not self._ended:
            readable.poll()
            with self._reading:
                self._ended = not self._read()
                if self._ended:
                    os.close(self._descriptor)

    def _read(self) -> bool:
        """Logs the content of the pipe; False if no writer is left."""
        try:
            chunk = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return True
        # `_begun` is the last line as far as it has arrived; the end of the pipe ends it as well
        # An unfinished last line is kept until the rest of it arrives.
        *lines, rest = (self._begun + chunk).split(b"\n")
        if not chunk and rest:
            lines.append(rest)
            rest = b""
        context = self._of_begun if self._begun else self._context
        for line in lines:
            self._show(line, context)
            context = self._context
        self._begun, self._of_begun = rest[:LONGEST_LINE], context
        return bool(chunk)

    def _show(self, line: bytes, context: Context) -> None:
        self._shown += 1
        if self._shown <= SHOWN_LINES:
            text = line[:LONGEST_LINE].decode(errors="backslashreplace")
            context.run(LOGGER.warning, "an extension (process %d) wrote: %s", self._pid, text)
        elif self._shown == SHOWN_LINES + 1:
            context.run(LOGGER.warning, "an extension (process %d) wrote more than %d lines", self._pid, SHOWN_LINES)


_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP", "VIRTUAL_ENV")
_KEPT_BEGINNINGS = ("LC_", "PYTHON", "SPECKIT_", "LD_LIBRARY_PATH", "XDG_", "TOKENIZERS_")
_KEPT_ENDINGS = ("_NUM_THREADS",)
_LAST_SECONDS = 0.5
"""Time for a process to end after its connection has closed, so that its exit status is known."""

Message = tuple[Any, ...]
_living: WeakSet[Process] = WeakSet()


def environment() -> dict[str, str]:
    """The environment variables passed to extensions: paths and locale, but no keys of services."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or name.startswith(_KEPT_BEGINNINGS) or name.endswith(_KEPT_ENDINGS)
    }


class Process:
    """A process started by the constructor.

    One thread at a time holds `turn` and sends requests. Every failure ends the process and its children, and raises
    IsolatedFailureError.
    """

    def __init__(self, memory_mb: int) -> None:
        self.turn = Lock()
        self.ended = False
        if not hasattr(signal, "setitimer"):
            raise NotStartedError("extensions can be isolated on POSIX systems only")
        # Requests and answers go over the socket; the pipe only carries printed output.
        here, there = socketpair()
        out, into = os.pipe()
        try:
            self._process = start_python(
                f"{__package__}.child",
                there.fileno(),
                memory_mb,
                stdin=subprocess.DEVNULL,
                stdout=into,
                stderr=into,
                pass_fds=(there.fileno(),),
                env=environment(),
            )
        except OSError as error:
            here.close()
            os.close(out)
            raise NotStartedError(f"its process could not be started: {error.strerror or error}") from None
        finally:
            # the new process has its own copies of these ends; ours would keep the pipe from ending with it
            there.close()
            os.close(into)
        self._wire = ArrayWire(here, ANSWER_DOCUMENT, ANSWER_ARRAYS)
        self._ending = Lock()
        _living.add(self)
        self._output = OutputReader(out, self._process.pid)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it accepts requests; cleans up if it has ended by itself."""
        if not self.ended and self._process.poll() is not None:
            self.end()
        return not self.ended

    def ask(self, request: Message, seconds: float, remaining: Remaining, store: StoreServer) -> Message:
        """The answer of the process to a request; meanwhile its requests to the store are answered.

        Args:
            request: The request and its arguments.
            seconds: Time limit, also sent to the process.
            remaining: Returns the seconds left of that limit.
            store: Answers requests of the component to the store.

        Raises:
            IsolatedFailureError: If there is no valid answer in time; the process is then ended.
        """
        with self._output.of_one_call():
            return self._answer(request, seconds, remaining, store)

    def _answer(self, request: Message, seconds: float, remaining: Remaining, store: StoreServer) -> Message:
        try:
            self._wire.send(*pack((seconds, *request)), remaining)
            while True:
                # The component may query the store any number of times before it answers.
                message = unpack(*self._wire.receive(remaining), writable=False)
                match message:
                    case ("store", number, name, arguments, released):
                        self._wire.send(*_reply(store.answer(number, name, arguments, released)), remaining)
                    case ("value" | "error", _) | ("invalid", list()):
                        return tuple(message)
                    case _:
                        raise GarbledError("its message is not an answer")
        except TimeoutError:
            raise self._failure(f"it did not answer within {seconds * 1000:.0f} ms; its process was ended") from None
        except (GarbledError, UnreadableError) as error:
            why = str(error) if isinstance(error, GarbledError) else "its message is not an answer"
            raise self._failure(f"{why}; its process was ended") from error
        except EndedError:
            raise self._failure(self._how_it_ended()) from None
        except BaseException:  # an interrupt, or a defect here: pending data on the wire has no receiver any more
            self.end()
            raise

    def _failure(self, why: str) -> IsolatedFailureError:
        self.end()
        return IsolatedFailureError(why)

    def _how_it_ended(self) -> str:
        try:
            status = self._process.wait(_LAST_SECONDS)
        except subprocess.TimeoutExpired:
            return "its process closed the connection; it was ended"
        if status == LOST:
            return "its process lost the connection and ended"
        if status >= 0:
            return f"its process ended with status {status}"
        with suppress(ValueError):
            return f"its process was ended by the signal {signal.Signals(-status).name}"
        return f"its process was ended by the signal {-status}"

    def end(self) -> None:
        """Ends the process and its children in the same session. Thread-safe and idempotent."""
        with self._ending:
            if self.ended:
                return
            self.ended = True
            # the process group may outlive its leader, so it is killed even if the leader has ended
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._wire.close()


def _reply(answer: tuple[Any, ...]) -> tuple[bytes, bytes]:
    try:
        reply = pack(answer)
    except UnsendableError as error:
        return pack(("error", "TypeError", "", str(error)))
    if len(reply[0]) > STORE_DOCUMENT or len(reply[1]) > STORE_ARRAYS:
        return pack(("error", "MemoryError", "", "the store's answer is too long for another process"))
    return reply


def end_all() -> None:
    """Ends all remaining processes when this one exits."""
    for process in list(_living):
        process.end()


atexit.register(end_all)
