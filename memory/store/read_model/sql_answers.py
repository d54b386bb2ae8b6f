"""The parts of a snapshot that SQLite answers, each on the connection of the calling thread.

Inside `ReadModel.reading` that connection sees the state of the snapshot. Elsewhere it sees the latest state: memories
added since are left out and deleted ones leave gaps, so that a caller never gets an id that the snapshot does not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.queries import integers, rows
from speckit_memory.memory.store.read_model.facts.columns import UNKNOWN, Columns
from speckit_memory.memory.store.read_model.facts.scope import Restriction
from speckit_memory.memory.store.read_model.state.models import QueryEncoder
from speckit_memory.memory.store.read_model.state.read_point import ReadPoint
from speckit_memory.memory.store.read_model.vectors.matrix import DECIMALS
from speckit_memory.memory.store.reading import reader, traversal
from speckit_memory.memory.store.tables.graph import edges, ranks
from speckit_memory.memory.store.tables.vectors import encoder_vectors
from speckit_memory.memory.store.tables.words import fulltext, summaries, surface
from speckit_memory.pipeline.ports import Column, Ids, MemoryName, Neighbours, Passage, Unavailable
from speckit_memory.pipeline.process.clock import opening

ASKED_OF_FILE = 2
"""Queries for the edges of a relation at a few memories that the file answers. After that all edges of the relation are
loaded, which takes longer than these queries together but pays for a caller that keeps asking."""
MORE_READ = 10
"""Factor by which more matches are read where too few of the first are admitted."""

_EDGES = "SELECT target_id, source_id FROM causal_edges WHERE relation = ?"
_EDGES_AT = f"{_EDGES} AND target_id IN (SELECT value FROM carray(?))"


class SqlPassages:
    """The texts of memories and chunks. Implements `pipeline.ports.Passages`."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def prefetch(self, ids: Sequence[int], whole: Sequence[int], summed_up: Sequence[int]) -> None:
        """Reads at once what `passages`, `bodies` and `summaries` need, where each of them would be a round trip."""
        if self._database.shared:
            with self._database.snapshot_read() as reading:
                connection: Any = reading
                if whole:
                    connection.read_ahead(reader.BODIES, (integers(whole),))
                if summed_up:
                    connection.read_ahead(summaries.OF_MEMORIES, (integers(summed_up),))
                self.passages(ids)

    def passages(self, ids: Sequence[int]) -> list[Passage]:
        """The passage of each id, in the order of `ids`; an empty one for an id that is not stored (any more).

        A memory of several chunks answers with its first chunk. A snapshot reads each passage once: several steps of a
        search ask for the same ones.
        """
        with self._database.snapshot_read() as connection:
            known: dict[int, Passage] = self._database.once("passages", lambda _: {})
            if missing := [id_ for id_ in map(int, ids) if id_ not in known]:
                # Reversed, so that matching from the end is a cheap pop; ids without a passage get an empty one.
                found = reader.passages(connection, missing)[::-1]
                for id_ in missing:
                    is_next = found and id_ in {found[-1].id, found[-1].memory}
                    known[id_] = found.pop() if is_next else Passage(id_, id_, "", "", "", 1, 1)
            return [known[id_] for id_ in map(int, ids)]

    def of_memory(self, memory: int) -> list[Passage]:
        """All passages of a memory in document order; empty when it is not stored (any more)."""
        with self._database.snapshot_read() as connection:
            return reader.passages_of(connection, memory)

    def in_sections(self, names: Sequence[str]) -> list[Passage]:
        """All passages in sections of these names, by id, and short memories that may contain one."""
        with self._database.snapshot_read() as connection:
            return reader.passages_in(connection, names)

    def headed(self, slugs: Sequence[str], memories: Ids) -> list[Passage]:
        """All passages of these memories that may begin a section whose heading has one of these slugs, by id."""
        with self._database.snapshot_read() as connection:
            return reader.passages_headed(connection, slugs, memories)

    def names(self, patterns: Sequence[str]) -> list[MemoryName]:
        """The names of memories whose names or front matter contain one of these patterns, by id."""
        with self._database.snapshot_read() as connection:
            return reader.names_like(connection, patterns)

    def summaries(self, memories: Sequence[int]) -> dict[int, Passage]:
        """The summaries of these memories, with the line range of the whole text, for memories that have one."""
        with self._database.snapshot_read() as connection:
            return summaries.of_memories(connection, memories)

    def body(self, memory: int) -> str:
        """The whole text of a memory; empty when it is not stored (any more)."""
        return self.bodies([memory])[memory]

    def bodies(self, memories: Sequence[int]) -> dict[int, str]:
        """The whole text of each memory; empty when it is not stored (any more)."""
        with self._database.snapshot_read() as connection:
            found = reader.bodies(connection, memories)
        return {memory: found.get(memory, "") for memory in map(int, memories)}


class Fts5Search:
    """Full-text search in the FTS5 tables. Implements `pipeline.ports.FullText`."""

    __slots__ = ("_columns", "_database")

    def __init__(self, database: Database, columns: Columns) -> None:
        self._database = database
        self._columns = columns

    def match(
        self, tokens: Sequence[str], weights: tuple[float, float, float, float], limit: int, scope: Restriction
    ) -> tuple[Ids, Column]:
        """Memories that contain any of the tokens, by BM25: score descending, then id ascending.

        Args:
            tokens: The tokens of the query.
            weights: Weights of title, triggers, path and body.
            limit: Number of results.
            scope: The memories that are admitted.

        Returns:
            Memory ids (n,) and positive scores (n,).
        """
        # Most memories are usually admitted, so that twice the limit contains enough; restricting the search itself
        # takes twice the time.
        tokens, weights = tuple(tokens), _four(weights)
        with self._database.snapshot_read() as connection:
            ids, scores = fulltext.match(connection, tokens, weights, 2 * limit)
            admitted = scope.admits(ids)
            # The page was full but too few rows are admitted: search again, restricted to the scope.
            if len(ids) == 2 * limit and np.count_nonzero(admitted) < limit:
                memories = self._columns.ids
                ids, scores = fulltext.match(connection, tokens, weights, limit, memories[scope.admits(memories)])
                admitted = scope.admits(ids)
        return ids[admitted][:limit], scores[admitted][:limit]

    def prefetch(self, words: Sequence[str]) -> None:
        """Reads at once what `holding` needs of these words, where each of its look-ups would be a round trip."""
        if self._database.shared:
            with self._database.snapshot_read() as connection:
                surface.prefetch(connection, words)

    def holding(self, phrases: Sequence[str], limit: int, scope: Restriction) -> Ids:
        """Memories that contain the words of each phrase consecutively, as written, ascending.

        If there are more than `limit`, any of them.
        """
        # Most matches are usually admitted. More are read where too few are: a test within the statement would have to
        # bind every admitted memory.
        read = 2 * limit
        with self._database.snapshot_read() as connection:
            while True:
                ids = surface.holding(connection, phrases, read)
                admitted = ids[scope.admits(ids)][:limit]
                if len(admitted) == limit or len(ids) < read:
                    return admitted
                read *= MORE_READ


def _four(weights: Sequence[float]) -> tuple[float, float, float, float]:
    title, triggers, path, body = map(float, weights)
    return title, triggers, path, body


class SqlCausalGraph:
    """The causal edges between memories. Implements `pipeline.ports.CausalGraph`.

    Results are cached under copies of the arguments.
    """

    __slots__ = ("_asked", "_columns", "_count", "_database", "_degrees", "_moment", "_regions", "_sources", "_walked")

    def __init__(self, database: Database, moment: ReadPoint, columns: Columns) -> None:
        self._database = database
        self._moment = moment
        self._columns = columns
        self._degrees: dict[tuple[tuple[str, float], ...], tuple[Ids, Column]] = {}
        self._regions: tuple[Ids, Ids] | None = None
        self._sources: dict[str, dict[int, list[int]]] = {}
        self._asked: dict[str, int] = {}
        self._count: int | None = None
        # Replaced as one tuple; the steps of a search walk from the same seeds.
        self._walked: tuple[tuple[bytes, int, dict[str, float]], Neighbours] | None = None

    def seen_from(self, columns: Columns) -> SqlCausalGraph:
        """The same edges as part of another snapshot; cached results are kept."""
        twin = SqlCausalGraph(self._database, self._moment, columns)
        # The dictionaries are shared: a result that one of the twins finds is known to all of them.
        twin._degrees = self._degrees
        twin._regions = self._regions
        twin._sources = self._sources
        twin._asked = self._asked
        twin._count = self._count
        return twin

    @property
    def edge_count(self) -> int:
        """Number of edges."""
        if self._count is not None:
            return self._count
        with opening(), self._moment.read() as (connection, is_of_it):
            count = edges.edge_count(connection)
            if is_of_it:
                self._count = count
            return count

    def neighbours(self, seeds: Ids, hops: int, relation_weights: dict[str, float]) -> Neighbours:
        """Everything within `hops` edges of the seeds, in either direction, without the seeds (feature M8).

        A chunk counts as its memory. Raises E032 unless 1 <= hops <= 10.
        """
        memories = self._columns.parents(seeds)
        walk, walked = (memories.tobytes(), hops, relation_weights.copy()), self._walked
        if walked is not None and walked[0] == walk:
            found = walked[1]
        else:
            with self._moment.read() as (connection, is_of_it):
                found = traversal.neighbours(connection, memories[memories != UNKNOWN], hops, relation_weights)
            if is_of_it:
                self._walked = walk, found
        known = self._columns.places(found.ids) != UNKNOWN
        return Neighbours(found.seeds[known], found.ids[known], found.hops[known], found.product[known])

    def degrees(self, relation_weights: dict[str, float]) -> tuple[Ids, Column]:
        """Every connected memory (ascending) and its weighted degree, Σ weight × strength over its edges (C5)."""
        weights = tuple(sorted((relation, float(weight)) for relation, weight in relation_weights.items()))
        found = self._degrees.get(weights)
        if found is None:
            with opening(), self._moment.read() as (connection, is_of_it):
                found = traversal.degrees(connection, dict(weights))
                if is_of_it:
                    self._degrees[weights] = found
        ids, sums = found
        known = self._columns.places(ids) != UNKNOWN
        return ids[known], sums[known]

    def in_edges(self, ids: Ids, relation: str) -> tuple[Ids, Ids]:
        """Sources and targets (memory ids) of every edge of this relation into `ids`, by source, then target.

        A chunk counts as its memory.
        """
        sources = self._sources.get(relation)
        memories = set(self._columns.parents(ids).tolist())
        if sources is None and (asked := self._asked.get(relation, 0)) < ASKED_OF_FILE:
            self._asked[relation] = asked + 1
            with self._moment.read() as (connection, _):
                sources = _by_target(rows(connection, _EDGES_AT, (relation, integers(sorted(memories)))))
        elif sources is None:
            with opening(), self._moment.read() as (connection, is_of_it):
                sources = _by_target(rows(connection, _EDGES, (relation,)))
                if is_of_it:
                    self._sources[relation] = sources
        # (edges, 2) int64, by source, then target; the reshape keeps two columns where there is no edge
        targets = sources.keys() & memories
        table = np.array(
            sorted((source, target) for target in targets for source in sources[target]), np.int64
        ).reshape(-1, 2)
        known = table[self._columns.places(table[:, 0]) != UNKNOWN]
        return known[:, 0], known[:, 1]

    def regions(self, ids: Ids) -> Ids:
        """The connected component of each id, named by its smallest memory id; -1 for none."""
        found = self._regions
        if found is None:
            with opening(), self._moment.read() as (connection, is_of_it):
                found = _components(rows(connection, "SELECT source_id, target_id FROM causal_edges"))
                if is_of_it:
                    self._regions = found
        members, names = found
        memories = self._columns.parents(ids)
        # The last element, `UNKNOWN`, is read for ids above all members.
        at = np.searchsorted(members[:-1], memories)
        regions: Ids = np.where(members[at] == memories, names[at], UNKNOWN)
        return regions

    def ranks(self, ids: Ids) -> tuple[Column, float]:
        """The PageRank of each id in multiples of the mean, 0 for none, and the maximum over the store, 0 when nothing
        is ranked. A chunk counts as its memory."""
        with self._database.snapshot_read() as connection:
            return ranks.ranks(connection, self._columns.parents(ids))

    def community(self, memory: int, limit: int) -> Ids:
        """The `limit` highest-ranked other members of a memory's community, best first."""
        with self._database.snapshot_read() as connection:
            found = np.array(ranks.members(connection, int(memory), int(limit)), np.int64)
        known: Ids = found[self._columns.places(found) != UNKNOWN]
        return known


def _by_target(edges: Sequence[tuple[int, int]]) -> dict[int, list[int]]:
    sources: dict[int, list[int]] = {}
    for target, source in edges:
        sources.setdefault(target, []).append(source)
    return sources


def _components(edges: Sequence[tuple[int, int]]) -> tuple[Ids, Ids]:
    """Every node, ascending, and the smallest node of its component; both end with `UNKNOWN`."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    # ends: node numbers of both ends of each edge, (2 · edges,)
    nodes, ends = np.unique(np.array(edges, np.int64).reshape(-1, 2), return_inverse=True)
    sources, targets = ends.reshape(-1, 2).T
    links = coo_array((np.ones(len(sources), np.int8), (sources, targets)), shape=(len(nodes), len(nodes)))
    _, numbers = connected_components(links, directed=False)
    _, first = np.unique(numbers, return_index=True)  # nodes ascend: the first of a component is its smallest
    return np.append(nodes, UNKNOWN), np.append(nodes[first[numbers]], UNKNOWN)


class EncodedTexts:
    """The stored vectors of a sentence encoder. Implements `pipeline.ports.EncoderModel`."""

    __slots__ = ("_database", "_encoder")

    def __init__(self, database: Database, encoder: QueryEncoder | None) -> None:
        self._database = database
        self._encoder = encoder

    @property
    def named(self) -> bool:
        """Whether the user has configured an encoder."""
        return self._encoder is not None

    def closeness(self, query: str, ids: Ids) -> tuple[Column, NDArray[np.bool_]] | Unavailable:
        """The cosine between a query and each of these memories and passages, and whether it is that of a whole memory.

        Both in order; NaN where there is no vector yet. See `encoder_vectors.of`. Unavailable without an encoder, and
        when the encoder fails.
        """
        if self._encoder is None:
            return Unavailable("no sentence encoder is configured")
        try:
            model_id, vector = self._encoder.model_id, self._encoder.embed_query(query)
        except SpeckitError as error:
            return Unavailable(error.problems[0].message)
        with self._database.snapshot_read() as connection:
            found = encoder_vectors.of(connection, model_id, ids)
        cosines, whole = np.full(len(ids), np.nan), np.zeros(len(ids), np.bool_)
        for place, id_ in enumerate(np.asarray(ids).tolist()):
            if id_ in found and found[id_][0].shape == vector.shape:
                cosines[place], whole[place] = np.dot(found[id_][0], vector), found[id_][1]
        return cosines.round(DECIMALS), whole
