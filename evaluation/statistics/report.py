"""A report as a value, said once for every renderer (`server/reports`), and results as JSON documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

LONGEST_IN_LINE = 100
"""Maximum number of characters of a query in a report."""
CODE = "    "
"""Lines of a report that begin with this are commands or values to copy: no renderer wraps or changes them."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, the column names first. The first column is left-aligned; the others are figures.

    `detail` tables are shown in full reports only.
    """

    rows: Sequence[Sequence[str]]
    title: str = ""
    detail: bool = False

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(*self.rows, strict=True)]
        padded = (
            [
                cell.rjust(width) if place else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            for row in self.rows
        )
        return "\n".join("  ".join(cells).rstrip() for cells in padded)


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing with a caption that describes it, and its figures as a table; `draw` returns it as SVG."""

    title: str
    caption: str
    rows: Sequence[Sequence[str]]
    draw: Callable[[], str]


@dataclass(frozen=True, slots=True)
class ReportFact:
    """A key figure, or the result of a check; `note` explains it or says what to do.

    `outcome` is its verdict in a word, "" without one. `detail` facts are shown in full reports only.
    """

    name: str
    value: str
    note: str = ""
    outcome: str = ""
    detail: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """What is said of one result.

    `title` names what was measured, `about` how. `outcome` is the verdict in a word, "" without one; the first line of
    `verdict` says it in a sentence, and the others give reasons. `figures` computes drawings, which takes long over
    many queries. `notes` are warnings, limits and next steps. `parts` are reports on parts of the result, such as one
    for each variant. `data` is the JSON document; full reports show all of its figures. Lines of `about` and `notes`
    that begin with `CODE` are to be copied.
    """

    title: str
    verdict: str = ""
    outcome: str = ""
    about: str = ""
    facts: Sequence[ReportFact] = ()
    tables: Sequence[Table] = ()
    figures: Callable[[], Iterable[Plot]] = tuple
    notes: Sequence[str] = ()
    parts: Sequence[Report] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


def figure(value: float | None, digits: int = 3) -> str:
    """A number without unit; a dash for None."""
    return "–" if value is None else f"{value:.{digits}f}"


def warnings_of(warnings: Sequence[str]) -> list[str]:
    """Warnings as notes of a report."""
    return [f"warning: {warning}" for warning in warnings]


def in_line(asked: str, most: int = LONGEST_IN_LINE) -> str:
    """A query on one line, cut to `most` characters: some queries are whole pages."""
    line = " ".join(asked.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


_DIGITS = 6


def as_document(value: Any) -> Any:
    """The value as plain data for JSON, with figures of six decimals.

    A dataclass may define `ENTRIES`: the place in the document by the name of a field that has another place, or of a
    property that the document holds too. Dots lead into nested objects, "." merges an object into the one around it,
    "" leaves a field out, and "?" before a name leaves out None.
    """
    if is_dataclass(value) and not isinstance(value, type):
        entries: Mapping[str, str] = getattr(value, "ENTRIES", {})
        document: dict[str, Any] = {}
        for name in dict.fromkeys((*(one.name for one in fields(value)), *entries)):
            _place(document, entries.get(name, name), getattr(value, name))
        return document
    if isinstance(value, Mapping):
        return {str(name): as_document(one) for name, one in value.items()}
    if isinstance(value, list | tuple | Set):
        return [as_document(one) for one in value]
    return round(value, _DIGITS) if isinstance(value, float) else value


def _place(document: dict[str, Any], entry: str, value: Any) -> None:
    if not entry or (entry.startswith("?") and value is None):
        return
    plain = as_document(value)
    if entry == ".":
        document.update(plain or {})
        return
    *above, last = entry.removeprefix("?").split(".")
    for step in above:
        document = document.setdefault(step, {})
    document[last] = plain
