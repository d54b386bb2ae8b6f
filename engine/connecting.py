"""How memories hang together: links by hand, what became of links, and lineages."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from speckit_memory.config.settings import Settings
from speckit_memory.engine.following import Following
from speckit_memory.engine.screening import screened

if TYPE_CHECKING:
    from speckit_memory.engine.assembly import OpenStore
    from speckit_memory.engine.lineage import Lineage
    from speckit_memory.engine.linking import LinkStats, NamedChange, NamedEdge, UndoneChanges
    from speckit_memory.engine.reviewing import ToReview


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

    def link(self, edges: Iterable[tuple[str, str, str, float]], created_by: str = "manual") -> int:
        """Adds causal edges (source key, relation, target key, strength), all or none; returns how many were added.

        `created_by` is "manual" for what somebody wants, else the name of an automatic process, whose edges are worth
        0.5 at most and take nothing over that was made by hand or declared. Raises E030, E032 (a strength outside its
        range, a memory with 20 edges) and E080.
        """
        from speckit_memory.engine import linking  # a search has no use for it

        wanted = tuple(edges)
        return len(self._followed.run(lambda opened: linking.link(opened.database, wanted, created_by), writes=True))

    def link_one(
        self, source: int | str, relation: str, target: int | str, *, strength: float = 1.0, evidence: str = ""
    ) -> NamedEdge:
        """Adds the edge "source RELATION target" by hand, or changes the one there is; memories go by id or key.

        `strength` is in [0, 1]. Raises E030, E032 and E080.
        """
        from speckit_memory.engine import linking
        from speckit_memory.engine.consumption import note_linked

        told, _ = screened(evidence, self.settings.root)

        def add(opened: OpenStore) -> NamedEdge:
            edge = linking.link_one(opened.database, source, relation, target, strength, told)
            note_linked(opened, edge.source, edge.target)
            return edge

        return self._followed.run(add, writes=True)

    def unlink(self, edge_id: int) -> tuple[NamedEdge, NamedEdge | None]:
        """Removes the edge with this id; returns it, and the one that a document declares in its place, if one does.

        Raises E080 when there is none, E083 for one that a document declares: that goes with the declaration.
        """
        from speckit_memory.engine import linking

        return self._followed.run(lambda opened: linking.unlink(opened.database, edge_id), repeatable=False)

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
        from speckit_memory.engine.lineage import lineage_of

        return self._followed.run(lambda opened: lineage_of(opened.database, name, direction, depth, tuple(relations)))

    def link_history(self, name: int | str | None = None, *, by: str = "", limit: int = 100) -> tuple[NamedChange, ...]:
        """What became of edges, last first: every change of a strength, and what was made or removed by hand or by an
        automatic process; of one memory's, by id or key, or `by` one maker. Raises E080."""
        from speckit_memory.engine import linking

        return self._followed.run(lambda opened: linking.history(opened.database, name, by, limit))

    def undo_links(self, changes: Sequence[int] = (), *, by: str = "", since: float = 0.0) -> UndoneChanges:
        """Takes changes of edges back: those with these ids, all or none, or, as far as possible, all that were made
        `by` somebody from `since` (epoch seconds) on.

        What is undone is a change as well. Raises E031 without either, E080 for an unknown change, E083 where an edge
        is not as the change left it, E032 where a memory has no room for an edge that was removed.
        """
        from speckit_memory.engine import linking
        from speckit_memory.errors import SpeckitError

        numbers = tuple(changes)
        if bool(numbers) is bool(by):
            raise SpeckitError("E031", "say which changes, by their ids or by who made them, one of the two")
        return self._followed.run(
            lambda opened: (
                linking.undo(opened.database, numbers) if numbers else linking.undo_by(opened.database, by, since)
            ),
            repeatable=False,
        )

    def to_review(self) -> ToReview:
        """What background work found that people should look at: pairs of memories that seem to contradict each other,
        and memories that nobody asked for in 90 days (feature M11)."""
        from speckit_memory.engine.reviewing import to_review

        return self._followed.run(lambda opened: to_review(opened.database, time.time()))

    def dismiss(self, number: int) -> None:
        """Notes that the pair with this id does not contradict, until one of the two is edited. Raises E080."""
        from speckit_memory.engine.reviewing import dismiss

        self._followed.run(lambda opened: dismiss(opened.database, number, time.time()), repeatable=False)

    def link_stats(self) -> LinkStats:
        """What the causal graph is like: how many edges of which relation and maker, and how many memories have one."""
        from speckit_memory.engine import linking

        return self._followed.run(lambda opened: linking.stats(opened.database))
