"""Prints reports on a terminal: at most `MOST_LINES` lines, unless the whole report is wanted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from speckit_memory.server.console.output import print_json, printable, table_rows, wrap_text

if TYPE_CHECKING:
    from speckit_memory.evaluation.statistics.report import Report, ReportFact
    from speckit_memory.server.console.arguments.options import Common

MOST_LINES = 40
_LEAST_LINES = 5
"""Lines that a block keeps where it is cut."""
SIGNS = {"better": "▲", "worse": "▼", "same": "=", "undecided": "?", "failed": "✕", "pass": "✓", "fail": "✕"}
"""A sign for each verdict, since colour alone is not accessible."""
_COLOURS = {
    "better": "green", "pass": "green", "ok": "green", "same": "cyan", "undecided": "yellow", "warn": "yellow",
    "worse": "red", "failed": "red", "fail": "red",
}  # fmt: skip
MORE = "-v shows more"


def show_report(report: Report, common: Common) -> None:
    """Prints a report as the options ask for it: as its JSON document, in brief, or in full."""
    if common.as_json:
        print_json(report.data)
    else:
        click.echo("\n".join(report_lines(report, full=common.verbose)))


def show_reports(reports: Iterable[Report], common: Common) -> None:
    """Prints reports, each as soon as there is one; as JSON, more than one are a list."""
    if common.as_json:
        documents = [report.data for report in reports]
        print_json(documents if len(documents) > 1 else documents[0])
        return
    for report in reports:
        show_report(report, common)


def report_lines(report: Report, *, full: bool) -> list[str]:
    """The lines of a report, wrapped to the terminal if there is one."""
    blocks = [block for block in _blocks(report, full=full) if block.lines]
    if not full:
        _shorten(blocks, MOST_LINES - 1)
    shown = (block.lines for block in blocks if block.lines)
    lines = [line for place, block in enumerate(shown) for line in (*([""] if place else []), *block)]
    if full or not (report.tables or report.facts or report.parts):
        return lines
    return [*lines[: MOST_LINES - 1], wrap_text(MORE, dim=True)]


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines that stand together; of too many, those of tables are left out first."""

    lines: list[str]
    of_table: bool = False


def _blocks(report: Report, *, full: bool) -> Iterator[_Block]:
    from speckit_memory.server.reports.details import tables_of

    yield _Block([*_text(report.title, bold=True), *_text(report.about, dim=True)])
    yield _Block(_verdict(report))
    yield _Block(_facts([fact for fact in report.facts if full or not fact.detail]))
    for table in tables_of(report, full=full):
        rows = table_rows(table.rows, right=range(1, len(table.rows[0])), headed=True)
        yield _Block([*_text(table.title), *"\n".join(rows).split("\n")], of_table=True)
    if full:
        for part in report.parts:
            yield from _blocks(part, full=True)
    else:
        yield _Block([line for part in report.parts for line in _brief(part)])
    yield _Block([line for note in report.notes for line in _text(note)])


def _brief(part: Report) -> list[str]:
    """A part of a report in a few lines: its verdict, or the reasons where there are no facts, and its facts."""
    first, *reasons = _verdict(replace(part, verdict=f"{part.title}: {part.verdict}"))
    if not part.facts:
        return [first, *reasons]
    return [first, *_text(" · ".join(f"{fact.name} {fact.value}" for fact in part.facts), "  ", dim=True)]


def _verdict(report: Report) -> list[str]:
    """The verdict, with its sign."""
    if not report.verdict:
        return []
    first, *others = report.verdict.split("\n")
    sign = click.style(f"{SIGNS[report.outcome]} ", fg=_COLOURS[report.outcome], bold=True) if report.outcome else ""
    return wrap_text(first, first=sign, bold=bool(sign)).split("\n") + [
        line for other in others for line in _text(other)
    ]


def _facts(facts: Sequence[ReportFact]) -> list[str]:
    """Figures with their notes beside them, or results of checks with their notes below."""
    if not any(fact.outcome for fact in facts):
        lines = table_rows([(fact.name, fact.value, fact.note) for fact in facts])
        return "\n".join(lines).split("\n") if facts else []
    lines = []
    rows = [(click.style(fact.outcome, fg=_COLOURS[fact.outcome]), fact.name, fact.value) for fact in facts]
    for row, fact in zip(table_rows(rows), facts, strict=True):
        lines += row.split("\n")
        lines += wrap_text(fact.note, "        ", "      → ").split("\n") if fact.note else []
    return lines


def _text(text: str, indent: str = "", **style: Any) -> list[str]:
    """Lines of text, each wrapped; lines to be copied stay as they are."""
    from speckit_memory.evaluation.statistics.report import CODE

    lines: list[str] = []
    for line in text.split("\n") if text else ():
        copied = line.startswith(CODE)
        lines += [printable(indent + line)] if copied else wrap_text(line, indent, **style).split("\n")
    return lines


def _shorten(blocks: Sequence[_Block], room: int) -> None:
    """Cuts the longest tables until all fit into `room` lines with blanks between; else the last ones go, and then the
    longest other blocks are cut."""
    tables = [block for block in blocks if block.of_table]
    others = [block for block in blocks if not block.of_table]
    over = sum(len(block.lines) for block in blocks) + len(blocks) - 1 - room
    over = _cut(tables, over)
    for block in reversed(tables):
        if over > 0:
            over -= len(block.lines) + 1
            block.lines.clear()
    _cut(others, over)


def _cut(blocks: Sequence[_Block], over: int) -> int:
    """Cuts the longest blocks by `over` lines; returns how many could not be cut."""
    for block in sorted(blocks, key=lambda one: len(one.lines), reverse=True):
        kept = max(_LEAST_LINES, len(block.lines) - over - 1)
        hidden = len(block.lines) - kept
        if over > 0 and hidden > 1:
            block.lines[kept:] = [f"… {hidden} more lines"]
            over -= hidden - 1
    return over
