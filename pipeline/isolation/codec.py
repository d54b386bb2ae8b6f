"""Serialisation of component inputs and outputs as plain data: a JSON document and the bytes of arrays.

Nothing that is read can run code: there is no pickle, only the classes in `KINDS` are created, and arrays hold numbers
of the types in `DTYPES`. Every value except numbers, texts, booleans and null is a list that begins with a letter for
its kind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from speckit_memory.pipeline.model.columns import (
    Candidates,
    Fused,
    Grouped,
    Hits,
    Notes,
    Plan,
    Pool,
    Query,
    Rescored,
    Respelling,
    Selected,
    StepScore,
)
from speckit_memory.pipeline.model.ranking import COLUMNS, Ranking
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.model.workings import Workings
from speckit_memory.pipeline.ports import (
    Filter,
    FolderDescription,
    MemoryName,
    Neighbours,
    Passage,
    Postings,
    Unavailable,
)
from speckit_memory.pipeline.ports.values import immutable
from speckit_memory.pipeline.roles.contracts import PipelineContext

DTYPES = frozenset(["|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"])
ALIGNED = 8
"""Alignment of arrays in bytes."""
_ENCODER = json.JSONEncoder(separators=(",", ":"), check_circular=False)


@dataclass(frozen=True, slots=True)
class Handle:
    """Refers to an object that stays in its process: the store, a scope, an index. `number` identifies it."""

    kind: str
    number: int


class UnsendableError(TypeError):
    """A value is of a kind that cannot be sent to another process."""


class UnreadableError(ValueError):
    """The data from the other process is not a valid value."""


KINDS: dict[str, tuple[type, tuple[str, ...]]] = {
    FolderDescription.__name__: (FolderDescription, FolderDescription._fields)
}
KINDS |= {
    kind.__name__: (kind, tuple(field.name for field in fields(kind)))
    for kind in (
        Candidates,
        Filter,
        Fused,
        Grouped,
        Handle,
        Hits,
        MemoryName,
        Neighbours,
        Notes,
        Passage,
        Plan,
        Pool,
        Postings,
        Query,
        Rescored,
        Respelling,
        Selected,
        StepScore,
        PipelineContext,
        Unavailable,
        Workings,
    )
}


def pack(value: object) -> tuple[bytes, bytes]:
    """The JSON document of a value, and the bytes of its arrays. Raises UnsendableError."""
    arrays: list[bytes] = []
    try:
        document = _Packing(arrays).value(value)
    except RecursionError:
        raise UnsendableError("a value that contains itself cannot be sent between processes") from None
    return _ENCODER.encode(document).encode("ascii"), b"".join(arrays)


class _Packing:
    def __init__(self, arrays: list[bytes]) -> None:
        self._arrays = arrays
        self._length = 0

    def value(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, np.generic):
            return self.value(value.item())
        if isinstance(value, Scale):
            return ["e", value.value]
        for plain in (str, int, float):
            if isinstance(value, plain):
                return plain(value)
        if isinstance(value, Ranking):
            return ["r", *(self.value(getattr(value, name)) for name in COLUMNS)]
        for base in kind.__mro__:
            if base.__name__ in KINDS and KINDS[base.__name__][0] is base:
                return ["o", base.__name__, *(self.value(getattr(value, name)) for name in KINDS[base.__name__][1])]
        if isinstance(value, Mapping):
            return ["d", *([self.value(key), self.value(item)] for key, item in value.items())]
        if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
            return ["t" if isinstance(value, tuple) else "l", *map(self.value, value)]
        if isinstance(value, Set):
            return ["s", *sorted(map(self.value, value), key=repr)]  # equal sets have equal encodings
        raise UnsendableError(f"'{kind.__name__}' is not a kind of value that can be sent between processes")

    def _array(self, array: np.ndarray[Any, Any]) -> list[Any]:
        # ["a", dtype, byte offset, *shape]; arrays of objects (texts) are listed item by item
        if array.dtype == np.object_:
            return ["n", *map(self.value, array.tolist())]
        plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        if plain.dtype.str not in DTYPES:
            raise UnsendableError(
                f"an array of {array.dtype} is not a kind of value that can be sent between processes"
            )
        data = plain.tobytes()
        at = self._length
        # the next array begins at a multiple of `ALIGNED` again
        padding = -len(data) % ALIGNED
        self._arrays += [data, b"\0" * padding] if padding else [data]
        self._length += len(data) + padding
        return ["a", plain.dtype.str, at, *array.shape]


def unpack(document: bytes, arrays: bytes, *, writable: bool) -> Any:
    """The value of a document. Arrays are writable copies, or permanently read-only.

    Raises UnreadableError for anything that is not a valid document.
    """
    try:
        return _Unpacking(arrays, writable).value(json.loads(document))
    except UnreadableError:
        raise
    except Exception as error:  # the data is not trusted, so any failure means that it is unreadable
        raise UnreadableError(f"{type(error).__name__}: {error}") from None


class _Unpacking:
    def __init__(self, arrays: bytes, writable: bool) -> None:
        self._arrays = arrays
        self._writable = writable

    def value(self, document: Any) -> Any:
        if not isinstance(document, list):
            if isinstance(document, dict):
                raise UnreadableError("a mapping is written as pairs")
            return document
        read = self._readers.get(document[0])
        if read is None:
            raise UnreadableError(f"there is no kind of value {document[0]!r}")
        return read(self, document[1:])

    def _all(self, items: list[Any]) -> list[Any]:
        return [self.value(item) for item in items]

    def _array(self, items: list[Any]) -> np.ndarray[Any, Any]:
        name, at, *shape = items
        if name not in DTYPES or not all(type(number) is int and number >= 0 for number in (at, *shape)):
            raise UnreadableError("an array has a type of numbers, a place and a shape")
        # integers of Python: a product in numpy could wrap around, and the shape is not trusted
        count = 1
        for number in shape:
            count *= number
        # A boolean is any byte but 0; numpy would keep other bytes, which are neither True nor False.
        dtype = np.dtype("|u1" if name == "|b1" else name)
        # raises if the bytes do not suffice
        found = np.frombuffer(self._arrays, dtype, count, at).reshape(shape) if count else np.empty(shape, dtype)
        if name == "|b1":
            found = found != 0
        return found.copy() if self._writable else immutable(found)

    def _texts(self, items: list[Any]) -> np.ndarray[Any, Any]:
        found = np.empty(len(items), np.object_)
        found[:] = self._all(items)
        return found

    def _object(self, items: list[Any]) -> Any:
        name, *values = items
        kind, names = KINDS[name]
        if len(values) != len(names):
            raise UnreadableError(f"{name} has {len(names)} fields")
        return kind(*self._all(values))

    def _ranking(self, items: list[Any]) -> Ranking:
        ranking: Ranking = object.__new__(Ranking)  # type: ignore[arg-type]  # a copy of a sealed ranking is sealed too
        for name, column in zip(COLUMNS, self._all(items), strict=True):
            sealed = immutable(column) if isinstance(column, np.ndarray) else column
            object.__setattr__(ranking, name, sealed)
        return ranking

    _readers: dict[Any, Callable[[_Unpacking, list[Any]], Any]] = {  # noqa: RUF012 -- never modified
        "a": _array,
        "n": _texts,
        "o": _object,
        "r": _ranking,
        "e": lambda _, items: Scale(*items),
        "t": lambda self, items: tuple(self._all(items)),
        "l": lambda self, items: self._all(items),
        "s": lambda self, items: frozenset(self._all(items)),
        "d": lambda self, items: {self.value(key): self.value(item) for key, item in items},
    }
