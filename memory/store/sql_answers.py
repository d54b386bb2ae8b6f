"""The parts of a snapshot that SQLite answers, each on the connection of the calling thread.

They see the latest committed state. Memories that came since the snapshot was taken are left out and those that went
leave gaps, so that a caller never meets an id that the snapshot does not know.
"""

from __future__ import annotations

from collections.abc import Sequence

from config.errors import SpeckitError
from config.exchange import Column, Ids, Neighbours, Passage
from memory.store import edges, fulltext, reader, traversal
from memory.store.columns import UNKNOWN, Columns
from memory.store.connection import Database
from memory.store.scope import Restriction


class Passages:
    """The texts behind the ids. Implements `pipeline.ports.Passages`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def passages(self, ids: Sequence[int]) -> list[Passage]:
        """The passage of each id, in the order asked; an empty one for an id that is not stored (any more).

        A memory of several chunks answers with its first.
        """
        with self._database.snapshot_read() as connection:
            found = reader.passages(connection, ids)[::-1]
        aligned = []
        for id_ in map(int, ids):
            is_next = found and id_ in {found[-1].id, found[-1].memory}
            aligned.append(found.pop() if is_next else Passage(id_, id_, "", "", "", 1, 1))
        return aligned

    def of_memory(self, memory: int) -> list[Passage]:
        """All passages of a memory in document order; none when it is not stored (any more)."""
        with self._database.snapshot_read() as connection:
            return reader.passages_of(connection, memory)

    def body(self, memory: int) -> str:
        """The whole text of a memory; empty when it is not stored (any more)."""
        with self._database.snapshot_read() as connection:
            try:
                return reader.body(connection, memory)
            except SpeckitError as error:
                if error.code != "E080":
                    raise
                return ""


class FullText:
    """The search in the FTS5 table. Implements `pipeline.ports.FullText`."""

    def __init__(self, database: Database, columns: Columns) -> None:
        self._database = database
        self._columns = columns

    def match(
        self, tokens: Sequence[str], weights: tuple[float, float, float, float], limit: int, scope: Restriction
    ) -> tuple[Ids, Column]:
        """Memories that hold any of the tokens, with positive BM25 scores: score descending, then id ascending.

        Weights are those of title, triggers, path and body.
        """
        memories = self._columns.ids
        allowed = None if scope.complete else memories[scope.admits(memories)]
        with self._database.snapshot_read() as connection:
            ids, scores = fulltext.match(connection, tokens, weights, limit, allowed)
        known = self._columns.places(ids) != UNKNOWN
        return ids[known], scores[known]


class CausalGraph:
    """The causal edges between memories. Implements `pipeline.ports.CausalGraph`."""

    def __init__(self, database: Database, columns: Columns) -> None:
        self._database = database
        self._columns = columns
        self._degrees: dict[tuple[tuple[str, float], ...], tuple[Ids, Column]] = {}

    def seen_from(self, columns: Columns) -> CausalGraph:
        """The same edges as part of another snapshot; what was computed about them is kept."""
        twin = CausalGraph(self._database, columns)
        twin._degrees = self._degrees
        return twin

    @property
    def edge_count(self) -> int:
        """Number of edges."""
        with self._database.snapshot_read() as connection:
            return edges.edge_count(connection)

    def neighbours(self, seeds: Ids, hops: int, relation_weights: dict[str, float]) -> Neighbours:
        """Everything within `hops` edges of the seeds, in either direction, seeds themselves left out (feature M8).

        A chunk stands for its memory. Raises E032 unless 1 <= hops <= 10.
        """
        memories = self._columns.parents(seeds)
        with self._database.snapshot_read() as connection:
            found = traversal.neighbours(connection, memories[memories != UNKNOWN], hops, relation_weights)
        known = self._columns.places(found.ids) != UNKNOWN
        return Neighbours(found.seeds[known], found.ids[known], found.hops[known], found.product[known])

    def degrees(self, relation_weights: dict[str, float]) -> tuple[Ids, Column]:
        """Every connected memory (ascending) and its Σ weight × strength over all its edges (feature C5)."""
        weights = tuple(sorted(relation_weights.items()))
        if weights not in self._degrees:
            with self._database.snapshot_read() as connection:
                self._degrees[weights] = traversal.degrees(connection, relation_weights)
        ids, sums = self._degrees[weights]
        known = self._columns.places(ids) != UNKNOWN
        return ids[known], sums[known]
