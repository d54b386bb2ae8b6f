"""Tells which texts this conversation has been sent already."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from speckit_memory.pipeline.model.columns import Notes, Query
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params


class SessionDedupParams(Params):
    """What happens to repeats."""

    action: Literal["line", "mark"] = Field("line", description="Whether a repeat is a line, or sent again and marked.")
    tokens_each: int = Field(200, ge=0, description="Tokens that one repeat in a line saves, for the report.")


class SessionDedup:
    """Puts a line in the place of each text that was already sent in the query's session.

    A row is a repeat if the text that it would show was sent, or all of its passage or of its memory. Another passage
    of the same memory is none, nor is a passage of which other words were sent, or a text that has changed since. The
    line names the place, so that no row is missing; a query without a session has no repeats, nor does one that asks
    to be sent them again. Feature A2.
    """

    about = About(features=("A2",), looks_back=True)
    Params = SessionDedupParams

    def __init__(self, params: SessionDedupParams) -> None:
        self._params = params

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:
        """What was sent of the memories of each row. Which rows repeat it shows when their texts are chosen."""
        if not query.session or query.anchors or not query.dedup:
            return Notes()
        rows = ranking.ids[: query.limit].tolist()
        sent = store.sessions.texts_sent(query.session, ranking.parents[: query.limit], query.now)
        return Notes(
            by_id={row: {"sent_before": texts} for row, texts in zip(rows, sent, strict=True) if texts},
            overall={"deduplicated": self._params.model_dump()},
        )
