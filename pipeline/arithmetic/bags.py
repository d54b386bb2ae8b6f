"""Bags of words over the inverted indexes of a store; see `pipeline.ports.Bags`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import NamedTuple, Self, final

import numpy as np

from speckit_memory.pipeline.arithmetic.bm25f import BagField, Bm25F, Occurrences, Rows
from speckit_memory.pipeline.ports import FIELDS, Attributes, Column, Field, Ids, Level, TermIndex

Part = tuple[Field, Level]
"""Names an inverted index."""
_WHOLE: Part = ("body", "memory")


class BagParameters(NamedTuple):
    """The parameters of bags as plain values: equal settings have the same bags."""

    weights: tuple[float, ...]
    k1: float
    b: float
    level: Level

    @classmethod
    def of(cls, weights: tuple[float, float, float, float], k1: float, b: float, level: Level) -> Self:
        """A setting of plain copied values.

        Args:
            weights: Weight of each field in the order of `FIELDS`, from 0; at least one above 0.
            k1: BM25 saturation, from 0.
            b: BM25 length normalisation, 0 to 1.
            level: memory or chunk.

        Raises:
            ValueError: For values that `pipeline.ports.Lexicon.bags` does not accept.
        """
        plain = tuple(map(float, weights))
        if len(plain) != len(FIELDS) or not all(0.0 <= weight < inf for weight in plain) or not any(plain):
            raise ValueError(f"weights are {plain}; accepted: {len(FIELDS)} numbers from 0, one of them above 0")
        k1, b = float(k1), float(b)
        if not (0.0 <= k1 < inf and 0.0 <= b <= 1.0):
            raise ValueError(f"k1 is {k1} and b is {b}; accepted: k1 from 0, b from 0 to 1")
        for known in ("memory", "chunk"):
            if level == known:
                return cls(plain, k1, b, known)
        raise ValueError(f"the level is {level!r}; accepted: memory, chunk")

    @property
    def weighted(self) -> list[tuple[Part, float]]:
        """The indexes whose words count, with their weights."""
        return [
            ((field, self.level if field == "body" else "memory"), weight)
            for field, weight in zip(FIELDS, self.weights, strict=True)
            if weight
        ]

    @property
    def parts(self) -> set[Part]:
        """The indexes that the bags need; the body's rows are the rows of the bags."""
        return {_WHOLE, ("body", self.level), *(part for part, _ in self.weighted)}


@final
class WordBags:
    """The bags of one setting over one state of the indexes. Implements `pipeline.ports.Bags`."""

    __slots__ = (
        "_alone",
        "_attributes",
        "_bm25f",
        "_ids",
        "_indexes",
        "_memories",
        "_neighbours",
        "_occurrences",
        "_parents",
    )

    def __init__(
        self,
        setting: BagParameters,
        indexes: Mapping[Part, TermIndex],
        attributes: Attributes,
        others: Iterable[tuple[BagParameters, WordBags]] = (),
    ) -> None:
        """Lay out the bags, sharing structures that do not depend on the setting's numbers.

        Args:
            setting: Field weights, k1, b and level.
            indexes: The indexes named by `setting.parts`.
            attributes: Attributes of the same state of the store as the indexes.
            others: Existing bags; those with the same fields and indexes are shared.
        """
        body = indexes["body", setting.level]
        self._attributes = attributes
        self._indexes = {part: indexes[part] for part in setting.parts}
        self._neighbours: tuple[Rows, Rows] | None = None
        self._alone = False
        self._ids: Ids
        self._memories: Ids
        self._parents: Rows
        self._occurrences: Occurrences
        weights = [weight for _, weight in setting.weighted]
        alike = next((bags for other, bags in others if self._is_like(setting, other, bags)), None)
        if alike is not None:
            self._ids, self._memories, self._parents = alike._ids, alike._memories, alike._parents
            self._occurrences = alike._occurrences
        else:
            # _ids: (height,) int64; _memories: ids of the rows of whole memories; _parents: (height,) intp, rows
            # among these
            self._ids = body.ids
            self._memories = indexes[_WHOLE].ids
            # Holes have the id -1 and belong to no memory.
            live = self._ids >= 0
            owners = np.full(len(self._ids), -1, np.int64)
            owners[live] = attributes.parents(self._ids[live])
            self._parents = _rows(indexes[_WHOLE], owners)
            fields = []
            for part, _ in setting.weighted:
                index = indexes[part]
                ids = index.ids
                if np.array_equal(ids, self._ids):
                    places = None
                else:  # indexes without removals have the same rows of memories
                    places = self._parents if np.array_equal(ids, self._memories) else _rows(index, owners)
                fields.append(BagField(index, places))
            self._occurrences = Occurrences(fields, len(self._ids), body.count)
        self._bm25f = Bm25F(self._occurrences, weights, setting.k1, setting.b)

    def _is_like(self, setting: BagParameters, other: BagParameters, bags: WordBags) -> bool:
        """Whether other bags hold the same words."""
        same = [part for part, _ in setting.weighted] == [part for part, _ in other.weighted]
        same = same and setting.level == other.level
        return same and all(bags._indexes[part] is index for part, index in self._indexes.items())

    @property
    def ids(self) -> Ids:
        """The memory or chunk of each row, -1 for a hole (a removed row)."""
        return self._ids.copy()

    @property
    def parents(self) -> Rows:
        """The row of each row's memory among the bags of memories, -1 for a hole."""
        return self._parents.copy()

    @property
    def neighbours(self) -> tuple[Rows, Rows] | None:
        """Rows of the memories just before and just after each row's memory, -1 for none; None if no row has one."""
        if not self._has_neighbours():
            return None
        assert self._neighbours is not None
        before, after = self._neighbours
        return before.copy(), after.copy()

    def _has_neighbours(self) -> bool:
        if self._neighbours is None and not self._alone:
            rows = [_rows(self._indexes[_WHOLE], side) for side in self._attributes.neighbours(self._ids)]
            if any(np.any(side >= 0) for side in rows):
                self._neighbours = rows[0], rows[1]
            else:
                self._alone = True
        return self._neighbours is not None

    @property
    def height(self) -> int:
        """The number of rows, including holes."""
        return len(self._ids)

    def ids_of(self, rows: Rows) -> Ids:
        """The memories or chunks of these rows."""
        found: Ids = self._ids[rows]
        return found

    def parents_of(self, rows: Rows) -> Rows:
        """The rows of the memories of these rows."""
        found: Rows = self._parents[rows]
        return found

    def better_neighbour(self, values: Column) -> Column | None:
        """The greater value of each row's two neighbours; None if no row has neighbours."""
        if not self._has_neighbours():
            return None
        assert self._neighbours is not None
        before, after = (values.take(side, mode="wrap") for side in self._neighbours)
        # -1 wraps to the last value; callers append one for it
        return np.maximum(before, after, out=before)

    def scores(self, terms: Mapping[str, float]) -> Column:
        """BM25F of every row over the weighted terms."""
        return self._bm25f.scores(terms)

    def coverage(self, terms: Mapping[str, float]) -> Column:
        """The share of the terms' information that each row holds, in [0, 1]."""
        return self._bm25f.coverage(terms)


def _rows(index: TermIndex, ids: Ids) -> Rows:
    """The row of each id in the index, -1 for an id that is not there; -1 stays -1."""
    return np.where(ids >= 0, index.rows_of(ids), -1).astype(np.intp)
