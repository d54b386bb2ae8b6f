"""Reads the text of a memory or one of its sections, with line numbers of the document."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from speckit_memory.engine.answers.result_parts import NamedMemory
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.editing import sections
from speckit_memory.memory.lifecycle import archival
from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import MemoryRecord, Relation
from speckit_memory.memory.store.tables.memories.archivals import Away
from speckit_memory.pipeline.ports import Passage


@dataclass(frozen=True, slots=True)
class TextExcerpt:
    """A part of a memory's text. Lines count from 1 and include front matter. `sections` lists the section names."""

    memory: MemoryRecord
    text: str
    first_line: int
    last_line: int
    sections: tuple[str, ...]
    origin: str = ""
    """The store that it was read from."""
    put_away: tuple[Away, float] | None = None
    """Why the memory is archived, and since when (epoch seconds)."""
    superseded_by: tuple[NamedMemory, ...] = ()
    """The memories that supersede it, the strongest link first."""


def read(opened: OpenStore, name: int | str, section: str, first_line: int) -> TextExcerpt:
    """The stored text of a memory from a line on.

    Args:
        opened: The store.
        name: The memory, by id or key.
        section: An ANCHOR id or heading; "" for the whole text.
        first_line: The line of the document to start at.

    Raises:
        SpeckitError: E080, E104, and E032 for a line after the end.
    """
    connection = opened.database.reader()
    memory = reader.get_memory(connection, name)
    body = reader.body(connection, memory.id)
    names = tuple(dict.fromkeys(one.name for one in sections.parts(body)))
    start, end = 0, len(body)
    if section:
        found = sections.part(body, section)
        start, end = found.start, found.end
    above = _lines_above(reader.passages_of(connection, memory.id), body)
    text = body[start:end]
    # line breaks at the start are left out of the text, so they are counted
    first = above + 1 + body.count("\n", 0, start + len(text) - len(text.lstrip("\n")))
    lines = text.strip("\n").split("\n")
    skipped = max(0, first_line - first)
    if skipped >= len(lines):
        last = first + len(lines) - 1
        raise SpeckitError("E032", f"{memory.key} has no line {first_line} there: lines {first} to {last}")
    return TextExcerpt(
        memory,
        "\n".join(lines[skipped:]),
        first + skipped,
        first + len(lines) - 1,
        names,
        opened.name,
        archival.put_away(connection, memory.id, time.time()),
        _successors(connection, memory.id),
    )


def _successors(connection: Connection, memory: int) -> tuple[NamedMemory, ...]:
    found = rows(
        connection,
        "SELECT m.id, m.key, m.title FROM causal_edges e JOIN memories m ON m.id = e.source_id "
        "WHERE e.target_id = ? AND e.relation = ? ORDER BY e.strength DESC, m.key",
        (memory, str(Relation.SUPERSEDES)),
    )
    return tuple(NamedMemory(id=number, key=key, title=title) for number, key, title in found)


def _lines_above(passages: Sequence[Passage], body: str) -> int:
    """The number of front matter lines, derived from the line numbers of the first passage."""
    for passage in passages[:1]:
        at = body.find(passage.text)
        if at >= 0:
            return max(0, passage.first_line - 1 - body.count("\n", 0, at))
    return 0
