"""Shows content that is stored several times only once."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Notes, Query
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params


class DuplicatesParams(Params):
    """The treatment of copies."""

    action: Literal["hide", "mark"] = Field("hide", description="Whether copies are hidden or only named.")


class Duplicates:
    """Hides a memory with the same content as a better ranked one, which then names its copies.

    Two files with the same text would take two places of an answer without adding information. Contents are equal if
    their fingerprints are; passages of one memory are not copies, nor are documents without text. Among equal scores
    the memory stored first is shown. Feature A2.
    """

    about = About(features=("A2",))
    Params = DuplicatesParams

    def __init__(self, params: DuplicatesParams) -> None:
        self._hide = params.action == "hide"

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:  # noqa: ARG002
        """The copies by the id of the row that is shown, and a mask of the rows that remain."""
        contents = store.attributes.label("content_hash", ranking.parents).tolist()
        empty = (store.attributes.number("characters", ranking.parents) == 0).tolist()
        parents = ranking.parents.tolist()
        shown: dict[str, int] = {}
        copies: dict[int, list[int]] = {}
        keep = np.ones(len(parents), np.bool_)
        # Rows are in ranking order, so the first row with a content is the one that is shown.
        for place, (memory, content) in enumerate(zip(parents, contents, strict=True)):
            if not content or empty[place]:
                continue
            first = shown.setdefault(content, place)
            if memory != parents[first]:
                # The id of the row, which may be a passage; the copies are named by their memories.
                keep[place] = False
                copies.setdefault(int(ranking.ids[first]), []).append(memory)
        by_id = {row: {"also_at": sorted(set(memories))} for row, memories in copies.items()}
        return Notes(by_id=by_id, overall={"duplicates": int(np.sum(~keep))}, keep=keep if self._hide else None)
