"""Named arrays in one file or in memory, written in one pass. Files are replaced atomically and mapped.

    magic, 16 bytes | arrays, aligned | the table as JSON | length of the table, 8 bytes | SHA-256 of the table

The table holds the source of the data (`about`) and the type, shape, offset and checksum of every array. Numbers are
little-endian. Arrays are views of one mapping: processes that read the same file share its pages, and arrays that no
query uses are never read. A finished file is never written to; another file replaces it.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, BinaryIO, Self
from zlib import crc32

import numpy as np
from numpy.typing import DTypeLike, NDArray

from speckit_memory.memory.store.file.guarding.store_file import FOR_THE_OWNER
from speckit_memory.memory.store.segment_files.mapping import StableMapping, stable
from speckit_memory.pipeline.process.yielding import yield_now

MAGIC = b"speckit-segment\x01"
"""The first bytes of every file; the last one is the version of this layout."""
ALIGNMENT = 64
"""Arrays begin at multiples of this many bytes, a processor's cache line."""
BLOCK = 1 << 20
"""Elements written at a time, so that a memory-mapped array is never entirely in memory."""
SYNCED = 64 << 20
"""Bytes written between two fsyncs, so that the last one is as short for a large file as for a small one."""
READ_ONLY = 0o400
"""Mode of a finished file: copying a backup over it fails or replaces the file instead of changing it."""
# length of the table, and its SHA-256
_FOOT = 8 + 32

Array = NDArray[Any]


class TornError(Exception):
    """The file differs from what was written: truncated, changed, or of another layout."""


class Writer:
    """Writes arrays to a binary file, one after the other, and their table at the end. Raises OSError."""

    def __init__(self, file: BinaryIO) -> None:
        """Writes the beginning of the file."""
        self._file = file
        self._entries: dict[str, dict[str, Any]] = {}
        file.write(MAGIC)

    def add(self, name: str, array: Array) -> None:
        """Write an array."""
        blocks = (array[at : at + BLOCK] for at in range(0, len(array), BLOCK))
        self.stream(name, array.dtype, blocks, array.shape[1:])

    def stream(self, name: str, dtype: DTypeLike, blocks: Iterable[Array], shape: tuple[int, ...] = ()) -> None:
        """Write an array given as consecutive blocks.

        Args:
            name: Unique name of the array.
            dtype: Type of the elements; blocks are converted to it, little-endian.
            blocks: Consecutive parts along the first axis.
            shape: Shape of one row; () for a one-dimensional array.
        """
        # kind.str names the byte order in the table: '<f4', '|u1'
        kind = np.dtype(dtype).newbyteorder("<")
        # Pad to the alignment, so that arrays can be used in place.
        self._file.write(bytes(-self._file.tell() % ALIGNMENT))
        offset, checksum, count = self._file.tell(), 0, 0
        for block in blocks:
            # the checksum of an array is that of its blocks, continued
            part = _bytes(np.ascontiguousarray(block, kind))
            checksum = crc32(part, checksum)
            count += len(block)
            self._write(part)
        self._entries[name] = {"dtype": kind.str, "shape": [count, *shape], "offset": offset, "crc32": checksum}

    def _write(self, part: memoryview) -> None:
        self._file.write(part)
        yield_now()

    def count(self, name: str) -> int:
        """The number of rows of an array already written. Raises KeyError for an unknown name."""
        return int(self._entries[name]["shape"][0])

    def finish(self, about: Mapping[str, Any]) -> tuple[str, int]:
        """Write the table. Returns its hexadecimal SHA-256 and the size of the file in bytes. `about` must be
        JSON-serialisable."""
        table = json.dumps({"about": dict(about), "arrays": self._entries}, separators=(",", ":")).encode()
        digest = sha256(table)
        self._file.write(table + len(table).to_bytes(8, "little") + digest.digest())
        return digest.hexdigest(), self._file.tell()


class FileWriter(Writer):
    """Writes a file under a temporary name, which begins with a dot, and renames it at the end.

    A context manager: an exception, or leaving without `finish`, removes the file.
    """

    def __init__(self, path: Path) -> None:
        """Opens the temporary file."""
        self._path = path
        self._waiting = 0
        self._unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        super().__init__(open(self._unfinished, "xb", opener=_for_the_owner))  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        # after `finish` there is no file of this name any more
        self._unfinished.unlink(missing_ok=True)

    def _write(self, part: memoryview) -> None:
        self._waiting += len(part)
        super()._write(part)
        if self._waiting >= SYNCED:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._waiting = 0

    def written(self, name: str) -> Array:
        """A non-empty array already written, mapped from the file. Raises KeyError for an unknown name."""
        entry = self._entries[name]
        self._file.flush()
        shape = tuple(entry["shape"])
        return np.memmap(self._unfinished, np.dtype(entry["dtype"]), "r", entry["offset"], shape)

    def finish(self, about: Mapping[str, Any]) -> tuple[str, int]:
        """Write the table, as `Writer.finish`, and move the file to its final path."""
        written = super().finish(about)
        self._file.flush()
        os.fsync(self._file.fileno())
        # Contents are on disk before the rename: a crash leaves the old file or a complete new one.
        if sys.platform != "win32":  # where a read-only file cannot be removed
            os.fchmod(self._file.fileno(), READ_ONLY)
        self._file.close()
        self._unfinished.replace(self._path)
        return written


class Container:
    """What a `Writer` wrote. Its arrays are read-only views, valid as long as one of them is referenced."""

    __slots__ = ("_bytes", "_entries", "_mapping", "about", "bytes", "digest")

    def __init__(self, content: StableMapping | memoryview) -> None:
        """Take the bytes, which never change. Raises `TornError` unless the checksum of their table is right.

        The contents of the arrays are only checked by `verify`, which reads all of them.
        """
        found = memoryview(content)
        size = len(found)
        if found[: len(MAGIC)] != MAGIC:
            raise TornError("its header is not that of a segment of this version")
        # The table is found from the end, since its size is only known after writing the arrays.
        # foot: length of the table, 8 bytes little-endian, then SHA-256, 32 bytes
        foot = bytes(found[-_FOOT:])
        length = int.from_bytes(foot[:8], "little")
        # checked before slicing: a greater length would make the start of the slice negative
        if length > size - _FOOT - len(MAGIC):
            raise TornError("it is truncated")
        table = found[size - _FOOT - length : size - _FOOT]
        digest = sha256(table)
        if digest.digest() != foot[8:]:
            raise TornError("its table was changed, or it is truncated")
        known = json.loads(bytes(table))
        self.about: Mapping[str, Any] = MappingProxyType(known["about"])
        self.bytes = size
        self.digest = digest.hexdigest()
        """SHA-256 of the table."""
        self._bytes = found
        self._mapping = content if isinstance(content, StableMapping) else None
        self._entries: Mapping[str, Any] = known["arrays"]

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a file. Raises OSError, and `TornError` unless the checksum of its table is right."""
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < len(MAGIC) + _FOOT:
                raise TornError("it is truncated")
            return cls(stable(file, path))

    def array(self, name: str) -> Array:
        """An array by name. Raises KeyError for an unknown name."""
        entry = self._entries[name]
        # a view: np.ndarray raises if the bytes do not suffice, and keeps them alive
        return np.ndarray(tuple(entry["shape"]), np.dtype(entry["dtype"]), self._bytes, entry["offset"])

    def names(self) -> list[str]:
        """The names of the arrays."""
        return list(self._entries)

    def unchanged(self) -> bool:
        """Whether the arrays still have the contents that the file had when it was opened (`mapping`)."""
        return self._mapping is None or self._mapping.unchanged()

    def __contains__(self, name: str) -> bool:
        """Whether there is an array of this name."""
        return name in self._entries

    def verify(self) -> None:
        """Read and check everything. Raises `TornError` with the name of an array whose bytes were changed."""
        for name, entry in self._entries.items():
            if crc32(_bytes(self.array(name))) != entry["crc32"]:
                raise TornError(f"the bytes of {name!r} were changed")


def _for_the_owner(name: str, flags: int) -> int:
    """Open a new file with access for its owner alone: it has the contents of the store."""
    return os.open(name, flags, FOR_THE_OWNER)


def _bytes(array: Array) -> memoryview:
    # flat bytes of the array; no copy, because arrays in a file are contiguous
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")
