"""Renders a report as one HTML page without scripts that loads nothing."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from importlib.resources import files

from speckit_memory.errors.names import sendable
from speckit_memory.evaluation.statistics.report import CODE, Plot, Report, ReportFact, Table
from speckit_memory.server.reports.details import document_tables
from speckit_memory.server.reports.markup import Markup, element
from speckit_memory.server.reports.terminal import SIGNS

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""What a browser may load for the page: nothing."""
_DRAWN = 3
"""A page of more parts has no plots and no tables of their documents, to keep it small."""
_ROWS = 30
"""The longest table of a document on a page; longer ones are in the JSON."""
_DETAILED = 16
"""Detailed tables on a page, shared by its parts; at least one for each."""
_TITLE = 90
"""Characters of the page's title."""
_BREAK = Markup("\n")


def page(report: Report, *, mark: str, made: str) -> str:
    """The whole page as HTML.

    Args:
        report: The report.
        mark: Identifies a page of ours, which may be overwritten.
        made: What the page is and when it was made.
    """
    parts = report.parts or [report]
    drawn, detailed = len(parts) <= _DRAWN, max(1, _DETAILED // len(parts))
    header = element(
        "header",
        element("h1", report.title, id="title"),
        element("p", made, class_="about"),
        _contents(report.parts) if report.parts else "",
    )
    sections = [
        _section(one, f"c{place}", nested=bool(report.parts), drawn=drawn, detailed=detailed)
        for place, one in enumerate(parts, 1)
    ]
    closing = [*_notes(report), *_folded_tables(report.tables)] if report.parts else []
    # our own style is the only text on the page that is not escaped
    style = files("speckit_memory.server.reports").joinpath("report.css").read_text(encoding="utf-8")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="generator", content=mark),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", textwrap.shorten(report.title, _TITLE, placeholder=" …")),
        element("style", Markup(style)),
    )
    body = element("body", header, _BREAK, element("main", *sections, *closing))
    return str(sendable(f"<!DOCTYPE html>\n{element('html', _BREAK, head, _BREAK, body, _BREAK, lang='en')}\n"))


def _contents(parts: Sequence[Report]) -> Markup:
    entries = [
        element("li", element("a", *_sign(part.outcome), part.title, href=f"#c{place}"))
        for place, part in enumerate(parts, 1)
    ]
    return element("nav", element("ul", *entries), aria_label="Parts")


def _section(report: Report, anchor: str, *, nested: bool, drawn: bool, detailed: int) -> Markup:
    """One report, or one part of it.

    Args:
        report: The report.
        anchor: The id of the section.
        nested: Whether it is a part of a report, so that it needs a title.
        drawn: Whether plots are drawn.
        detailed: The largest number of detailed tables.
    """
    heading = "h3" if nested else "h2"
    lead, *reasons = report.verdict.split("\n")
    badge = element("span", *_sign(report.outcome), report.outcome, class_=f"badge {report.outcome}")
    figures = [
        *(_table(table) for table in report.tables if not table.detail),
        *((_plot(plot, heading) for plot in report.figures()) if drawn else ()),
        *(_table(table) for table in document_tables(report.data) if drawn and len(table.rows) <= _ROWS),
    ]
    contents = [
        element("h2", report.title, id=f"{anchor}-title") if nested else "",
        *_paragraphs(report.about, "about"),
        element("p", *([badge, " "] if report.outcome else []), lead, class_="lead") if lead else "",
        *(element("p", *_inline(reason)) for reason in reasons),
        element("dl", *map(_fact, report.facts), class_="tiles") if report.facts else "",
        *_notes(report),
        _folded("The figures in detail", *figures) if figures else "",
        *_folded_tables([table for table in report.tables if table.detail][:detailed]),
    ]
    return element(
        "section",
        *(part for each in contents if each for part in (_BREAK, each)),
        id=anchor,
        class_="report",
        aria_labelledby=f"{anchor}-title" if nested else "title",
    )


def _sign(outcome: str) -> Iterator[Markup | str]:
    if outcome in SIGNS:
        yield element("span", SIGNS[outcome], aria_hidden="true", class_=outcome)
        yield " "


def _fact(fact: ReportFact) -> Markup:
    note = element("dd", fact.note, class_="note") if fact.note else ""
    return element("div", element("dt", fact.name), element("dd", fact.value, class_=fact.outcome or None), note)


def _notes(report: Report) -> Iterator[Markup]:
    for note in report.notes:
        yield from _paragraphs(note, "note")


def _paragraphs(text: str, kind: str) -> Iterator[Markup]:
    """Lines as paragraphs; lines to be copied that follow one another share a block."""
    copied: list[str] = []
    for line in [*text.split("\n"), ""]:
        if line.startswith(CODE):
            copied.append(line.removeprefix(CODE))
            continue
        if copied:
            yield element("pre", element("code", "\n".join(copied)), tabindex=0)
            copied = []
        if line:
            yield element("p", *_inline(line), class_=kind)


def _inline(text: str) -> list[Markup | str]:
    # alternating pieces: plain text, and code between backticks
    return [element("code", piece) if place % 2 else piece for place, piece in enumerate(text.split("`")) if piece]


def _plot(plot: Plot, heading: str) -> Markup:
    return element(
        "figure",
        element(heading, plot.title),
        element("div", Markup(plot.draw()), role="img", aria_label=plot.caption),
        element("figcaption", plot.caption),
        _table(Table(plot.rows)),
    )


def _table(table: Table) -> Markup:
    """A table whose first column has the names of the rows."""
    heading, *others = table.rows
    body = [
        element("tr", element("th", name, scope="row"), *(element("td", cell) for cell in cells))
        for name, *cells in others
    ]
    grid = element(
        "table",
        element("caption", table.title) if table.title else "",
        element("thead", element("tr", *(element("th", name, scope="col") for name in heading))),
        element("tbody", *(part for row in body for part in (_BREAK, row))),
    )
    return element("div", grid, class_="scroll", tabindex=0, role="region", aria_label=table.title or "figures")


def _folded_tables(tables: Sequence[Table]) -> Iterator[Markup]:
    for table in tables:
        yield _folded(table.title, _table(Table(table.rows)))


def _folded(title: str, *contents: str) -> Markup:
    lines = (part for each in contents for part in (_BREAK, each))
    return element("details", element("summary", title), *lines, class_="card")
