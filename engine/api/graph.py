"""How memories hang together: links by hand, what became of links, and lineages."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from speckit_memory.config.workspace.settings import Settings
from speckit_memory.engine.recording.screening import screened
from speckit_memory.engine.session.reopening import Following

if TYPE_CHECKING:
    from speckit_memory.engine.graph.lineage import Lineage
    from speckit_memory.engine.graph.linking import LinkStats, NamedChange, NamedEdge, UndoneChanges
    from speckit_memory.engine.runtime.open_store import OpenStore
    from speckit_memory.engine.upkeep.reviewing import ToReview
    from speckit_memory.memory.editing.document_links import DocumentLinks
    from speckit_memory.memory.indexing import Saved

T = TypeVar("T")


class Connecting(ABC):
    """The operations on the causal graph of the open store (features M7 and M8)."""

    @property
    @abstractmethod
    def settings(self) -> Settings:
        """The settings in force."""

    @property
    @abstractmethod
    def _followed(self) -> Following:
        """The open store."""

    @abstractmethod
    def save_file(self, path: str | Path, *, force: bool = False) -> Saved:
        """Saves one file."""

    def link(self, edges: Iterable[tuple[str, str, str, float]], created_by: str = "manual") -> int:
        """Adds causal edges (source key, relation, target key, strength), all or none; returns how many were added.

        They are of this store alone; `link_one` has a document declare one. `created_by` is "manual" for what somebody
        wants, else the name of an automatic process, whose edges are worth 0.5 at most and take nothing over that was
        made by hand or declared. Raises E030, E032 (a strength outside its
        range, a memory with 20 edges) and E080.
        """
        from speckit_memory.engine.graph import linking  # a search has no use for it

        wanted = tuple(edges)
        return len(self._followed.run(lambda opened: linking.link(opened.database, wanted, created_by), writes=True))

    def link_one(
        self, source: int | str, relation: str, target: int | str, *, strength: float | None = None, evidence: str = ""
    ) -> NamedEdge:
        """Adds the edge "source RELATION target" by hand, or changes the one there is; memories go by id or key.

        The front matter of the source declares it, so that it goes with the file. Where that cannot be edited, it is of
        this store alone, and `only_stored` of what comes back says why. `strength` is in [0, 1]; what is not given
        stays as it is, of a new link 1. Raises E030, E032 and E080, and E022 when another change of documents does
        not end.
        """
        from speckit_memory.engine.graph import linking
        from speckit_memory.engine.session.usage_events import note_linked

        told, _ = screened(evidence, self.settings.root)

        def add(opened: OpenStore, documents: DocumentLinks) -> NamedEdge:
            edge = linking.link_one(opened.database, source, relation, target, strength, told, documents)
            note_linked(opened, edge.source, edge.target)
            return edge

        return self._with_documents(add)

    def unlink(self, edge_id: int) -> tuple[NamedEdge, NamedEdge | None]:
        """Removes the edge with this id, and takes it out of the front matter that declares it; returns it, and the one
        that a document declares in its place, if one does.

        Raises E080 when there is none, E083 for one that the text of a document declares, or one that cannot be edited.
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
        """Why something was decided and what came of it: the links within `depth` hops (1 to 10) of a memory, by id or
        key, grouped by what they say, with hints on what contradicts or holds no longer.

        `direction` is "outgoing" (from source to target), "incoming" or "both"; only links of `relations` are
        followed, all six unless some are named. Raises E030, E032 and E080.
        """
        from speckit_memory.engine.graph.lineage import lineage_of

        return self._followed.run(lambda opened: lineage_of(opened.database, name, direction, depth, tuple(relations)))

    def link_history(self, name: int | str | None = None, *, by: str = "", limit: int = 100) -> tuple[NamedChange, ...]:
        """What became of edges, last first: every change of a strength, and what was made or removed by hand or by an
        automatic process; of one memory's, by id or key, or `by` one maker. Raises E080."""
        from speckit_memory.engine.graph import linking

        return self._followed.run(lambda opened: linking.history(opened.database, name, by, limit))

    def undo_links(self, changes: Sequence[int] = (), *, by: str = "", since: float = 0.0) -> UndoneChanges:
        """Takes changes of edges back: those with these ids, all or none, or, as far as possible, all that were made
        `by` somebody from `since` (epoch seconds) on.

        Front matter is changed with them. What is undone is a change as well. Raises E031 without either, E080 for an
        unknown change, E083 where an edge is not as the change left it, E032 where a memory has no room for an edge
        that was removed.
        """
        from speckit_memory.engine.graph import linking
        from speckit_memory.errors import SpeckitError

        numbers = tuple(changes)
        if bool(numbers) is bool(by):
            raise SpeckitError("E031", "say which changes, by their ids or by who made them, one of the two")
        return self._with_documents(
            lambda opened, documents: (
                linking.undo(opened.database, numbers, documents)
                if numbers
                else linking.undo_by(opened.database, by, since, documents)
            ),
            repeatable=False,
        )

    def to_review(self) -> ToReview:
        """What background work found that people should look at: pairs of memories that seem to contradict each other,
        and memories that nobody asked for in 90 days (feature M11)."""
        from speckit_memory.engine.upkeep.reviewing import to_review

        return self._followed.run(lambda opened: to_review(opened.database, time.time()))

    def dismiss(self, number: int) -> None:
        """Notes that the pair with this id does not contradict, until one of the two is edited. Raises E080."""
        from speckit_memory.engine.upkeep.reviewing import dismiss

        self._followed.run(lambda opened: dismiss(opened.database, number, time.time()), repeatable=False)

    def link_stats(self) -> LinkStats:
        """What the causal graph is like: how many edges of which relation and maker, and how many memories have one."""
        from speckit_memory.engine.graph import linking

        return self._followed.run(lambda opened: linking.stats(opened.database))

    def _with_documents(self, change: Callable[[OpenStore, DocumentLinks], T], *, repeatable: bool = True) -> T:
        """What a change of links returns, which may edit documents: those are put back when it fails, else indexed."""
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
