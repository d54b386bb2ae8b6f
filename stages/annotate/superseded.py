"""Reports which results have been superseded by others."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from speckit_memory.memory.store.records import Relation
from speckit_memory.pipeline.arithmetic import distinct
from speckit_memory.pipeline.model.columns import Notes, Query
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.ports import Ids, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params


class SupersededParams(Params):
    """The treatment of memories that another result supersedes."""

    action: Literal["mark", "hide"] = Field("mark", description="Whether they are marked or left out.")


class Superseded:
    """Marks a memory that another one supersedes; may hide it if its successor is in the same answer.

    The note names every direct successor, found or not, so that a stale fact is never read as current. Memories
    superseded by another memory of the same answer, directly or transitively, may be hidden. Memories that supersede
    each other in a cycle are marked but not hidden, since none of them is known to be valid; nor is one whose successor
    was not found: hiding it would leave no answer at all. Feature M7.
    """

    about = About(features=("M7",))
    Params = SupersededParams

    def __init__(self, params: SupersededParams) -> None:
        self._hide = params.action == "hide"

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:  # noqa: ARG002
        """The successors by id, and a mask of the rows that remain."""
        sources, targets = store.graph.in_edges(ranking.parents, Relation.SUPERSEDES.value)
        if not len(sources):
            return Notes()
        replacing: dict[int, set[int]] = {}
        for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
            replacing.setdefault(target, set()).add(source)
        told = {memory: {"superseded_by": sorted(others)} for memory, others in replacing.items()}
        successors = {
            row: told[memory]
            for row, memory in zip(ranking.ids.tolist(), ranking.parents.tolist(), strict=True)
            if memory in told
        }
        if not self._hide:
            return Notes(by_id=successors)
        memories = distinct(ranking.parents)
        here = np.isin(sources, memories)
        reaches = _reachable(memories, sources[here], targets[here])
        # reaches[i, j]: i supersedes j; without pairs that supersede each other (cycles)
        replaced = memories[(reaches & ~reaches.T).any(axis=0)]
        keep = ~np.isin(ranking.parents, replaced)
        shown = set(ranking.ids[keep].tolist())
        notes = {row: note for row, note in successors.items() if row in shown}
        return Notes(by_id=notes, overall={"superseded_hidden": int(np.sum(~keep))}, keep=keep)


def _reachable(memories: Ids, sources: Ids, targets: Ids) -> NDArray[np.bool_]:
    """Which memory supersedes which, directly or transitively, bool[n, n] (transitive closure by squaring)."""
    reaches = np.zeros((len(memories), len(memories)), np.bool_)
    reaches[np.searchsorted(memories, sources), np.searchsorted(memories, targets)] = True
    while True:
        # (n, n) @ (n, n) counts the paths of twice the length; float32, since numpy multiplies it with BLAS
        further = reaches | (reaches.astype(np.float32) @ reaches.astype(np.float32) > 0)
        if np.array_equal(further, reaches):
            return reaches
        reaches = further
