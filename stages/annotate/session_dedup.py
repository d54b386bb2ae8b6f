"""Leaves out what this conversation has been sent already."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from pipeline.contracts import About, Params
from pipeline.model import Notes, Query
from pipeline.ports import Store, Unavailable
from pipeline.ranking import Ranking


class SessionDedupParams(Params):
    """What happens to repeats."""

    action: Literal["hide", "mark"] = Field("hide", description="Whether repeats are left out or only marked.")
    tokens_each: int = Field(200, ge=0, description="Tokens that one left-out memory saves, for the report.")


class SessionDedup:
    """Hides memories that were already sent in the query's session, recognised by their content.

    A memory that has changed since is sent again. The note tells how many were left out and about how many
    tokens that saved. A query without a session hides nothing. Feature A2.
    """

    about = About(features=("A2",))
    Params = SessionDedupParams

    def __init__(self, params: SessionDedupParams) -> None:
        self._params = params

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:
        """Which rows stay, or which are repeats."""
        if query.anchors:
            return Notes()  # another section of a memory that was sent is no repeat
        repeats = store.sessions.sent(query.session, ranking.parents, query.now)
        if self._params.action == "mark":
            return Notes(by_id={memory: {"already_sent": True} for memory in ranking.ids[repeats].tolist()})
        hidden = int(np.count_nonzero(repeats))
        saved = {"already_sent": hidden, "tokens_saved": hidden * self._params.tokens_each}
        return Notes(overall={"deduplicated": saved}, keep=~repeats)
