"""Handles standard streams that the caller has closed or no longer reads."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_kept: list[int] = []
"""Duplicates of standard output while it is reserved for documents, innermost last."""


def open_what_is_closed() -> None:
    """Opens standard streams that the caller has closed (`>&-`) on the null device.

    Otherwise the next file opened would get the number of a closed stream, and output would end up in the store. Python
    has no file objects for closed streams either.
    """
    modes = {"stdin": ("r", os.O_RDONLY), "stdout": ("w", os.O_WRONLY), "stderr": ("w", os.O_WRONLY)}
    for descriptor, (name, (mode, flags)) in enumerate(modes.items()):
        try:
            os.fstat(descriptor)
        except OSError:
            _discard(descriptor, flags)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))


class StandardOutput(io.TextIOWrapper):
    """Standard output that records write errors."""

    failed: OSError | None = None

    def write(self, text: str, /) -> int:
        """Writes, and records an error."""
        try:
            return super().write(text)
        except OSError as error:
            self.failed = error
            raise

    def flush(self) -> None:
        """Flushes, and records an error."""
        try:
            super().flush()
        except OSError as error:
            self.failed = error
            raise


class Remarks(io.TextIOWrapper):
    """Standard error that ignores write errors: later output is discarded."""

    def write(self, text: str, /) -> int:
        """Writes; after an error all output is discarded."""
        try:
            return super().write(text)
        except OSError:
            _discard(self.fileno(), os.O_WRONLY)
            return len(text)

    def flush(self) -> None:
        """Flushes; after an error all output is discarded."""
        try:
            super().flush()
        except OSError:
            _discard(self.fileno(), os.O_WRONLY)
            super().flush()


def prepare() -> None:
    """Switches both streams to line-buffered UTF-8; an unwritable standard error does not stop the work."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Line buffering: buffered text would reach the client after the protocol has ended.
        sys.stdout = StandardOutput(sys.stdout.detach(), "utf-8", "backslashreplace", line_buffering=True)
        sys.__stdout__ = sys.stdout  # type: ignore[misc]  # the old object is detached from its buffer
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = Remarks(sys.stderr.detach(), "utf-8", "backslashreplace", line_buffering=True)
        sys.__stderr__ = sys.stderr  # type: ignore[misc]


@contextmanager
def kept_for_documents() -> Iterator[None]:
    """Reserves standard output for documents; other output, such as that of a component that prints, goes to standard
    error."""
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
    """Restores standard output while a document is written. After a failure it stays restored, so that unwritten text
    does not go to standard error."""
    if not _kept:
        yield
        return
    sys.stdout.flush()
    os.dup2(_kept[-1], 1)
    yield
    sys.stdout.flush()
    os.dup2(2, 1)


def output_error() -> OSError | None:
    """The error that prevents writing to standard output, or None. After an error, buffered text is dropped."""
    with suppress(OSError):
        sys.stdout.flush()
    error = sys.stdout.failed if isinstance(sys.stdout, StandardOutput) else None
    if error is not None:
        # nothing may be flushed into it while the interpreter shuts down
        _discard(sys.stdout.fileno(), os.O_WRONLY)
    return error


def _discard(descriptor: int, flags: int) -> None:
    """Points a descriptor to the null device."""
    opened = os.open(os.devnull, flags)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)
