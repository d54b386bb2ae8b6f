"""Reads long queries in blocks, and stores arrays in a temporary file until they are written to a segment."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.pipeline.process.yielding import yield_now

ROWS = 4096
"""Rows of a query in memory at a time."""


def blocks(connection: Connection, sql: str) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a query in lists of at most `ROWS`."""
    cursor, waiting = connection.execute(sql), []
    for row in cursor:
        waiting.append(row)
        if len(waiting) == ROWS:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


class Stretch(NamedTuple):
    """The location of a one-dimensional array in the file."""

    offset: int
    kind: np.dtype[Any]
    length: int


class Spill:
    """Arrays in a temporary file, which nothing else uses. A context manager that closes it."""

    def __init__(self, file: BinaryIO) -> None:
        # Sorting and merging do little but read and write arrays, so `put` and `get` yield.
        self._file = file
        self._end = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def put(self, array: NDArray[Any]) -> Stretch:
        """Append an array."""
        yield_now()
        # Reads move the file position: always seek before writing.
        self._file.seek(self._end)
        # native byte order: no other process reads the file
        self._file.write(np.ascontiguousarray(array).data)
        stretch = Stretch(self._end, array.dtype, len(array))
        self._end += array.nbytes
        return stretch

    def get(self, stretch: Stretch, begin: int = 0, end: int | None = None) -> NDArray[Any]:
        """The elements [begin, end) of an array."""
        yield_now()
        count = (stretch.length if end is None else end) - begin
        self._file.seek(stretch.offset + begin * stretch.kind.itemsize)
        return np.frombuffer(self._file.read(count * stretch.kind.itemsize), stretch.kind)
