"""The operations on the causal graph: links, their history, and lineages."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from speckit_memory.config.workspace.settings import Settings
from speckit_memory.engine.recording.screening import screen_text
from speckit_memory.engine.session.reopening import ReopeningStore

if TYPE_CHECKING:
    from speckit_memory.engine.graph.lineage import Lineage
    from speckit_memory.engine.graph.linking import LinkStats, NamedChange, NamedEdge, UndoneChanges
    from speckit_memory.engine.runtime.open_store import OpenStore
    from speckit_memory.engine.upkeep.review_queue import ReviewQueue
    from speckit_memory.memory.editing.document_links import DocumentLinks
    from speckit_memory.memory.indexing import SaveResult

T = TypeVar("T")


class GraphOperations(ABC):
    """The operations on the causal graph of the open store (features M7 and M8)."""

    @property
    @abstractmethod
    def settings(self) -> Settings:
        """The settings in force."""

    @property
    @abstractmethod
    def _followed(self) -> ReopeningStore:
        """The open store."""

    @abstractmethod
    def save_file(self, path: str | Path, *, force: bool = False) -> SaveResult:
        """Saves one file."""

    def link(self, edges: Iterable[tuple[str, str, str, float]], created_by: str = "manual") -> int:
        """Adds causal edges (source key, relation, target key, strength), all or none. Returns the number of edges
        added.

        The edges exist in this store alone; `link_one` writes them to documents. `created_by` is "manual" for edges
        made by people, else the name of an automatic process, whose edges have a strength of at most 0.5 and never
        replace edges that are manual or declared. Raises E030, E032 (a strength out of range, a memory with 20 edges)
        and E080.
        """
        from speckit_memory.engine.graph import linking  # searches do not need it

        wanted = tuple(edges)
        return len(self._followed.run(lambda opened: linking.link(opened.database, wanted, created_by), writes=True))

    def link_one(
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
        from speckit_memory.engine.graph import linking
        from speckit_memory.engine.session.usage_events import note_linked

        told, _ = screen_text(evidence, self.settings.root)

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
        from speckit_memory.engine.graph import linking

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
        from speckit_memory.engine.graph.lineage import lineage_of

        return self._followed.run(lambda opened: lineage_of(opened.database, name, direction, depth, tuple(relations)))

    def link_history(self, name: int | str | None = None, *, by: str = "", limit: int = 100) -> tuple[NamedChange, ...]:
        """The history of edges, latest first: changes of strength, and edges added or removed by hand or a process.

        Restricted to one memory, by id or key, or to the changes made `by` one maker. Raises E080.
        """
        from speckit_memory.engine.graph import linking

        return self._followed.run(lambda opened: linking.history(opened.database, name, by, limit))

    def undo_links(self, changes: Sequence[int] = (), *, by: str = "", since: float = 0.0) -> UndoneChanges:
        """Reverts changes of edges: those with these ids, all or none; or all made `by` a maker since a time, where
        possible.

        `since` is in epoch seconds. Front matter is changed too, and the reversal is itself a change in the history.
        Raises E031 unless exactly one of both is given, E080 for an unknown change, E083 if an edge was changed since,
        and E032 if a memory has no room for a removed edge.
        """
        from speckit_memory.engine.graph import linking
        from speckit_memory.errors import SpeckitError

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

    def to_review(self) -> ReviewQueue:
        """Memories to review (feature M11): pairs that seem to contradict, and memories unused for 90 days."""
        from speckit_memory.engine.upkeep.review_queue import present_findings

        return self._followed.run(lambda opened: present_findings(opened.database, time.time()))

    def dismiss(self, number: int) -> None:
        """Records that the pair with this id does not contradict, until one of the two is edited. Raises E080."""
        from speckit_memory.engine.upkeep.review_queue import dismiss

        self._followed.run(lambda opened: dismiss(opened.database, number, time.time()), repeatable=False)

    def link_stats(self) -> LinkStats:
        """Counts of edges by relation and maker, and of memories with edges."""
        from speckit_memory.engine.graph import linking

        return self._followed.run(lambda opened: linking.stats(opened.database))

    def _with_documents(self, change: Callable[[OpenStore, DocumentLinks], T], *, repeatable: bool = True) -> T:
        """Runs a change of links that may edit documents. Edits are reverted on failure, else indexed."""
        from speckit_memory.memory.editing.document_links import DocumentLinks
        from speckit_memory.memory.editing.one_at_a_time import one_at_a_time

        with one_at_a_time(self._followed.current.database.path):
            documents = DocumentLinks(self.settings.root)
            with documents.part():
                done = self._followed.run(
                    lambda opened: change(opened, documents), writes=repeatable, repeatable=repeatable
                )
            for key in documents.changed:
                self.save_file(self.settings.root / key, force=True)
        return done
