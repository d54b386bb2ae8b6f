"""The conversions of values between the product and PostgreSQL."""

from __future__ import annotations

import enum
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import postgres
from psycopg.adapt import AdaptersMap, Buffer, Dumper, Loader
from psycopg.pq import Format
from psycopg.types.numeric import Int8Dumper, NumericBinaryLoader

from speckit_memory.memory.store.file.guarding import failures
from speckit_memory.memory.store.file.guarding.queries import listed
from speckit_memory.memory.store.postgres.statements import Statement

Binding = Any
Bindings = Sequence[Binding] | Mapping[str, Binding]
INT8_ARRAY = 1016
TEXT_ARRAY = 1009
BYTEA_ARRAY = 1001
_HEADER = struct.Struct(">iiI")
"""The number of dimensions of an array, whether it may hold NULL, and the type of its elements."""
_SIZE = struct.Struct(">ii")
"""The number of elements, and the number of the first one."""


NO_CHARACTER = "\ufdd0"
"""Stands for NUL in what is looked for: Unicode keeps it from being a character, so that nothing is found."""


class Integers(list[int | None]):
    """Integers for one placeholder."""


class Texts(list[str]):
    """Texts for one placeholder."""


class Blobs(list[bytes | None]):
    """Byte strings for one placeholder."""


class VectorBytes(bytes):
    """A vector in native float32, for a column of pgvector."""


class _BoolLoader(Loader):
    """Truth values are 0 and 1 in SQLite."""

    format = Format.BINARY

    def load(self, data: Buffer) -> int:
        return int(data != b"\0")


class _NumericLoader(NumericBinaryLoader):
    """Sums of integers are integers in SQLite."""

    def load(self, data: Buffer) -> Any:
        found = super().load(data)
        return int(found) if found == found.to_integral_value() else float(found)


class _VectorLoader(Loader):
    """Vectors as the bytes of native float32; pgvector sends the number of dimensions, two zero bytes and big-endian
    numbers."""

    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        return np.frombuffer(bytes(data), ">f4", offset=4).astype(np.float32).tobytes()


class _VectorDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: VectorBytes) -> bytes:
        return (len(obj) // 4).to_bytes(2, "big") + b"\0\0" + np.frombuffer(obj, np.float32).astype(">f4").tobytes()


class _BoolDumper(Int8Dumper):
    def dump(self, obj: bool) -> Buffer | None:
        return super().dump(int(obj))


class _ListDumper(Dumper):
    """Lists in the binary form of an array: a header, and each element after its length, which is -1 for NULL."""

    format = Format.BINARY
    element: int

    def dump(self, obj: Sequence[Any]) -> bytes:
        if not obj:
            return _HEADER.pack(0, 0, self.element)
        sizes, elements = self.encoded(obj)
        # a long list has hundreds of thousands of elements, so none is handled by itself
        body = np.empty(4 * len(sizes) + len(elements), np.uint8)
        lengths = np.maximum(sizes, 0)
        of_sizes = (np.cumsum(4 + lengths) - lengths)[:, None] + np.arange(-4, 0)
        of_elements = np.ones(len(body), bool)
        of_elements[of_sizes] = False
        body[of_sizes] = sizes.astype(">i4").view(np.uint8).reshape(-1, 4)
        body[of_elements] = np.frombuffer(elements, np.uint8)
        return _HEADER.pack(1, 1, self.element) + _SIZE.pack(len(obj), 1) + body.tobytes()

    def encoded(self, elements: Sequence[Any]) -> tuple[NDArray[np.int64], bytes]:
        """The length of the binary form of each element, -1 for NULL, and all forms one after the other."""
        raise NotImplementedError


class _IntegersDumper(_ListDumper):
    oid = INT8_ARRAY
    element = 20

    def encoded(self, elements: Sequence[int | None]) -> tuple[NDArray[np.int64], bytes]:
        numbers = [each for each in elements if each is not None]
        sizes = np.fromiter((-1 if each is None else 8 for each in elements), np.int64, len(elements))
        return sizes, np.array(numbers, ">i8").tobytes()


class _BlobsDumper(_ListDumper):
    oid = BYTEA_ARRAY
    element = 17

    def encoded(self, elements: Sequence[bytes | None]) -> tuple[NDArray[np.int64], bytes]:
        sizes = np.fromiter((-1 if each is None else len(each) for each in elements), np.int64, len(elements))
        return sizes, b"".join(filter(None, elements))


class _TextsDumper(_BlobsDumper):
    oid = TEXT_ARRAY
    element = 25

    def encoded(self, elements: Sequence[Any]) -> tuple[NDArray[np.int64], bytes]:
        known = {each: each.replace("\0", NO_CHARACTER).encode() for each in set(elements)}
        return super().encoded([known[each] for each in elements])


def adapters(vector: int) -> AdaptersMap:
    """The conversions of values of a connection; `vector` is the type number of pgvector's type in its database."""
    made = AdaptersMap(postgres.adapters)
    made.register_dumper(int, Int8Dumper)
    made.register_dumper(bool, _BoolDumper)
    made.register_dumper(Integers, _IntegersDumper)
    made.register_dumper(Texts, _TextsDumper)
    made.register_dumper(Blobs, _BlobsDumper)
    made.register_dumper(VectorBytes, type("VectorDumper", (_VectorDumper,), {"oid": vector}))
    made.register_loader("bool", _BoolLoader)
    made.register_loader("numeric", _NumericLoader)
    made.register_loader(vector, _VectorLoader)
    return made


def listed_parameters(bindings: Sequence[Binding]) -> list[Binding]:
    """The values of bindings in order, in the form that the driver takes."""
    return parameters(Statement("", tuple(range(len(bindings)))), bindings)


def parameters(statement: Statement, bindings: Bindings) -> list[Binding]:
    """The values of a statement's placeholders, in the form that the driver takes.

    Names count in the order in which they come. Raises ConstraintError for NUL in a text to be stored.
    """
    if isinstance(bindings, Mapping):
        bound = [_bound(bindings[str(name)]) for name in statement.parameters]
    else:
        bound = [
            _bound(bindings[at if isinstance(name, str) else name]) for at, name in enumerate(statement.parameters)
        ]
    if any(isinstance(value, str) and "\0" in value for value in bound):
        if statement.sql.startswith(("INSERT", "UPDATE", "DELETE")):
            raise failures.ConstraintError("PostgreSQL takes no text with the character NUL")
        bound = [value.replace("\0", NO_CHARACTER) if isinstance(value, str) else value for value in bound]
    return bound


def _bound(value: Binding) -> Binding:
    found = listed(value)
    if found is not None:
        return Texts(found) if found and isinstance(found[0], str) else Integers(found)  # type: ignore[arg-type]
    if isinstance(value, enum.Enum):
        return str(value)
    return value
