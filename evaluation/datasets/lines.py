"""Reads the lines of a dataset's files as records with positions, and collects every problem (code E123)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from speckit_memory.config.files.regular_file import reading
from speckit_memory.errors import Problem, SpeckitError, Where

SHOWN = 50
"""Maximum number of problems listed; of the rest only the number is given."""

LONGEST_LINE = 10_000_000
"""Bytes; the same limit as for a file that becomes one memory. Longer lines could exhaust the memory."""

_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class Problems:
    """Collects the problems of a dataset, so that all are reported at once."""

    def __init__(self, hint: str = "", most: int = SHOWN) -> None:
        """`hint` is attached to each problem, "" for the general one on datasets; `most` problems are listed."""
        self._hint = hint
        self._most = most
        self.listed: list[Problem] = []
        self.count = 0

    def add(self, where: Where | None, message: str) -> None:
        """Adds a problem."""
        self.count += 1
        if self.count <= self._most:
            self.listed.append(Problem("E123", message, self._hint, where=where))

    def raise_any(self) -> None:
        """Raises SpeckitError when there are any problems."""
        if self.count > self._most:
            more = f"{self.count - self._most:,} more problems; the first {self._most} are listed"
            self.listed.append(Problem("E123", more, self._hint))
        if self.listed:
            raise SpeckitError.of(self.listed)


def lines(path: Path, problems: Problems) -> Iterator[tuple[Where, str]]:
    """The non-blank lines of a UTF-8 file with their positions. The file is not held in memory."""
    try:
        with reading(path) as file:
            # one byte more than the limit tells a longer line from one at the limit
            for number, raw in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), start=1):
                where = Where(str(path), number, 1)
                if len(raw) > LONGEST_LINE:
                    problems.add(where, f"the line is longer than {LONGEST_LINE:,} bytes; the rest is not read")
                    return
                try:
                    line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    problems.add(Where(str(path), number, error.start + 1), "the line is not UTF-8 text")
                    continue
                if line.strip():
                    yield where, line
    except OSError as error:
        problems.add(Where(str(path), 1, 1), f"the file cannot be read: {(error.strerror or str(error)).lower()}")


def json_records(path: Path, problems: Problems) -> Iterator[JsonLine]:
    """The objects of a JSON Lines file."""
    for where, line in lines(path, problems):
        try:
            fields = json.loads(line)
        except ValueError as error:
            column = error.colno if isinstance(error, json.JSONDecodeError) else 1
            reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            problems.add(Where(where.file, where.line, column), f"the line is not JSON: {reason}")
        except RecursionError:
            problems.add(where, "the line cannot be read as JSON: it is nested too deeply")
        else:
            if isinstance(fields, dict):
                yield JsonLine(fields, where, problems)
            else:
                problems.add(where, f"a line must be an object; found {_KINDS[type(fields)]}")


def table_rows(path: Path, header: tuple[str, ...], problems: Problems) -> Iterator[tuple[Where, list[str]]]:
    """The rows of a tab-separated file below its header line."""
    rows = lines(path, problems)
    first = next(rows, None)
    if first is None or first[1].split("\t") != list(header):
        found = f"found {first[1][:80]!r}" if first else "found nothing"
        where = first[0] if first else Where(str(path), 1, 1)
        problems.add(where, f"the first line must be the header {' '.join(header)}, separated by tabs; {found}")
        return
    for where, line in rows:
        cells = line.split("\t")
        if len(cells) == len(header):
            yield where, cells
        else:
            found = f"found {len(cells)} in {line[:80]!r}"
            problems.add(where, f"a line needs {len(header)} cells separated by tabs ({' '.join(header)}); {found}")


def finite(text: str, name: str, where: Where, problems: Problems) -> float | None:
    """The number in a cell of a table; None, with a problem, if it is not a finite number.

    Args:
        text: The content of the cell.
        name: The name of the column, for the problem.
        where: The position of the line.
        problems: Receives the problem.
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return number
    problems.add(where, f"the {name} must be a number; found {text[:80]!r}")
    return None


class JsonLine:
    """One object of a JSON Lines file. Fields of a wrong type are reported and read as absent."""

    def __init__(self, fields: dict[str, Any], where: Where, problems: Problems, owner: str = "") -> None:
        self.where = where
        self._fields = fields
        self._problems = problems
        self._owner = owner

    def report(self, message: str) -> None:
        """Adds a problem with this record."""
        self._problems.add(self.where, message)

    def _wrong(self, name: str, expected: str, value: object) -> None:
        shown = f" {value!r}" if isinstance(value, str | int | float) and len(repr(value)) <= 80 else ""
        self.report(f"'{self._owner}{name}' must be {expected}; found {_KINDS[type(value)]}{shown}")

    def text(self, name: str, *, required: bool = False) -> str:
        """A text; "" when absent or null."""
        value = self._fields.get(name)
        if value is None and not required:
            return ""
        if name not in self._fields:
            self.report(f"the key '{self._owner}{name}' is missing")
        elif not isinstance(value, str):
            self._wrong(name, "a text", value)
        elif required and not value.strip():
            self.report(f"'{self._owner}{name}' is empty")
        elif _SURROGATE.search(value):
            self.report(f"'{self._owner}{name}' holds half a surrogate pair, which is not a character")
        else:
            return value
        return ""

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; empty when absent or null."""
        value = self._fields.get(name)
        if value is None:
            return ()
        if isinstance(value, list) and all(isinstance(item, str) and not _SURROGATE.search(item) for item in value):
            return tuple(value)
        self._wrong(name, "a list of texts", value)
        return ()

    def moment(self, name: str) -> float | None:
        """A time in epoch seconds, given as a number or as an ISO 8601 date; without a time zone it is UTC."""
        value = self._fields.get(name)
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
        try:
            moment = datetime.fromisoformat(value if isinstance(value, str) else "")
        except ValueError:
            self._wrong(name, "an ISO 8601 date or a number of seconds since 1970", value)
            return None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()

    def record(self, name: str) -> JsonLine:
        """An object in this object; an empty one when absent or null."""
        value = self._fields.get(name)
        if value is not None and not isinstance(value, dict):
            self._wrong(name, "an object", value)
            value = None
        return JsonLine(value or {}, self.where, self._problems, f"{self._owner}{name}.")
