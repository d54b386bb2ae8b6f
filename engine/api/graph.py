"""The operations on the causal graph: links, their history, and lineages."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from speckit_memory.engine.graph import linking
from speckit_memory.engine.graph.lineage import Lineage, lineage_of
from speckit_memory.engine.graph.linking import LinkStats, NamedChange, NamedEdge, UndoneChanges
from speckit_memory.engine.graph.report import GraphReport, LinkedNames, link_names, rank_memories, remove_edges, report
from speckit_memory.engine.recording.screening import screen_text
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.session.store_session import StoreSession
from speckit_memory.engine.session.usage_events import note_linked, noting_written
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.editing.document_links import DocumentLinks
from speckit_memory.memory.editing.one_at_a_time import one_at_a_time
from speckit_memory.memory.intake import suspicions
from speckit_memory.memory.intake.suspicions import Suspicion
from speckit_memory.memory.lifecycle.staleness import Stale, stale
from speckit_memory.memory.store.file.connection import Database


@dataclass(frozen=True, slots=True)
class ReviewQueue:
    """Pairs that seem to contradict, the surest first, and memories unused for 90 days, the oldest first."""

    contradictions: tuple[Suspicion, ...]
    stale: tuple[Stale, ...]

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        pairs = [pair._asdict() | {"similarity": round(pair.similarity, 4)} for pair in self.contradictions]
        return {"contradictions": pairs, "stale": [memory._asdict() for memory in self.stale]}


def present_findings(database: Database, now: float) -> ReviewQueue:
    """The present findings, at `now` (epoch seconds)."""
    with database.snapshot_read() as connection:
        return ReviewQueue(tuple(suspicions.standing(connection)), tuple(stale(connection, now)))


def dismiss(database: Database, number: int, now: float) -> None:
    """Records that a pair does not contradict. Raises E080 for an unknown pair."""
    with database.write() as txn:
        if not suspicions.dismiss(txn, number, now):
            raise SpeckitError(
                "E080",
                f"there is no contradiction {number}",
                hint="Pairs that were dismissed or settled are not kept for review.",
                actions=("`speckit-memory links review` shows all there are",),
            )


T = TypeVar("T")


@dataclass(eq=False)
class GraphService:
    """The operations on the causal graph of the open store (features M7 and M8)."""

    session: StoreSession

    def add_edges(self, edges: Iterable[tuple[str, str, str, float]], created_by: str = "manual") -> int:
        """Adds causal edges (source key, relation, target key, strength), all or none. Returns the number of edges
        added.

        The edges exist in this store alone; `link` writes them to documents. `created_by` is "manual" for edges
        made by people, else the name of an automatic process, whose edges have a strength of at most 0.5 and never
        replace edges that are manual or declared. Raises E030, E032 (a strength out of range, a memory with 20 edges)
        and E080.
        """
        wanted = tuple(edges)
        return self.session.write(lambda opened: linking.link(opened.database, wanted, created_by), create=True)

    def link(
        self, source: int | str, relation: str, target: int | str, *, strength: float | None = None, evidence: str = ""
    ) -> NamedEdge:
        """Adds or changes the edge "source RELATION target" by hand.

        The front matter of the source declares it, so that it moves with the file. If the file cannot be edited, the
        edge exists in this store alone, and `only_stored` of the result says why.

        Args:
            source: A memory, by id or key.
            relation: One of the six relations.
            target: A memory, by id or key.
            strength: In [0, 1]; default: unchanged, 1 for a new edge.
            evidence: A text that supports the edge; "" leaves it unchanged.

        Raises:
            SpeckitError: E030, E032 and E080; E022 if another change of documents does not end.
        """
        told, _ = screen_text(evidence, self.session.root)

        def add(opened: OpenStore, documents: DocumentLinks) -> NamedEdge:
            edge = linking.link_one(opened.database, source, relation, target, strength, told, documents)
            note_linked(opened, edge.source, edge.target)
            return edge

        return self._with_documents(add)

    def unlink(self, edge_id: int) -> tuple[NamedEdge, NamedEdge | None]:
        """Removes an edge by its id, and from the front matter that declares it.

        Returns the edge, and the edge that a document declares in its place, if any. Raises E080 if there is none, and
        E083 for an edge declared in the text of a document, or in a document that cannot be edited.
        """
        return self._with_documents(
            lambda opened, documents: linking.unlink(opened.database, edge_id, documents), repeatable=False
        )

    def lineage(
        self,
        name: int | str,
        *,
        direction: Literal["outgoing", "incoming", "both"] = "both",
        depth: int = 3,
        relations: Sequence[str] = (),
    ) -> Lineage:
        """The causes and consequences of a memory: its links, grouped by relation, with hints on contradictions.

        Args:
            name: The memory, by id or key.
            direction: "outgoing" (from source to target), "incoming" or "both".
            depth: Maximum number of hops, 1 to 10.
            relations: Follow only these relations; default: all six.

        Raises:
            SpeckitError: E030, E032 and E080.
        """
        return self.session.read(lambda opened: lineage_of(opened.database, name, direction, depth, tuple(relations)))

    def history(self, name: int | str | None = None, *, by: str = "", limit: int = 100) -> tuple[NamedChange, ...]:
        """The history of edges, latest first: changes of strength, and edges added or removed by hand or a process.

        Restricted to one memory, by id or key, or to the changes made `by` one maker. Raises E080.
        """
        return self.session.read(lambda opened: linking.history(opened.database, name, by, limit))

    def undo(self, changes: Sequence[int] = (), *, by: str = "", since: float = 0.0) -> UndoneChanges:
        """Reverts changes of edges: those with these ids, all or none; or all made `by` a maker since a time, where
        possible.

        `since` is in epoch seconds. Front matter is changed too, and the reversal is itself a change in the history.
        Raises E031 unless exactly one of both is given, E080 for an unknown change, E083 if an edge was changed since,
        and E032 if a memory has no room for a removed edge.
        """
        numbers = tuple(changes)
        if bool(numbers) is bool(by):
            raise SpeckitError("E031", "name the changes either by their ids or by their maker")
        return self._with_documents(
            lambda opened, documents: (
                linking.undo(opened.database, numbers, documents)
                if numbers
                else linking.undo_by(opened.database, by, since, documents)
            ),
            repeatable=False,
        )

    def review(self) -> ReviewQueue:
        """Memories to review (feature M11): pairs that seem to contradict, and memories unused for 90 days."""
        return self.session.read(lambda opened: present_findings(opened.database, time.time()))

    def dismiss(self, number: int) -> None:
        """Records that the pair with this id does not contradict, until one of the two is edited. Raises E080."""
        self.session.write(lambda opened: dismiss(opened.database, number, time.time()), repeatable=False)

    def stats(self) -> LinkStats:
        """Counts of edges by relation and maker, and of memories with edges."""
        return self.session.read(lambda opened: linking.stats(opened.database))

    def report(self) -> GraphReport:
        """Statistics of the causal graph: density, makers of edges, and computed values."""
        return self.session.read(lambda opened: report(opened.database.reader()))

    def remove_edges(self, made_by: str, *, dry_run: bool = False) -> int:
        """Deletes every causal edge that an automatic process made, by its name. Returns the number of edges.

        Raises E030 for a process without edges, and for edges from people and documents.
        """
        return self.session.write(
            lambda opened: remove_edges(opened.database, made_by, dry_run=dry_run), repeatable=False
        )

    def link_names(self) -> LinkedNames:
        """Links memories that mention the same names, where the graph is sparse (features M10 and S5).

        The edges are marked as made by `entities`; `remove_edges` deletes them. Raises SpeckitError if the store cannot
        be written.
        """
        return self.session.write(lambda opened: link_names(opened.database))

    def rank(self) -> int:
        """Ranks memories and detects communities now, where the graph is dense, instead of in background work (feature
        M10).

        Returns the number of memories with changed values. Raises SpeckitError if the store cannot be written.
        """
        return self.session.write(lambda opened: rank_memories(opened.database))

    def _with_documents(self, change: Callable[[OpenStore, DocumentLinks], T], *, repeatable: bool = True) -> T:
        """Runs a change of links that may edit documents. Edits are reverted on failure, else indexed."""
        with one_at_a_time(self.session.database.path):
            documents = DocumentLinks(self.session.root)
            with documents.part():
                done = self.session.write(
                    lambda opened: change(opened, documents), create=repeatable, repeatable=repeatable
                )
            if documents.changed:
                self.session.write(partial(self._save, documents.changed), create=True)
                self.session.upkeep.saved()
        return done

    def _save(self, keys: Iterable[str], opened: OpenStore) -> None:
        with noting_written(opened):
            for key in keys:
                opened.saver.save_file(self.session.root / key, force=True, now=time.time())
