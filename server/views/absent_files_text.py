"""Lines of an index report on memories whose files are missing (feature I8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from speckit_memory.errors.echo import list_names, plural

if TYPE_CHECKING:
    from speckit_memory.memory.indexing import IndexReport

NAMED = 3


def absence_lines(report: IndexReport) -> list[str]:
    """The number of absent memories and what happens to them, and the number that came back; no line for zero."""
    lines = []
    if report.absent:
        one = len(report.absent) == 1
        them = "it" if one else "them"
        lines.append(
            f"absent: {plural(len(report.absent), 'memory')} without {'its file' if one else 'their files'} "
            f"({list_names(report.absent, NAMED)}): no search finds {them}; kept for {report.absent_days:g} days "
            f"with all that was learned, and taken up again when the {'file is' if one else 'files are'} back"
        )
    if report.returned:
        lines.append(
            f"back: {plural(len(report.returned), 'memory')} taken up again with all that was learned "
            f"({list_names(report.returned, NAMED)})"
        )
    return lines
