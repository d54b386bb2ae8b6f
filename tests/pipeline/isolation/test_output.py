"""Whose call it is that an extension writes in."""

from __future__ import annotations

import logging
import os
import time
from contextvars import ContextVar

from speckit_memory.pipeline.isolation.process import OutputReader

CALL: ContextVar[str] = ContextVar("call", default="none")


def test_a_line_that_ends_after_its_call_belongs_to_the_call_in_which_it_began() -> None:
    told: list[tuple[str, str]] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append((record.getMessage().partition(" wrote: ")[2], CALL.get()))

    listener = Listener()
    logger = logging.getLogger("speckit_memory.extensions")
    logger.addHandler(listener)
    try:
        reading, writing = os.pipe()
        output = OutputReader(reading, 7)
        for call, text in (("first", b"of the first"), ("second", b", ended\nbegun")):
            token = CALL.set(call)
            with output.of_one_call():
                os.write(writing, text)
            CALL.reset(token)
        os.close(writing)
        for _ in range(500):
            if len(told) == 2:
                break
            time.sleep(0.01)
    finally:
        logger.removeHandler(listener)

    assert told == [("of the first, ended", "first"), ("begun", "second")]
