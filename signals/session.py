"""Raises memories that the session has attended to."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from speckit_memory.pipeline.model.columns import Pool, Query
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, SignalParams


class SessionParams(SignalParams):
    """The weight of attention."""

    weight: float = Field(
        0.15, ge=0, le=1, description="Score added at full attention.", json_schema_extra={"tunable": [0.0, 0.3]}
    )
    cap_group: str = Field("causal_session", description="Group of signals that together add at most the group's cap.")
    cap: float | None = Field(0.20, gt=0, description="Upper bound of the sum of the group's signals.")


class Session:
    """Adds 0.15 × the attention that working memory assigns to each memory in the query's session.

    Unit scale, in [0, weight]; together with `causal` at most 0.20, which the earlier of the two uses first. Without a
    session nothing is added. Feature F13.
    """

    about = About(features=("F13",))
    Params = SessionParams
    combine: ClassVar[Literal["add", "multiply"]] = "add"

    def __init__(self, params: SessionParams) -> None:
        self._weight = params.weight

    def evidence(self, query: Query, pool: Pool, store: Store) -> Column | Unavailable:
        """The gain of each row from the session."""
        return self._weight * store.sessions.attention(query.session, pool.candidates.parents, query.now)
