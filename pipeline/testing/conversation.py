"""Trigger phrases, folders and sessions of the fake store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from speckit_memory.pipeline.ports import AUTHORED, Column, FolderDescription, Ids
from speckit_memory.pipeline.testing.memories import MemoryTable, words


class FakeTriggers:
    """Implements `ports.Triggers`: authored phrases weigh 1, learned ones 0.7."""

    def __init__(self, table: MemoryTable) -> None:
        self._phrases = [
            (m.id, words(phrase), weight)
            for m in table.memories.values()
            for weight, phrases in ((1.0, m.triggers), (0.7, m.learned))
            for phrase in phrases
        ]

    def exact(self, text: str) -> bool:
        """Whether a text is an authored phrase."""
        return any(phrase == words(text) and weight >= AUTHORED for _, phrase, weight in self._phrases)

    def matches(self, text: str, now: float) -> tuple[Ids, Column]:
        """The phrases that occur in a text."""
        said = f" {' '.join(words(text))} "
        rows = sorted((i, w) for i, phrase, w in self._phrases if f" {' '.join(phrase)} " in said)
        return np.array([i for i, _ in rows], np.int64), np.array([w for _, w in rows], np.float64)


class FakeFolders:
    """Implements `ports.Folders`."""

    def __init__(self, descriptions: Sequence[FolderDescription]) -> None:
        self._descriptions = tuple(descriptions)

    def described(self) -> tuple[FolderDescription, ...]:
        """The descriptions given to the constructor."""
        return self._descriptions


class FakeSessions:
    """Implements `ports.Sessions`.

    `attended` maps a session to memories with their attention, `delivered` to a set of memories.
    """

    def __init__(self, attended: dict[str, dict[int, float]], delivered: dict[str, set[int]]) -> None:
        self._attended, self._delivered = attended, delivered

    def attention(self, session: str, ids: Ids, now: float) -> Column:
        """The attention of each memory."""
        return np.array([self._attended.get(session, {}).get(int(i), 0.0) for i in ids], np.float64)

    def texts_sent(self, session: str, memories: Ids, now: float) -> list[list[str]]:
        """A text of each memory that was sent."""
        sent = self._delivered.get(session, set())
        return [[f"text of {memory}"] if memory in sent else [] for memory in memories.tolist()]
