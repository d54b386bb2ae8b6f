"""Rows of a list of memories, optionally with their passages (feature T5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speckit_memory.engine import Memory
    from speckit_memory.memory.store.records import MemoryRecord
    from speckit_memory.pipeline.ports import Passage

MOST_PASSAGES = 500
"""Passages per page, in the order of their memories; each memory's row has its number of passages."""
MEMORY, PASSAGE = "memory", "passage"


def rows_of(memories: Sequence[MemoryRecord]) -> list[dict[str, Any]]:
    """One row per memory."""
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
            **({"created_by": memory.created_by} if memory.created_by else {}),
        }
        for memory in memories
    ]


def with_passages(memory: Memory, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Adds one row per passage after the row of its memory; `kind` distinguishes them.

    A memory whose passages do not all fit on the page is left for the next page, with those after it. If it is the
    first of the page, its first passages are listed.
    """
    all_rows: list[dict[str, Any]] = []
    room = MOST_PASSAGES
    for row in rows:
        found = memory.inventory.passages(row["id"], room + 1)
        if len(found) > room and all_rows:
            break
        all_rows += [{"kind": MEMORY, **row}, *(_passage_row(passage) for passage in found[:room])]
        room -= len(found[:room])
    return all_rows


class PartOfPage:
    """The first rows of a page with passages: the number of memories, and whether the last one is complete."""

    def __init__(self, rows: Sequence[dict[str, Any]], shown: int) -> None:
        """`rows` are those of the page, of which the first `shown` are shown: at least one if there is one."""
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
        """Memories that the next page can skip: not the last one if it is cut, unless it is the only one."""
        return self.memories - 1 if self.is_cut and self.memories > 1 else self.memories

    def told_cut(self) -> str:
        """Says which memory is cut and how much of it is shown."""
        return f"{self._of_last} of {self._last['chunks']} passages of {self._last['key']} are shown"


def is_passage(row: dict[str, Any]) -> bool:
    """Whether a row is a passage."""
    return row.get("kind") == PASSAGE


def passage_text(row: dict[str, Any]) -> str:
    """A passage as a line: its heading and its lines in the document."""
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
