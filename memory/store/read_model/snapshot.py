"""One state of the store, held in memory, and the step to a later state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apsw
import numpy as np

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.facts.columns import Columns
from speckit_memory.memory.store.read_model.facts.folders import FolderTable
from speckit_memory.memory.store.read_model.facts.sessions import SessionTable
from speckit_memory.memory.store.read_model.facts.trigger_index import Entry, TriggerIndex
from speckit_memory.memory.store.read_model.facts.trigger_table import TriggerTable
from speckit_memory.memory.store.read_model.sql_answers import EncodedTexts, Fts5Search, SqlCausalGraph, SqlPassages
from speckit_memory.memory.store.read_model.state.background_builder import BackgroundBuilder
from speckit_memory.memory.store.read_model.state.models import Models, Relevance
from speckit_memory.memory.store.read_model.state.read_point import CONTENT, EDGES, ReadPoint
from speckit_memory.memory.store.read_model.vectors.ivf_matrix import LISTS, ListedMatrix
from speckit_memory.memory.store.read_model.vectors.matrix import VectorMatrix
from speckit_memory.memory.store.read_model.vectors.token_space import SnapshotTokens
from speckit_memory.memory.store.read_model.vectors.token_table import TokenTable
from speckit_memory.memory.store.read_model.vectors.vector_space import SnapshotVectors
from speckit_memory.memory.store.read_model.words.lexicon import SnapshotLexicon
from speckit_memory.memory.store.reading import loading
from speckit_memory.memory.store.segment_files import shelf
from speckit_memory.memory.store.segment_files.container import Container
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.changes import Kind, Log
from speckit_memory.pipeline.arithmetic import distinct
from speckit_memory.pipeline.ports import Ids


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of the store, read-only. Implements `pipeline.ports.Store`.

    It never changes: a later state is another object, which shares the unchanged parts. Attributes and triggers are in
    memory from the start. Vectors, tokens, inverted indexes and data derived from edges and folders are loaded on first
    use, vectors only when used often. Passages, sessions, full-text search, graph walks and the first vector queries
    are answered by SQLite.
    Inside `ReadModel.reading` all of it is of this state. Elsewhere, parts that are not in memory come from the latest
    state: a changed memory answers with its new contents, a new one is left out, and nothing of it is cached.
    """

    sequence: int
    """The number of the last change that this state includes."""
    attributes: Columns
    triggers: TriggerIndex
    lexicon: SnapshotLexicon
    vectors: SnapshotVectors
    passages: SqlPassages
    fulltext: Fts5Search
    graph: SqlCausalGraph
    folders: FolderTable
    sessions: SessionTable
    tokens: SnapshotTokens
    relevance: Relevance
    encoder: EncodedTexts
    content: ReadPoint
    """The state of the contents of memories, for the parts that are loaded late."""
    edges: ReadPoint
    """The state of the edges between memories."""
    segment: Container | None = None
    """The segment whose arrays this state shares; None for a state loaded from the tables."""

    @classmethod
    def load(
        cls,
        database: Database,
        connection: apsw.Connection,
        models: Models,
        beside: BackgroundBuilder,
        earlier: tuple[Snapshot, Log] | None = None,
    ) -> Snapshot:
        """The state that the connection's open transaction sees.

        Starts from the segment, or from `earlier` if that is later, and applies the changes since. Reads the tables
        when the log of changes does not reach back that far, or when more memories were added than there were.

        Args:
            database: The store's database.
            connection: An open transaction of this thread.
            models: Turns queries into words, tokens and vectors.
            beside: Runs background builds.
            earlier: An earlier state and the log of changes since.
        """
        begin: Snapshot | None
        log: Log | None
        begin, log = earlier or (None, None)
        segment = shelf.usable(connection, database.path)
        # Apply changes to whichever state is later; `earlier` shares arrays that are already in memory.
        if segment is not None and (begin is None or segment.about["sequence"] > begin.sequence):
            begin = cls._of_segment(segment, database, models, beside)
            log = changes.content_since(connection, begin.sequence)  # a segment holds no edges
        if begin is None or log is None or len(_of_kind(log[1], "put")) > begin.attributes.count:
            return cls.of_tables(database, connection, models, beside)
        return begin.advanced(database, connection, *log) if log[1] else begin

    @classmethod
    def _of_segment(cls, segment: Container, database: Database, models: Models, beside: BackgroundBuilder) -> Snapshot:
        columns = Columns.of_segment(segment)
        sequence = segment.about["sequence"]
        moment = ReadPoint(database, sequence, CONTENT)
        tokens = SnapshotTokens(moment, columns, models, TokenTable.of_segment(segment))
        vectors = SnapshotVectors(moment, columns, models, tokens, (segment.about["model"], _matrix(segment, models)))
        return cls._of(
            database,
            models,
            ReadPoint(database, sequence, EDGES),
            sequence=sequence,
            attributes=columns,
            triggers=TriggerIndex(base=TriggerTable(segment)),
            lexicon=SnapshotLexicon.of_segment(segment, moment, columns, models.analyse, beside),
            vectors=vectors,
            tokens=tokens,
            content=moment,
            segment=segment,
        )

    @classmethod
    def of_tables(
        cls, database: Database, connection: apsw.Connection, models: Models, beside: BackgroundBuilder
    ) -> Snapshot:
        """The state that the connection's open transaction sees, from the tables alone.

        Args:
            database: The store's database.
            connection: An open transaction of this thread.
            models: Turns queries into words, tokens and vectors.
            beside: Runs background builds.
        """
        columns = Columns(loading.load_attributes(connection), *loading.load_chunk_parents(connection))
        sequence = changes.latest(connection)
        moment = ReadPoint(database, sequence, CONTENT)
        tokens = SnapshotTokens(moment, columns, models)
        return cls._of(
            database,
            models,
            ReadPoint(database, sequence, EDGES),
            sequence=sequence,
            attributes=columns,
            triggers=TriggerIndex(_triggers(connection)),
            lexicon=SnapshotLexicon(moment, columns, models.analyse, beside),
            vectors=SnapshotVectors(moment, columns, models, tokens),
            tokens=tokens,
            content=moment,
        )

    @classmethod
    def _of(
        cls,
        database: Database,
        models: Models,
        edges: ReadPoint,
        *,
        sequence: int,
        attributes: Columns,
        triggers: TriggerIndex,
        lexicon: SnapshotLexicon,
        vectors: SnapshotVectors,
        tokens: SnapshotTokens,
        content: ReadPoint,
        segment: Container | None = None,
    ) -> Snapshot:
        """A state composed of these parts; the others are derived."""
        return cls(
            sequence=sequence,
            attributes=attributes,
            triggers=triggers,
            lexicon=lexicon,
            vectors=vectors,
            passages=SqlPassages(database),
            fulltext=Fts5Search(database, attributes),
            graph=SqlCausalGraph(database, edges, attributes),
            folders=FolderTable(content, attributes),
            sessions=SessionTable(database, attributes),
            tokens=tokens,
            relevance=models.relevance,
            encoder=EncodedTexts(database, models.encoder),
            content=content,
            edges=edges,
            segment=segment,
        )

    @property
    def intact(self) -> bool:
        """False once another program has written to the segment whose arrays this state shares."""
        return self.segment is None or self.segment.unchanged()

    def advanced(
        self, database: Database, connection: apsw.Connection, sequence: int, changed: Sequence[tuple[int, Kind]]
    ) -> Snapshot:
        """The state after these changes.

        Args:
            database: The store's database.
            connection: An open transaction that sees the new state.
            sequence: Number of the last of these changes.
            changed: (memory id, kind) of each change.
        """
        put, gone = _of_kind(changed, "put"), _of_kind(changed, "delete")
        outdated = distinct(np.concatenate([put, gone]))
        columns, triggers, lexicon, vectors = self.attributes, self.triggers, self.lexicon, self.vectors
        folders, tokens = self.folders, self.tokens
        moment, edges = self.content, self.edges
        if len(outdated):
            columns = columns.replaced(
                gone, loading.load_attributes(connection, put), *loading.load_chunk_parents(connection, put)
            )
            triggers = triggers.replaced(outdated.tolist(), _triggers(connection, put))
            moment = ReadPoint(database, sequence, CONTENT)
            lexicon = lexicon.advanced(moment, connection, columns, outdated, put)
            tokens = tokens.advanced(moment, connection, columns, outdated, put)
            vectors = vectors.advanced(moment, connection, columns, tokens, outdated, put)
            folders = folders.advanced(moment, columns, outdated)
        else:
            moment.lasts(sequence)
        # Changes of attributes alone leave chunks, words and vectors untouched.
        used = _of_kind(changed, "attributes")
        if len(used):
            columns = columns.updated(loading.load_attributes(connection, used))
        graph = self.graph.seen_from(columns)
        if EDGES.isdisjoint(kind for _, kind in changed):
            edges.lasts(sequence)
        else:
            edges = ReadPoint(database, sequence, EDGES)
            graph = SqlCausalGraph(database, edges, columns)
        return Snapshot(
            sequence=sequence,
            attributes=columns,
            triggers=triggers,
            lexicon=lexicon,
            vectors=vectors,
            passages=self.passages,
            fulltext=Fts5Search(database, columns),
            graph=graph,
            folders=folders,
            sessions=SessionTable(database, columns),
            tokens=tokens,
            relevance=self.relevance,
            encoder=self.encoder,
            content=moment,
            edges=edges,
            segment=self.segment,
        )


def _matrix(segment: Container, models: Models) -> VectorMatrix | ListedMatrix:
    exact = VectorMatrix.of_segment(segment)
    use_lists = LISTS in segment and models.vector_index.answers(exact.size)
    return ListedMatrix.of_segment(segment, exact) if use_lists else exact


def _triggers(connection: apsw.Connection, memories: Ids | None = None) -> Iterator[Entry]:
    for memory, phrase, _, weight, expires_at in loading.load_triggers(connection, memories):
        yield memory, phrase, weight, expires_at


def _of_kind(changed: Sequence[tuple[int, Kind]], wanted: Kind) -> Ids:
    return np.array([memory for memory, kind in changed if kind == wanted], np.int64)
