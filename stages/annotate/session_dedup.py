"""Marks texts that were already sent in this session."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from speckit_memory.pipeline.model.columns import Notes, Query
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params


class SessionDedupParams(Params):
    """The treatment of repeated texts."""

    action: Literal["line", "mark"] = Field("line", description="Replace a repeat by a line, or mark and resend it.")
    tokens_each: int = Field(200, ge=0, description="Tokens saved by each replaced repeat, for the report.")


class SessionDedup:
    """Replaces each text that was already sent in the query's session by a line.

    A row is a repeat if the text that it would show was sent, or all of its passage or of its memory. Another passage
    of the same memory is not a repeat, nor is a passage of which other words were sent, or a text that has changed
    since. The line names the source, so that no row is missing. A query without a session has no repeats, nor does one
    that asks for them. Feature A2.
    """

    about = About(features=("A2",), looks_back=True)
    Params = SessionDedupParams

    def __init__(self, params: SessionDedupParams) -> None:
        self._params = params

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:
        """The texts sent of each row's memory. Repeats among rows are determined when their texts are chosen."""
        if not query.session or query.anchors or not query.dedup:
            return Notes()
        rows = ranking.ids[: query.limit].tolist()
        sent = store.sessions.texts_sent(query.session, ranking.parents[: query.limit], query.now)
        return Notes(
            by_id={row: {"sent_before": texts} for row, texts in zip(rows, sent, strict=True) if texts},
            overall={"deduplicated": self._params.model_dump()},
        )
