"""Leaves out what this conversation has been sent already."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from speckit_memory.pipeline.contracts import About, Params
from speckit_memory.pipeline.model import Notes, Query
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.ranking import Ranking


class SessionDedupParams(Params):
    """What happens to repeats."""

    action: Literal["hide", "mark"] = Field("hide", description="Whether repeats are left out or only marked.")
    tokens_each: int = Field(200, ge=0, description="Tokens that one left-out memory saves, for the report.")


class SessionDedup:
    """Hides memories that were already sent in the query's session, recognised by their content.

    A memory that has changed since is sent again. What is hidden keeps its place: an answer has fewer rows then, and
    none that would not have been worth a place before. The note names what would have been shown, and tells about how
    many tokens that saved. A query without a session hides nothing, nor does one that asks for repeats. Feature A2.
    """

    about = About(features=("A2",), looks_back=True)
    Params = SessionDedupParams

    def __init__(self, params: SessionDedupParams) -> None:
        self._params = params

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:
        """Which rows stay, or which are repeats."""
        if query.anchors or not query.dedup:
            return Notes()  # another section of a memory that was sent is no repeat
        repeats = store.sessions.sent(query.session, ranking.parents, query.now)
        if self._params.action == "mark":
            return Notes(by_id={memory: {"already_sent": True} for memory in ranking.ids[repeats].tolist()})
        hidden = ranking.parents[: query.limit][repeats[: query.limit]].tolist()
        saved = {
            "already_sent": len(hidden),
            "tokens_saved": len(hidden) * self._params.tokens_each,
            "memories": hidden,
        }
        return Notes(overall={"deduplicated": saved}, keep=~repeats, in_place=True)
