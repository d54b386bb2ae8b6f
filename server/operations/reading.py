"""Read a memory: its text or sections of it, from any line on, for a client within its budget (feature A7)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from speckit_memory.errors.echo import plural
from speckit_memory.server.console.markdown import TEXT_FIELD, about, one_line, quote_text
from speckit_memory.server.operations.fields import MemoryKey, Name
from speckit_memory.server.operations.operation import Call, Option, Parameters, Row, View, operation

if TYPE_CHECKING:
    from speckit_memory.engine.search.reading import TextExcerpt
    from speckit_memory.memory.store.tables.memories.archivals import Away
    from speckit_memory.server.replies.envelope import Count
    from speckit_memory.server.workspace.workspace import Workspace

BUDGET = 4000
"""Token budget, as for searches for whole memories."""
FOR_TEXT = 0.9
"""Share of the budget for texts; keys and hints take the rest."""
FOR_HINTS = 120
"""Minimum of tokens reserved for keys and hints."""
MOST_SECTIONS = 40
"""Names of sections listed."""


class MemoryText(Parameters):
    key: MemoryKey
    section: Annotated[Name, Option("Only this section, by ANCHOR id or heading.")] = ""
    from_line: Annotated[int, Field(strict=True, ge=1), Option("Begin at this line of the document.")] = 1
    session: Annotated[Name, Option("Name of the reading session, which then attends to the memory.")] = ""


@operation("daily", "show", one_door="the tool is memory_search with `key`", reads=True)
def show(call: Call, params: MemoryText) -> View:
    """Print the stored text of a memory: all of it, or one section."""
    from speckit_memory.server.console.arguments.memory_names import known_key

    memory = call.memory()
    found = memory.documents.read(known_key(memory, params.key), section=params.section, first_line=params.from_line)
    memory.feedback.opened(found, session=params.session)
    record = found.memory
    hidden = _away_text(found.put_away, "`unarchive`") if found.put_away else ""
    return View(
        f"{record.key}:{found.first_line}-{found.last_line} (id {record.id}, {record.tier})",
        {
            "id": record.id,
            "key": record.key,
            "title": record.title,
            "tier": str(record.tier),
            "lines": [found.first_line, found.last_line],
            "sections": list(found.sections),
            **({"created_by": record.created_by} if record.created_by else {}),
            **_away_data(found.put_away),
            **_superseded_data(found),
            "text": found.text,
        },
        hints=tuple(filter(None, (hidden, _superseded_text(found)))),
        text=found.text + "\n",
    )


def read_whole(
    workspace: Workspace, name: int | str, sections: list[str], from_line: int, session: str, budget: int = BUDGET
) -> View:
    """The answer of `memory_search` to a key: the text of a memory, and a hint where to go on if it does not fit.

    Args:
        workspace: The workspace.
        name: Id or key of the memory.
        sections: Anchors or headings of the sections to read; [] for the whole text.
        from_line: First line to read, from 1.
        session: Session that reads, "" for none.
        budget: Token budget of the answer.

    Raises:
        SpeckitError: E080 with the nearest keys for an unknown memory.
    """
    from speckit_memory.server.console.arguments.memory_names import known_key

    memory = workspace.memory()
    known = known_key(memory, name)
    readings = [memory.documents.read(known, section=section, first_line=from_line) for section in sections or [""]]
    record = readings[0].memory
    room, cut = min(int(budget * FOR_TEXT), budget - FOR_HINTS), False
    hints: list[str] = []
    rows: list[Row] = []
    for section, reading in zip(sections or [""], readings, strict=True):
        text, lines, broken = _fitting(reading, room, bool(rows), workspace.count_tokens)
        if lines:
            room -= workspace.count_tokens([quote_text(text)])[0]
            rows.append(_row(reading, section, text, lines))
        last = reading.first_line + lines - 1
        cut = cut or broken or last < reading.last_line
        if broken:
            hints.append(f"line {last} is cut, it is longer than the budget")
        if last < reading.last_line:
            hints.append(f"{plural(reading.last_line - last, 'line')} more: continue with fromLine={last + 1}")
            break
    if rows:
        memory.feedback.opened(replace(readings[0], text=rows[0][TEXT_FIELD]), session=session)
    if superseded := _superseded_text(readings[0]):
        hints.insert(0, one_line(superseded))
    if put_away := readings[0].put_away:
        hints.append(_away_text(put_away, "memory_validate as useful"))
    names = list(readings[0].sections)
    if names and not sections:
        told = min(MOST_SECTIONS, MOST_SECTIONS * budget // BUDGET)
        further = f" and {len(names) - told} more" if len(names) > told else ""
        hints.append(f"sections, for anchors: {', '.join(map(one_line, names[:told]))}{further}")
    return View(
        f"{record.key}, read {'in part' if cut else 'to its end'}",
        {
            "sections": names[:MOST_SECTIONS],
            "results": rows,
            **_away_data(readings[0].put_away),
            **_superseded_data(readings[0]),
        },
        rows="results",
        hints=tuple(hints),
        reply={"whole_texts": True, "row_text": _row_text, "budget": budget, "again": None},
    )


def _row(reading: TextExcerpt, section: str, text: str, lines: int) -> Row:
    record = reading.memory
    return {
        "id": record.id,
        "key": record.key,
        "title": record.title,
        "tier": str(record.tier),
        "lines": [reading.first_line, reading.first_line + lines - 1],
        **({"section": section} if section else {}),
        **({"created_by": record.created_by} if record.created_by else {}),
        TEXT_FIELD: text,
    }


def _fitting(reading: TextExcerpt, room: int, further: bool, count: Count) -> tuple[str, int, bool]:
    """The lines that fit, their number, and whether the only one was cut; the lines of further sections are not cut."""
    lines = reading.text.split("\n")
    # sizes: tokens per line; their sum only approximates the tokens of the joined text
    sizes = count([quote_text(line) + "\n" for line in lines])
    fitting = total = 0
    while fitting < len(lines) and total + sizes[fitting] + 1 <= room:
        total += sizes[fitting] + 1
        fitting += 1
    # correct the estimate with the exact count
    while fitting > 1 and count([quote_text("\n".join(lines[:fitting]))])[0] > room:
        fitting -= 1
    if fitting or further:
        return "\n".join(lines[:fitting]), fitting, False
    # a single line longer than the budget: cut it, starting from about four characters per token
    text = lines[0][: room * 4]
    while count([quote_text(text)])[0] > room:
        text = text[: len(text) * 3 // 4]
    return f"{text}…", 1, True


def _row_text(_number: int, row: Row) -> str:
    first, last = row["lines"]
    title = row["title"] if row["title"] != row["key"] else ""
    section = f"section {row['section']}" if "section" in row else ""
    tier = row["tier"] if row["tier"] != "normal" else ""
    head = f"\n## {one_line(row['key'])}:{first}-{last}"
    author = f"created by {row['created_by']}" if "created_by" in row else ""
    return "\n".join([head, about(title, section, f"id {row['id']}", tier, author), quote_text(row[TEXT_FIELD])])


def _away_text(put_away: tuple[Away, float], way_back: str) -> str:
    """Says why and since when a memory is hidden from searches, and how to restore it."""
    from speckit_memory.server.views.rows.rows import when

    reason, since = put_away[0], when(put_away[1])
    # absent memories come back with their file, archived ones by a command
    if reason == "absent":
        return f"absent since {since}: no search finds it until its file is back and indexed"
    return f"archived since {since} ({reason}): no search finds it; {way_back} brings it back"


def _away_data(put_away: tuple[Away, float] | None) -> dict[str, Any]:
    """The reason and date as a field of an answer; {} for a memory that searches find."""
    from speckit_memory.server.views.rows.rows import when

    if not put_away:
        return {}
    reason, since = put_away[0], when(put_away[1])
    return {"absent": {"since": since}} if reason == "absent" else {"archived": {"reason": reason, "since": since}}


def _superseded_text(reading: TextExcerpt) -> str:
    """The memories that supersede it, as a line; "" if there are none."""
    named = [
        f"{other['key']} ({other['title']}, id {other['id']})"
        if other["title"] != other["key"]
        else f"{other['key']} (id {other['id']})"
        for other in reading.superseded_by
    ]
    return f"superseded by {', '.join(named)}" if named else ""


def _superseded_data(reading: TextExcerpt) -> dict[str, Any]:
    """The superseding memories as a field of an answer; {} if there are none."""
    return {"superseded_by": list(reading.superseded_by)} if reading.superseded_by else {}
