"""Messages over a socket pair: a header with two lengths, a document, and the bytes of its arrays."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from socket import SHUT_RDWR, socket

# 16 bytes, little-endian: mark, uint32 length of the document, uint64 length of the arrays
_HEAD = struct.Struct("<4sIQ")
_MARK = b"smx1"
MEGABYTE = 1 << 20
_CHUNK = 1 << 16
Remaining = Callable[[], float]
"""Returns the seconds left to wait; zero or less if none are left."""


class EndedError(Exception):
    """The other end is closed."""


class GarbledError(Exception):
    """The received data is not a message, or is longer than accepted."""


class ArrayWire:
    """One end of the connection. `document` and `arrays` are the maximum sizes in bytes that it receives."""

    def __init__(self, end: socket, document: int, arrays: int) -> None:
        self._end = end
        self._most = (document, arrays)
        # received and not taken yet
        self._read = bytearray()

    def send(self, document: bytes, arrays: bytes, remaining: Remaining) -> None:
        """Sends one message. Raises EndedError, and TimeoutError if it is not received in time."""
        try:
            self._wait(remaining)
            # Header: 4 bytes mark, uint32 length of the document, uint64 length of the arrays.
            head = _HEAD.pack(_MARK, len(document), len(arrays)) + document
            if len(arrays) <= _CHUNK:
                self._end.sendall(head + arrays)
            else:  # two system calls cost less than another copy
                self._end.sendall(head)
                self._wait(remaining)
                self._end.sendall(arrays)
        except TimeoutError:
            raise
        except OSError as error:
            raise EndedError from error

    def receive(self, remaining: Remaining) -> tuple[bytes, bytes]:
        """The next message. Raises EndedError, GarbledError, and TimeoutError if it does not arrive in time."""
        mark, *lengths = _HEAD.unpack(self._taken(_HEAD.size, remaining))
        if mark != _MARK:
            raise GarbledError("its message is not an answer")
        if any(length > most for length, most in zip(lengths, self._most, strict=True)):
            raise GarbledError(f"its message is longer than {sum(self._most) // MEGABYTE} MB")
        return self._taken(lengths[0], remaining), self._taken(lengths[1], remaining)

    def _taken(self, size: int, remaining: Remaining) -> bytes:
        while len(self._read) < size:
            try:
                self._wait(remaining)
                part = self._end.recv(MEGABYTE if size > _CHUNK else _CHUNK)
            except TimeoutError:
                raise
            except OSError as error:
                raise EndedError from error
            if not part:
                raise EndedError
            self._read += part
        taken = bytes(self._read[:size])
        del self._read[:size]
        return taken

    def _wait(self, remaining: Remaining) -> None:
        seconds = remaining()
        if seconds <= 0:
            raise TimeoutError
        self._end.settimeout(seconds)

    def close(self) -> None:
        """Closes the connection, including copies of this end in other processes."""
        with suppress(OSError):  # the other end may be gone already
            self._end.shutdown(SHUT_RDWR)
        self._end.close()
