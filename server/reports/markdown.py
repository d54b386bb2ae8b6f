"""Writes reports as Markdown, such as summaries for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from speckit_memory.evaluation.statistics.report import CODE, Report
from speckit_memory.server.console.markdown import one_line
from speckit_memory.server.reports.details import tables_of


def markdown(report: Report, *, full: bool = False, level: int = 3) -> str:
    """The report as Markdown.

    Args:
        report: The report.
        full: Whether every figure is shown.
        level: The level of its heading; those of its parts are one below.
    """
    return "\n\n".join(_paragraphs(report, full, level)) + "\n"


def _paragraphs(report: Report, full: bool, level: int) -> Iterator[str]:
    yield f"{'#' * level} {one_line(report.title)}"
    verdict, *reasons = report.verdict.split("\n")
    for text in (verdict, *reasons, *report.about.split("\n")):
        if text:
            yield text if text.startswith(CODE) else one_line(text)
    facts = [fact for fact in report.facts if full or not fact.detail]
    if facts:
        yield "\n".join(
            "- " + " · ".join(filter(None, (fact.outcome, f"{fact.name}: {one_line(fact.value)}", one_line(fact.note))))
            for fact in facts
        )
    for table in tables_of(report, full=full):
        if table.title:
            yield f"**{one_line(table.title)}**"
        yield _table(table.rows)
    notes = [
        line if line.startswith(CODE) else f"- {one_line(line)}" for one in report.notes for line in one.split("\n")
    ]
    if notes:
        # a list item goes on in the lines indented below it
        yield "\n".join(notes).replace(f"\n{CODE}", f"\n\n{CODE}{CODE}")
    for part in report.parts:
        yield from _paragraphs(part, full, level + 1)


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = [[one_line(cell).replace("|", "\\|") for cell in row] for row in rows]
    rule = ["---", *("--:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *body))
