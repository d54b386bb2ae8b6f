"""The process of isolated extensions: loads and describes them and runs their components, one request at a time.

The server starts it with a socket and its own import path. It ends when the socket is closed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from socket import socket
from typing import Any

from speckit_memory.pipeline.isolation.bounds import bound_memory, expect_within
from speckit_memory.pipeline.isolation.limits import (
    ANSWER_ARRAYS,
    ANSWER_DOCUMENT,
    LOST,
    ORPHAN_SECONDS,
    STORE_ARRAYS,
    STORE_DOCUMENT,
)
from speckit_memory.pipeline.isolation.wire import MEGABYTE, ArrayWire, EndedError, GarbledError


def main(descriptor: int, memory_mb: int) -> None:
    """Serves requests until the server is gone; does not return."""
    bound_memory(memory_mb << 20, for_good=True)
    end = socket(fileno=descriptor)
    end.set_inheritable(False)
    os.register_at_fork(after_in_child=end.detach)  # a process forked by a component must not use the socket
    with suppress(EndedError, GarbledError):
        _serve(ArrayWire(end, STORE_DOCUMENT, STORE_ARRAYS))
    os._exit(LOST)  # threads of components must not keep the process alive


def _serve(wire: ArrayWire) -> None:
    # imported after the memory limit is set: these modules count towards it
    from speckit_memory.pipeline.isolation.codec import UnsendableError, pack, unpack
    from speckit_memory.pipeline.isolation.workshop import Workshop

    def for_ever() -> float:
        return 1e6

    def asked(number: int, name: str, arguments: Sequence[Any], released: Sequence[int]) -> tuple[Any, ...]:
        left, _ = signal.setitimer(signal.ITIMER_REAL, 0)  # pause the timer: waiting for the store does not count
        wire.send(*pack(("store", number, name, tuple(arguments), tuple(released))), for_ever)
        found: tuple[Any, ...] = unpack(*wire.receive(for_ever), writable=True)
        signal.setitimer(signal.ITIMER_REAL, left)
        return found

    workshop = Workshop(asked)
    while True:
        # One request at a time; the server gives each a time limit.
        seconds, what, *arguments = unpack(*wire.receive(for_ever), writable=True)
        expect_within(seconds + ORPHAN_SECONDS)  # the process ends by itself if the server is gone
        answer = workshop.answer(what, arguments)
        try:
            document, arrays = pack(answer)
            if len(document) > ANSWER_DOCUMENT or len(arrays) > ANSWER_ARRAYS:
                message = f"its answer is longer than {(ANSWER_DOCUMENT + ANSWER_ARRAYS) // MEGABYTE} MB"
                document, arrays = pack(("error", message))
        except (UnsendableError, MemoryError) as error:
            message = str(error) or type(error).__name__
            document, arrays = pack(("error", f"its answer cannot be sent between processes: {message}"))
        # before the answer: output printed during a call must be attributed to that call
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # components replace and close them
                stream.flush()
        wire.send(document, arrays, for_ever)
        expect_within(None)
