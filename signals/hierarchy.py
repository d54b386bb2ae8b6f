"""Raises memories in folders related to those of the best memories."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, SignalParams


class HierarchyParams(SignalParams):
    """The weights of related folders."""

    weight: float = Field(
        0.1, ge=0, le=1, description="Score added in the folder of a seed.", json_schema_extra={"tunable": [0.0, 0.3]}
    )
    seeds: int = Field(3, ge=1, le=20, description="Number of best memories whose folders count.")
    parent: float = Field(0.8, ge=0, le=1, description="Relatedness of a parent or child folder.")
    grandparent: float = Field(0.6, ge=0, le=1, description="Relatedness over two levels.")
    sibling: float = Field(0.5, ge=0, le=1, description="Relatedness of two folders with the same parent.")


class Hierarchy:
    """Adds weight × the relatedness of a row's folder to the folders of the best other memories.

    The same folder counts 1, one level up or down 0.8, two levels 0.6, a sibling 0.5, all others 0. The folders of the
    best 3 memories count; a memory does not count for itself. If the query names a folder, that folder counts instead.
    Unit scale, in [0, weight]. Feature F18.
    """

    about = About(features=("F18",))
    Params = HierarchyParams
    combine: ClassVar[Literal["add", "multiply"]] = "add"

    def __init__(self, params: HierarchyParams) -> None:
        self._params = params

    def evidence(self, query: Query, pool: Pool, store: Store) -> Column | Unavailable:
        """The gain of each row from its folder."""
        p, parents = self._params, pool.candidates.parents
        folders = store.attributes.label("folder", pool.ids)
        if query.wanted.folder:
            return p.weight * self._kinship(folders, query.wanted.folder.rstrip("/"))
        best_first = parents[pool.order()]
        _, first = np.unique(best_first, return_index=True)
        best = np.zeros(len(pool))
        # A memory must not raise itself, hence the 0 for the seed's own rows.
        for seed in best_first[np.sort(first)[: p.seeds]]:
            folder = str(folders[np.argmax(parents == seed)])
            best = np.maximum(best, np.where(parents == seed, 0.0, self._kinship(folders, folder)))
        return p.weight * best

    def _kinship(self, folders: NDArray[np.object_], of: str) -> Column:
        known = {str(folder): self._related(str(folder), of) for folder in set(folders.tolist())}
        return np.array([known[str(folder)] for folder in folders.tolist()], np.float64)

    def _related(self, one: str, other: str) -> float:
        p = self._params
        if not one or not other:
            return 0.0
        a, b = one.split("/"), other.split("/")
        if a == b:
            return 1.0
        shorter, longer = sorted((a, b), key=len)
        # one folder is inside the other: the number of levels between them decides
        if longer[: len(shorter)] == shorter:
            return {1: p.parent, 2: p.grandparent}.get(len(longer) - len(shorter), 0.0)
        return p.sibling if a[:-1] == b[:-1] and len(a) > 1 else 0.0
