"""Running SQL: rows at once, and lists of values as one parameter, `IN (SELECT value FROM carray(?))`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray


def rows(connection: apsw.Connection, sql: str, parameters: apsw.Bindings = ()) -> list[Any]:
    """All rows of a query as tuples, with the types of the schema."""
    return connection.execute(sql, parameters).fetchall()


def value(connection: apsw.Connection, sql: str, parameters: apsw.Bindings = ()) -> Any:
    """The single column of the first row; None when there is no row."""
    return connection.execute(sql, parameters).get


def table_exists(connection: apsw.Connection, name: str) -> bool:
    """Whether the file has this table now. The driver's own test may use a schema that is out of date."""
    return value(connection, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (name,)) is not None


def below(column: str, folder: str) -> tuple[str, tuple[str, ...]]:
    """Condition and parameters for a path that is this folder or inside it, as a range that an index can serve: '0'
    follows '/'. All paths when empty."""
    if not folder:
        return "1", ()
    return f"({column} = ? OR ({column} >= ? AND {column} < ?))", (folder, f"{folder}/", f"{folder}0")


def integers(values: Sequence[int] | NDArray[np.int64]) -> apsw.CArrayBinding | None:
    """Integers for `carray(?)`; NULL, which yields no rows, when there are none."""
    array = np.ascontiguousarray(values, dtype=np.int64)
    return apsw.carray(array) if len(array) else None


def integer_lists(values: Iterable[int], size: int = 200) -> Iterator[apsw.CArrayBinding]:
    """The integers in lists of at most this size, each for `carray(?)`."""
    remaining = iter(values)
    while part := integers(list(islice(remaining, size))):
        yield part


def texts(values: Iterable[str]) -> apsw.CArrayBinding | None:
    """Strings for `carray(?)`; NULL, which yields no rows, when there are none."""
    array = tuple(map(str, values))  # the driver does not accept members of a StrEnum
    return apsw.carray(array) if array else None


def listed(binding: object) -> list[int] | list[str] | None:
    """The values of a list that `integers` or `texts` made; None for any other binding."""
    if not isinstance(binding, _list_type()):
        return None
    return [row[0] for row in _scratch().execute("SELECT value FROM carray(?)", (binding,))]


@cache
def _list_type() -> type:
    return type(apsw.carray(("",)))


@cache
def _scratch() -> apsw.Connection:
    # the driver keeps the values of its lists to itself, and only SQLite reads them
    return apsw.Connection(":memory:")
