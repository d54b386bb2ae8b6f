"""Shows what is stored several times once."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Notes, Query
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params


class DuplicatesParams(Params):
    """What happens to copies."""

    action: Literal["hide", "mark"] = Field("hide", description="Whether copies are left out or only named.")


class Duplicates:
    """Hides a memory whose content is that of a better ranked one, which names the copies it stands for.

    Two files of one text would take two places of an answer and say one thing. Equal is what has the same
    fingerprint; several passages of one memory are no copies, nor are documents that have no text at all. Of equal
    scores the memory stored first stands for the others. Feature A2.
    """

    about = About(features=("A2",))
    Params = DuplicatesParams

    def __init__(self, params: DuplicatesParams) -> None:
        self._hide = params.action == "hide"

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:  # noqa: ARG002
        """The copies by the id of the row that stands for them, and which rows stay."""
        contents = store.attributes.label("content_hash", ranking.parents).tolist()
        empty = (store.attributes.number("characters", ranking.parents) == 0).tolist()
        parents = ranking.parents.tolist()
        shown: dict[str, int] = {}
        copies: dict[int, list[int]] = {}
        keep = np.ones(len(parents), np.bool_)
        for place, (memory, content) in enumerate(zip(parents, contents, strict=True)):
            if not content or empty[place]:
                continue
            first = shown.setdefault(content, place)
            if memory != parents[first]:
                keep[place] = False
                copies.setdefault(int(ranking.ids[first]), []).append(memory)
        by_id = {row: {"also_at": sorted(set(memories))} for row, memories in copies.items()}
        return Notes(by_id=by_id, overall={"duplicates": int(np.sum(~keep))}, keep=keep if self._hide else None)
