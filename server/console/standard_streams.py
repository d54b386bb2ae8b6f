"""Standard streams that the caller has closed, filled or walked away from."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_kept: list[int] = []
"""A descriptor of the standard output while it is kept for documents."""


def open_what_is_closed() -> None:
    """Puts something in the place of standard streams that the caller has closed, as `>&-` does.

    The next file that is opened would take the number of a closed one: text meant for a reader would end up in the
    store. Python has no objects for them either.
    """
    modes = {"stdin": ("r", os.O_RDONLY), "stdout": ("w", os.O_WRONLY), "stderr": ("w", os.O_WRONLY)}
    for descriptor, (name, (mode, flags)) in enumerate(modes.items()):
        try:
            os.fstat(descriptor)
        except OSError:
            _discard(descriptor, flags)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))


class Output(io.TextIOWrapper):
    """Standard output, which remembers that it could not be written."""

    failed: OSError | None = None

    def write(self, text: str, /) -> int:
        """Writes."""
        try:
            return super().write(text)
        except OSError as error:
            self.failed = error
            raise

    def flush(self) -> None:
        """Flushes."""
        try:
            super().flush()
        except OSError as error:
            self.failed = error
            raise


class Remarks(io.TextIOWrapper):
    """Standard error that nothing depends on: when it cannot be written, what it is told goes nowhere."""

    def write(self, text: str, /) -> int:
        """Writes, or gives up for good."""
        try:
            return super().write(text)
        except OSError:
            _discard(self.fileno(), os.O_WRONLY)
            return len(text)

    def flush(self) -> None:
        """Flushes, or gives up for good."""
        try:
            super().flush()
        except OSError:
            _discard(self.fileno(), os.O_WRONLY)
            super().flush()


def prepare() -> None:
    """UTF-8 and lines for both streams; work that was asked for is done whether anybody reads the remarks or not."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Line buffering: text that lingers in the buffer would reach the client after the protocol has ended.
        sys.stdout = Output(sys.stdout.detach(), "utf-8", "backslashreplace", line_buffering=True)
        sys.__stdout__ = sys.stdout  # type: ignore[misc]  # the other one has lost its buffer
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = Remarks(sys.stderr.detach(), "utf-8", "backslashreplace", line_buffering=True)
        sys.__stderr__ = sys.stderr  # type: ignore[misc]


@contextmanager
def kept_for_documents() -> Iterator[None]:
    """Keeps standard output for documents: what anything else writes there, such as a component that prints, goes to
    standard error."""
    sys.stdout.flush()
    _kept.append(own := os.dup(1))
    os.dup2(2, 1)
    try:
        yield
    finally:
        with suppress(OSError):
            sys.stdout.flush()
        os.dup2(own, 1)
        os.close(own)
        _kept.remove(own)


@contextmanager
def given_to_a_document() -> Iterator[None]:
    """Standard output itself, while a document is written. It stays given when that fails: what could not be written
    is no remark."""
    if not _kept:
        yield
        return
    sys.stdout.flush()
    os.dup2(_kept[-1], 1)
    yield
    sys.stdout.flush()
    os.dup2(2, 1)


def output_error() -> OSError | None:
    """Why standard output cannot be written, None when it can. What is not written yet is dropped then."""
    with suppress(OSError):
        sys.stdout.flush()
    error = sys.stdout.failed if isinstance(sys.stdout, Output) else None
    if error is not None:
        # nothing may be flushed into it while the interpreter shuts down
        _discard(sys.stdout.fileno(), os.O_WRONLY)
    return error


def _discard(descriptor: int, flags: int) -> None:
    """Has a descriptor lead nowhere."""
    opened = os.open(os.devnull, flags)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)
