"""Memories as they are listed, each with its passages below it where they are wanted (feature T5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.engine import Memory
    from speckit_memory.memory.store.records import MemoryRecord
    from speckit_memory.pipeline.ports import Passage

MOST_PASSAGES = 500
"""Of one page, in the order of its memories; each memory tells how many it has."""
MEMORY, PASSAGE = "memory", "passage"


def rows_of(memories: Sequence[MemoryRecord]) -> list[dict[str, Any]]:
    """A row for each memory."""
    from speckit_memory.memory.parsing.limits import cut_at_word
    from speckit_memory.memory.parsing.markdown.title import LONGEST_TITLE
    from speckit_memory.server.views.rows.rows import judgement, when

    return [
        {
            "id": memory.id,
            "key": memory.key,
            "title": cut_at_word(memory.title, LONGEST_TITLE),
            "tier": str(memory.tier),
            "importance": memory.importance_weight,
            "updated": when(memory.updated_at) if memory.updated_at else "unknown",
            "chunks": memory.chunk_count,
            **(judgement(memory) if memory.validation_count else {}),
        }
        for memory in memories
    ]


def with_passages(memory: Memory, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with one for each passage behind that of its memory; `kind` tells which is which.

    A memory whose passages do not all have room on this page is left for the next one, and so are those after it. Of
    one that no page has room for, the first passages are there.
    """
    all_rows: list[dict[str, Any]] = []
    room = MOST_PASSAGES
    for row in rows:
        found = memory.passages(row["id"], room + 1)
        if len(found) > room and all_rows:
            break
        all_rows += [{"kind": MEMORY, **row}, *(_passage_row(passage) for passage in found[:room])]
        room -= len(found[:room])
    return all_rows


class PartOfPage:
    """The first rows of a page with passages: how many memories they are, and whether the last one is whole."""

    def __init__(self, rows: Sequence[dict[str, Any]], shown: int) -> None:
        """Of the `rows` of a page, of which so many are `shown`: at least one, where there is one."""
        starts = [place for place, row in enumerate(rows[:shown]) if not is_passage(row)]
        self.memories = len(starts)
        self.passages = shown - len(starts)
        self._of_last = shown - 1 - starts[-1] if starts else 0
        self._last = rows[starts[-1]] if starts else {}
        self._cut = shown < len(rows) and is_passage(rows[shown])

    @property
    def is_cut(self) -> bool:
        """Whether passages of the last memory are missing."""
        return self._cut or (self._last.get("kind") == MEMORY and self._last["chunks"] > MOST_PASSAGES)

    @property
    def done(self) -> int:
        """How many memories need not come again: without the last one if it is cut, unless it is the only one."""
        return self.memories - 1 if self.is_cut and self.memories > 1 else self.memories

    def told_cut(self) -> str:
        """Which memory is cut, and how far it is shown."""
        return f"{self._of_last} of {self._last['chunks']} passages of {self._last['key']} are shown"


def is_passage(row: dict[str, Any]) -> bool:
    """Whether a row is that of a passage."""
    return row.get("kind") == PASSAGE


def passage_text(row: dict[str, Any]) -> str:
    """A passage in a line: its heading, and where it stands in the document."""
    first, last = row["lines"]
    return f"{row['heading'] or '(no heading)'}, lines {first} to {last}"


def _passage_row(passage: Passage) -> dict[str, Any]:
    return {
        "kind": PASSAGE,
        "id": passage.id,
        "memory": passage.memory,
        "heading": passage.heading,
        **({"anchor": passage.anchor} if passage.anchor else {}),
        "lines": [passage.first_line, passage.last_line],
    }
