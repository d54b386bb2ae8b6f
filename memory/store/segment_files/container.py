"""One file of named arrays, written in one pass, there whole or not at all, and read through the page cache.

    magic, 16 bytes | arrays, aligned | the table as JSON | length of the table, 8 bytes | SHA-256 of the table

The table says of what the file is made (`about`) and of every array its type, shape, place and checksum. Numbers are
little-endian. Arrays are views of one mapping, so that processes that read the same file share its pages, and what no
query asks for is never read. A finished file is never written to: nobody may, and another one takes its place.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self
from zlib import crc32

import numpy as np
from numpy.typing import DTypeLike, NDArray

from speckit_memory.memory.store.file.guarding.store_file import FOR_THE_OWNER
from speckit_memory.memory.store.segment_files.mapping import StableMapping, stable

MAGIC = b"speckit-segment\x01"
"""Begins every file; its last byte is the version of this layout."""
ALIGNMENT = 64
"""Arrays begin at multiples of so many bytes, the line of a processor's cache."""
BLOCK = 1 << 20
"""Elements that are written at a time, so that an array that is itself a file need not be in memory."""
SYNCED = 64 << 20
"""So many bytes wait for the disk at most, so that the end of a large file is as short as that of a small one."""
READ_ONLY = 0o400
"""The mode of a finished file: who copies a backup over it is refused, or puts another file in its place."""
_FOOT = 8 + 32

Array = NDArray[Any]


class TornError(Exception):
    """The file is not what was written: cut short, changed, or of another layout."""


class Writer:
    """Writes a file under a name of its own, which begins with a dot, and moves it to its place at the end.

    A context: left by an exception, or without `finish`, it leaves nothing behind. Raises OSError as the file system
    does.
    """

    def __init__(self, path: Path, pause: Callable[[], None] = lambda: None) -> None:
        """`pause` is called between blocks; what it raises ends the writing."""
        self._path = path
        self._pause = pause
        self._waiting = 0
        self._unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        self._entries: dict[str, dict[str, Any]] = {}
        self._file = open(self._unfinished, "xb", opener=_for_the_owner)  # noqa: SIM115
        self._file.write(MAGIC)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._unfinished.unlink(missing_ok=True)

    def add(self, name: str, array: Array) -> None:
        """Writes an array."""
        blocks = (array[at : at + BLOCK] for at in range(0, len(array), BLOCK))
        self.stream(name, array.dtype, blocks, array.shape[1:])

    def stream(self, name: str, dtype: DTypeLike, blocks: Iterable[Array], shape: tuple[int, ...] = ()) -> None:
        """Writes an array that comes in consecutive blocks; `shape` is that of one of its rows."""
        kind = np.dtype(dtype).newbyteorder("<")
        self._file.write(bytes(-self._file.tell() % ALIGNMENT))
        offset, checksum, count = self._file.tell(), 0, 0
        for block in blocks:
            part = _bytes(np.ascontiguousarray(block, kind))
            checksum = crc32(part, checksum)
            count += len(block)
            self._write(part)
        self._entries[name] = {"dtype": kind.str, "shape": [count, *shape], "offset": offset, "crc32": checksum}

    def _write(self, part: memoryview) -> None:
        self._file.write(part)
        self._waiting += len(part)
        if self._waiting >= SYNCED:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._waiting = 0
        self._pause()

    def count(self, name: str) -> int:
        """The number of rows of an array that was written before. Raises KeyError for another name."""
        return int(self._entries[name]["shape"][0])

    def written(self, name: str) -> Array:
        """An array that was written before, not empty, as it lies in the file. Raises KeyError for another name."""
        entry = self._entries[name]
        self._file.flush()
        shape = tuple(entry["shape"])
        return np.memmap(self._unfinished, np.dtype(entry["dtype"]), "r", entry["offset"], shape)

    def finish(self, about: Mapping[str, Any]) -> tuple[str, int]:
        """Puts the file in its place. `about` must be JSON. Returns the SHA-256 of its table in hexadecimal digits and
        the size of the file in bytes."""
        table = json.dumps({"about": dict(about), "arrays": self._entries}, separators=(",", ":")).encode()
        digest = sha256(table)
        self._file.write(table + len(table).to_bytes(8, "little") + digest.digest())
        self._file.flush()
        os.fsync(self._file.fileno())
        size = self._file.tell()
        if sys.platform != "win32":  # where such a file cannot be removed
            os.fchmod(self._file.fileno(), READ_ONLY)
        self._file.close()
        self._unfinished.replace(self._path)
        return digest.hexdigest(), size


class Container:
    """A file that a `Writer` made. Its arrays are read-only, and live as long as somebody holds one of them."""

    __slots__ = ("_bytes", "_entries", "_mapping", "about", "bytes", "digest")

    def __init__(self, path: Path) -> None:
        """Opens the file. Raises OSError, and `TornError` unless its table, which is checked, is as it was written.

        What the arrays hold is checked by `verify` alone, which reads all of it.
        """
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < len(MAGIC) + _FOOT:
                raise TornError("it was cut short")
            content = stable(file, path)
        found = memoryview(content)
        size = len(found)
        if found[: len(MAGIC)] != MAGIC:
            raise TornError("it does not begin as a segment of this version does")
        foot = bytes(found[-_FOOT:])
        length = int.from_bytes(foot[:8], "little")
        if length > size - _FOOT - len(MAGIC):
            raise TornError("it was cut short")
        table = found[size - _FOOT - length : size - _FOOT]
        digest = sha256(table)
        if digest.digest() != foot[8:]:
            raise TornError("its table was changed, or it was cut short")
        known = json.loads(bytes(table))
        self.about: Mapping[str, Any] = MappingProxyType(known["about"])
        self.bytes = size
        self.digest = digest.hexdigest()
        """SHA-256 of the table."""
        self._bytes = found
        self._mapping = content if isinstance(content, StableMapping) else None
        self._entries: Mapping[str, Any] = known["arrays"]

    def array(self, name: str) -> Array:
        """One of the arrays. Raises KeyError for a name that was not written."""
        entry = self._entries[name]
        return np.ndarray(tuple(entry["shape"]), np.dtype(entry["dtype"]), self._bytes, entry["offset"])

    def unchanged(self) -> bool:
        """Whether the arrays still hold what the file held when it was opened (`mapping`)."""
        return self._mapping is None or self._mapping.unchanged()

    def __contains__(self, name: str) -> bool:
        """Whether there is an array of this name."""
        return name in self._entries

    def verify(self) -> None:
        """Reads everything. Raises `TornError` that names an array whose bytes are not those that were written."""
        for name, entry in self._entries.items():
            if crc32(_bytes(self.array(name))) != entry["crc32"]:
                raise TornError(f"the bytes of {name!r} were changed")


def _for_the_owner(name: str, flags: int) -> int:
    """Opens a new file for its owner alone: it holds what the store holds."""
    return os.open(name, flags, FOR_THE_OWNER)


def _bytes(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")
