"""The trigger phrases in a segment file, read in place."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import NamedTuple

from speckit_memory.memory.store.segment_files.container import Container
from speckit_memory.memory.store.segment_files.row_lists import RowLists
from speckit_memory.memory.store.segment_files.term_table import TermTable


class TriggerRow(NamedTuple):
    """A memory that a phrase triggers."""

    memory: int
    weight: float
    expires_at: float | None


class TriggerTable:
    """Normalised phrases, their triggers, and an index by first word. Immutable."""

    __slots__ = ("_ends", "_memories", "_phrases", "_starts", "_weights")

    def __init__(self, segment: Container) -> None:
        """Read the triggers of this segment."""
        # one row per trigger: memory id, weight, and the time of expiry or NaN
        self._memories, self._weights, self._ends = (
            segment.array(f"trigger.{name}") for name in ("memories", "weights", "ends")
        )
        self._phrases, self._starts = _Lists(segment, "trigger.phrase"), _Lists(segment, "trigger.start")

    def triggers(self, phrase: str) -> Iterator[TriggerRow]:
        """All triggers of a phrase."""
        for row in self._phrases.of(phrase):
            end = float(self._ends[row])
            yield TriggerRow(int(self._memories[row]), float(self._weights[row]), None if isnan(end) else end)

    def beginning(self, start: str) -> list[str]:
        """The phrases that begin with this word or symbol: see `trigger_index.start_of`."""
        return self._phrases.terms.names(self._starts.of(start))


class _Lists:
    """Row numbers by term."""

    __slots__ = ("_rows", "_starts", "terms")

    def __init__(self, segment: Container, name: str) -> None:
        self.terms = TermTable(segment, name)
        self._starts = segment.array(f"{name}.starts")
        self._rows = RowLists(segment.array(f"{name}.gaps"), segment.array(f"{name}.gap_starts"))

    def of(self, term: str) -> list[int]:
        number = self.terms.get(term)
        if number is None:
            return []
        rows: list[int] = self._rows.of(number, int(self._starts[number + 1] - self._starts[number])).tolist()
        return rows
