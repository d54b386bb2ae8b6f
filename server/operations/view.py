"""The result of an operation, from which both doors render their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.errors import Problem

Row = dict[str, Any]
Cells = Callable[[Row], Sequence[str]]


def no_cells(row: Row) -> Sequence[str]:
    """Renders no row; for views without rows."""
    raise NotImplementedError(f"a view of rows with {', '.join(row)} has no cells")


@dataclass(frozen=True, slots=True)
class View:
    """The result of an operation.

    Attributes:
        summary: One sentence.
        data: The result as plain data: the JSON document of the command, and `data` of the tool's answer.
        facts: Names and values; empty values are not shown.
        rows: Name of the list in `data` that is shown row by row; "" for none.
        cells: Returns the cells of a row; empty cells are not shown.
        heads: Headings of the cells, which make a table of them; () for one line per row.
        text: A text to print as it is: at the command line everything else goes to standard error.
        hints: Sentences on what to do next.
        remarks: Sentences that the command prints to standard error.
        problems: What was found to be wrong; the JSON document of the command is then that of an error.
        document: JSON document of the command where it differs from `data`.
        status: Exit status of the command.
        reply: Further fields of the tool's `Reply`, such as its budget.
        after: Called with the rows that were sent.
    """

    summary: str
    data: dict[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    rows: str = ""
    cells: Cells = no_cells
    heads: tuple[str, ...] = ()
    text: str | None = None
    hints: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    document: dict[str, Any] | None = None
    status: int = 0
    reply: dict[str, Any] = field(default_factory=dict)
    after: Callable[[Sequence[Row]], None] | None = None
