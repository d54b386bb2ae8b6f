"""One state of the store, held in memory, and the step to a later state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from speckit_memory.memory.store.file.connection import Connection, Database
from speckit_memory.memory.store.read_model.facts.columns import Columns
from speckit_memory.memory.store.read_model.facts.folders import FolderTable
from speckit_memory.memory.store.read_model.facts.sessions import SessionTable
from speckit_memory.memory.store.read_model.facts.trigger_index import Entry, TriggerIndex
from speckit_memory.memory.store.read_model.facts.trigger_table import TriggerTable
from speckit_memory.memory.store.read_model.sql_answers import EncodedTexts, Fts5Search, SqlCausalGraph, SqlPassages
from speckit_memory.memory.store.read_model.state.models import Models, Relevance
from speckit_memory.memory.store.read_model.state.read_point import CONTENT, EDGES, ReadPoint
from speckit_memory.memory.store.read_model.vectors.ivf_matrix import LISTS, ListedMatrix
from speckit_memory.memory.store.read_model.vectors.matrix import VectorMatrix
from speckit_memory.memory.store.read_model.vectors.token_space import SnapshotTokens
from speckit_memory.memory.store.read_model.vectors.token_table import TokenTable
from speckit_memory.memory.store.read_model.vectors.vector_space import SnapshotVectors
from speckit_memory.memory.store.read_model.words.fts_index import FileWords
from speckit_memory.memory.store.read_model.words.lexicon import SnapshotLexicon
from speckit_memory.memory.store.reading import loading
from speckit_memory.memory.store.segment_files.container import Container
from speckit_memory.memory.store.segment_files.segment_store import SegmentStore
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.changes import Kind, Log
from speckit_memory.pipeline.arithmetic import distinct
from speckit_memory.pipeline.ports import Ids

MOST_CHANGED = 1_000
"""Memories put or deleted since the segment after which another one is used or built, or as many as there are."""

BuildSegment = Callable[[Connection], Container]
"""Builds the segment of the state that the connection's transaction sees, in memory."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of the store, read-only. Implements `pipeline.ports.Store`.

    It never changes: a later state is another object, which shares the unchanged parts. Attributes, triggers, words,
    tokens and vectors are those of a segment with the changes since; while there is no segment, words and vectors are
    looked up in the file. Data derived from edges and folders is loaded on first use. Passages, sessions, full-text
    search and graph walks are answered by SQLite.
    Inside `ReadModel.reading` all of it is of this state. Elsewhere, parts that are not in memory come from the latest
    state: a changed memory answers with its new contents or not at all, a new one is left out, and nothing of it is
    cached.
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
    tail: int
    """Number of memories that were put or deleted since the segment, repeats included."""
    segment: Container | None
    """The segment whose arrays this state shares; None while the file answers."""

    @classmethod
    def load(
        cls,
        database: Database,
        connection: Connection,
        models: Models,
        build: BuildSegment,
        earlier: tuple[Snapshot, Log] | None = None,
    ) -> Snapshot:
        """The state that the connection's open transaction sees.

        Starts from the segment, or from `earlier` if that is later, and applies the changes since. Without either, the
        file answers; a segment is built now when the file cannot tell where words stand.

        Args:
            database: The store's database.
            connection: An open transaction of this thread.
            models: Turns queries into words, tokens and vectors.
            build: Builds a segment in memory.
            earlier: An earlier state and the log of changes since.
        """
        begin: Snapshot | None
        log: Log | None
        begin, log = earlier or (None, None)
        segment = SegmentStore(database).usable()
        # Apply changes to whichever state is later; `earlier` shares arrays that are already in memory.
        later = segment is not None and (
            begin is None or begin.segment is None or segment.about["sequence"] > begin.sequence
        )
        if segment is not None and later:
            begin = cls.of_segment(segment, database, models)
            log = changes.content_since(connection, begin.sequence)  # a segment holds no edges
        if begin is not None and log is not None and begin.can_follow(log):
            return begin.advanced(database, connection, *log) if log[1] else begin
        of_file = cls.of_file(database, connection, models)
        return of_file or cls.of_segment(build(connection), database, models)

    @classmethod
    def of_segment(cls, segment: Container, database: Database, models: Models) -> Snapshot:
        """The state that a segment holds."""
        columns = Columns.of_segment(segment)
        moment = ReadPoint(database, segment.about["sequence"], CONTENT)
        return cls._of(
            database,
            models,
            moment,
            columns,
            TriggerIndex(base=TriggerTable(segment)),
            SnapshotLexicon.of_segment(segment, columns, models),
            SnapshotTokens(moment, columns, models, TokenTable.of_segment(segment)),
            segment,
        )

    @classmethod
    def of_file(cls, database: Database, connection: Connection, models: Models) -> Snapshot | None:
        """The state that the connection's open transaction sees, whose words and vectors are looked up in the file;
        None when the file cannot tell where words stand.

        Args:
            database: The store's database.
            connection: An open transaction of this thread.
            models: Turns queries into words, tokens and vectors.
        """
        columns = Columns(loading.load_attributes(connection), *loading.load_chunk_parents(connection))
        moment = ReadPoint(database, changes.latest(connection), CONTENT)
        words = FileWords.of(moment, connection, columns)
        if words is None:
            return None
        return cls._of(
            database,
            models,
            moment,
            columns,
            TriggerIndex(_triggers(connection)),
            SnapshotLexicon(columns, models, file=words),
            SnapshotTokens(moment, columns, models),
        )

    @classmethod
    def _of(
        cls,
        database: Database,
        models: Models,
        moment: ReadPoint,
        columns: Columns,
        triggers: TriggerIndex,
        lexicon: SnapshotLexicon,
        tokens: SnapshotTokens,
        segment: Container | None = None,
    ) -> Snapshot:
        """A state composed of these parts; the others are derived."""
        edges = ReadPoint(database, moment.sequence, EDGES)
        held = None if segment is None else (segment.about["model"], _matrix(segment, models))
        return cls(
            sequence=moment.sequence,
            attributes=columns,
            triggers=triggers,
            lexicon=lexicon,
            vectors=SnapshotVectors(moment, columns, models, tokens, held),
            passages=SqlPassages(database),
            fulltext=Fts5Search(database, columns),
            graph=SqlCausalGraph(database, edges, columns),
            folders=FolderTable(moment, columns),
            sessions=SessionTable(database, columns),
            tokens=tokens,
            relevance=models.relevance,
            encoder=EncodedTexts(database, models.encoder),
            content=moment,
            edges=edges,
            tail=0,
            segment=segment,
        )

    @property
    def from_file(self) -> bool:
        """Whether words or vectors are looked up in the file, as no segment has them."""
        return self.lexicon.from_file or self.vectors.from_file

    def can_follow(self, log: Log) -> bool:
        """Whether the changes should be applied to this state instead of loading another one: they are few compared
        with the segment, or change no contents."""
        changed = sum(kind in CONTENT for _, kind in log[1])
        return not changed or (
            self.segment is not None and self.tail + changed <= max(MOST_CHANGED, self.attributes.count)
        )

    @property
    def intact(self) -> bool:
        """False once another program has written to the segment whose arrays this state shares."""
        return self.segment is None or self.segment.unchanged()

    def advanced(
        self, database: Database, connection: Connection, sequence: int, changed: Sequence[tuple[int, Kind]]
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
            tokens = tokens.advanced(moment, connection, columns, outdated, put)
            vectors = vectors.advanced(moment, connection, columns, tokens, outdated, put)
            folders = folders.advanced(moment, columns, outdated)
            lexicon = lexicon.advanced(connection, columns, outdated, put)
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
            tail=self.tail + len(outdated),
            segment=self.segment,
        )


def _matrix(segment: Container, models: Models) -> VectorMatrix | ListedMatrix:
    exact = VectorMatrix.of_segment(segment)
    use_lists = LISTS in segment and models.vector_index.answers(exact.size)
    return ListedMatrix.of_segment(segment, exact) if use_lists else exact


def _triggers(connection: Connection, memories: Ids | None = None) -> Iterator[Entry]:
    for memory, phrase, _, weight, expires_at in loading.load_triggers(connection, memories):
        yield memory, phrase, weight, expires_at


def _of_kind(changed: Sequence[tuple[int, Kind]], wanted: Kind) -> Ids:
    return np.array([memory for memory, kind in changed if kind == wanted], np.int64)
