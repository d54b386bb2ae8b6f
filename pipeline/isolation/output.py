"""Passes the standard output and error of extensions to the log, up to a limit."""

from __future__ import annotations

import logging
import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from threading import Lock, Thread

from speckit_memory.pipeline.isolation.limits import LONGEST_LINE, SHOWN_LINES

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
