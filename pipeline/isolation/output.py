"""What extensions write to standard output and error: it goes to the log, and not without end."""

from __future__ import annotations

import logging
import os
from threading import Thread

from speckit_memory.pipeline.isolation.limits import LONGEST_LINE, SHOWN_LINES

LOGGER = logging.getLogger("speckit_memory.extensions")
_CHUNK = 65_536


class Output:
    """Reads the pipe of one process until everybody has closed it, so that who writes never waits."""

    def __init__(self, descriptor: int, pid: int) -> None:
        self._descriptor = descriptor
        self._pid = pid
        self._begun = b""
        self._shown = 0
        Thread(target=self._drain, name="extension-output", daemon=True).start()

    def _drain(self) -> None:
        while chunk := os.read(self._descriptor, _CHUNK):
            *lines, rest = (self._begun + chunk).split(b"\n")
            for line in lines:
                self._show(line)
            self._begun = rest[:LONGEST_LINE]
        if self._begun:
            self._show(self._begun)
        os.close(self._descriptor)

    def _show(self, line: bytes) -> None:
        self._shown += 1
        if self._shown <= SHOWN_LINES:
            text = line[:LONGEST_LINE].decode(errors="backslashreplace")
            LOGGER.warning("an extension (process %d) wrote: %s", self._pid, text)
        elif self._shown == SHOWN_LINES + 1:
            LOGGER.warning("an extension (process %d) wrote more than %d lines", self._pid, SHOWN_LINES)
