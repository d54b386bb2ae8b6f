"""Shows a JSON document as tables, so that full reports lack none of its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from speckit_memory.evaluation.statistics.report import Report, Table

Row = Mapping[str, Any]


def tables_of(report: Report, *, full: bool) -> list[Table]:
    """The tables of a report; with `full` also the detailed ones, those of its figures and those of its document.

    The document of a report with parts is shown by these, and that of checks by their results.
    """
    if not full:
        return [table for table in report.tables if not table.detail]
    shown = report.parts or any(fact.outcome for fact in report.facts)
    plots = [Table(figure.rows, f"{figure.title}: {figure.caption}") for figure in report.figures()]
    return [*report.tables, *plots, *([] if shown else document_tables(report.data))]


def document_tables(document: Row) -> Iterator[Table]:
    """Every value of a document: single values first, then a table for each list of objects."""
    values, lists = _divided(document)
    if values:
        yield Table([("figure", "value"), *values.items()], "all figures")
    for name, rows in lists.items():
        yield from _tables(name, rows)


def _tables(name: str, rows: Sequence[Row]) -> Iterator[Table]:
    divided = [_divided(row) for row in rows]
    columns = list(dict.fromkeys(column for values, _ in divided for column in values))
    cells = [[values.get(column, "") for column in columns] for values, _ in divided]
    if columns:
        table = [columns, *cells]
        # more columns than rows: a line for each column is easier to read
        yield Table(list(zip(*table, strict=True)) if len(columns) > len(rows) + 1 else table, name)
    below: dict[str, list[Row]] = {}
    for values, lists in divided:
        label = next(iter(values.values()), "")
        for within, inner in lists.items():
            below.setdefault(within, []).extend({name: label, **row} for row in inner)
    for within, inner in below.items():
        yield from _tables(f"{name}: {within}", inner)


def _divided(row: Row, prefix: str = "") -> tuple[dict[str, str], dict[str, list[Row]]]:
    """The values of a row as cells, by their path, and its lists of objects."""
    values: dict[str, str] = {}
    lists: dict[str, list[Row]] = {}
    for key, value in row.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            inner_values, inner_lists = _divided(value, f"{name}.")
            values |= inner_values
            lists |= inner_lists
        elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            lists[name] = value
        else:
            values[name] = _cell(value)
    return values, lists


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_cell, value))
    return str(value)
