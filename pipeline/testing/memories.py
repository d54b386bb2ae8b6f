"""The content of the fake store: memories and edges between them, as plain Python data."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

DAY = 86_400.0
"""Seconds."""


def words(text: str) -> tuple[str, ...]:
    """The words of a text in the fake store: runs of letters and digits, case-folded."""
    return tuple(re.findall(r"[^\W_]+", text.casefold()))


@dataclass
class Memory:
    """One memory. `chunks` are its texts; a single chunk shares the memory's id, several are numbered id·100 + i.

    `numbers` and `labels` are further facts, by their names in `ports.Attributes`.
    """

    id: int
    title: str = ""
    chunks: tuple[str, ...] = ("",)
    triggers: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    path: str = ""
    folder: str = ""
    tier: str = "normal"
    context_type: str = "general"
    document_type: str = "memory"
    memory_type: str = "declarative"
    numbers: dict[str, float] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def chunk_ids(self) -> list[int]:
        """The ids of its texts, in order."""
        if len(self.chunks) == 1:
            return [self.id]
        return [self.id * 100 + i for i in range(1, len(self.chunks) + 1)]


class MemoryTable:
    """The memories of a fake store by id, and the memory that each id of a memory or of a text belongs to."""

    def __init__(self, memories: Iterable[Memory]) -> None:
        self.memories = {memory.id: memory for memory in memories}
        self.parent = {id_: memory.id for memory in self.memories.values() for id_ in (memory.id, *memory.chunk_ids)}


@dataclass(frozen=True)
class Edge:
    """A causal edge from one memory to another; `strength` is in (0, 1]."""

    source: int
    target: int
    relation: str = "supports"
    strength: float = 1.0
