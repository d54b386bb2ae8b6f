"""The roles. Each is one method that returns only the delta it is entitled to; the runner applies it.

A component is a class with a nested parameter model `Params`, a description `about` and a constructor that takes the
validated parameters. Heavy work belongs in the store or in the method, never in the constructor. Optional methods are
declared in `pipeline/roles/hooks.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from speckit_memory.pipeline.model.columns import Candidates, Fused, Hits, Notes, Plan, Pool, Query, Reranking
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Column, Store, Unavailable


class Role(StrEnum):
    """The kind of a component, which determines the slots it may be used in."""

    UNDERSTANDER = "understander"
    CHANNEL = "channel"
    RECOVERER = "recoverer"
    FUSER = "fuser"
    SIGNAL = "signal"
    RERANKER = "reranker"
    ANNOTATOR = "annotator"


SLOT_ROLES: dict[str, tuple[Role, ...]] = {
    "understand": (Role.UNDERSTANDER,),
    "channels": (Role.CHANNEL,),
    "recover": (Role.RECOVERER,),
    "fusion": (Role.FUSER, Role.SIGNAL),
    "rerank": (Role.RERANKER,),
    "annotate": (Role.ANNOTATOR,),
}


class Params(BaseModel):
    """Base of every component's parameters: closed, frozen, no coercion of types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


class NoParams(Params):
    """The parameters of a component that has none."""


class ChannelParams(Params):
    """Parameters common to all channels."""

    limit: int = Field(
        50,
        ge=1,
        le=1000,
        description="Maximum number of hits.",
        json_schema_extra={"tunable": [20, 200]},
    )


class SignalParams(Params):
    """Parameters common to all signals: bounds that the frame applies to the column."""

    ceiling: float | None = Field(None, gt=0, description="Highest score to which this signal raises a row.")
    cap_group: str = Field("", description="Group of signals that together add at most the group's cap.")
    cap: float | None = Field(None, gt=0, description="Upper bound of the sum of the group's signals.")


IntentWeighing = Literal["channels", "attributes"]
Combine = Literal["add", "multiply"]
"""How the frame combines the column of a signal with the score."""


@dataclass(frozen=True, slots=True)
class About:
    """The description of a component, by which the frame checks a composition without running it (feature P7).

    Attributes:
        features: Ids of the product's feature map; empty for extensions.
        needs: Scales that the component accepts as input score; empty for any.
        gives: Scale of the returned scores; None if it keeps the input's.
        before: Components that must not come earlier in the same pipeline.
        weighs_intent: Which of the two intent weightings it applies (feature P6).
        conflicts: Components that do the same thing and must not be combined with it.
        groups: A reranker that collapses the passages of a memory into one row (feature R4).
        widens: A reranker that keeps the scale but may leave the unit interval.
        unconditional: A channel whose hits do not depend on the query, and so do not answer it (feature C14); only the
            tier of the query's filter restricts them.
        costly: Its time grows with the store, or it leads to more searches: it is skipped once the deadline has passed,
            while all other steps always run (feature P9).
        finds_intent: An understander that determines the query's intent, used by intent weighting (feature C8).
        looks_back: An annotator that reads what a session was sent before, so that it must be recorded (A2).
    """

    features: tuple[str, ...] = ()
    needs: tuple[Scale, ...] = ()
    gives: Scale | None = None
    before: tuple[str, ...] = ()
    weighs_intent: IntentWeighing | None = None
    conflicts: tuple[str, ...] = ()
    groups: bool = False
    widens: bool = False
    unconditional: bool = False
    costly: bool = False
    finds_intent: bool = False
    looks_back: bool = False


@dataclass(frozen=True, slots=True)
class PipelineContext:
    """The rest of a pipeline, against which a component may check its own parameters.

    `channels` and `steps` are ids, `scales` those of the channels (None: unknown), `uses` the component of each step.

    A component receives it by offering the hooks `check` or `settled` of `pipeline/roles/hooks.py`.
    """

    channels: tuple[str, ...]
    scales: tuple[Scale | None, ...]
    steps: tuple[str, ...]
    uses: tuple[str, ...]

    def undeclared(
        self, named: Iterable[tuple[tuple[str | int, ...], str]]
    ) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Objections to named channels that are not declared, each with the path of its parameter."""
        declared = ", ".join(self.channels) or "none"
        for path, channel in named:
            if channel not in self.channels:
                yield path, f"names the channel '{channel}', which is not declared; declared: {declared}"


class Understander(Protocol):
    """Analyses the query before the channels run, and refines the plan."""

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan | Unavailable:
        """The plan with this step's findings and everything else unchanged."""


class Channel(Protocol):
    """One source of candidates. It cannot see other channels."""

    def search(self, query: Query, limit: int, store: Store) -> Hits | Unavailable:
        """At most `limit` hits that the query's filter admits."""


class Recoverer(Protocol):
    """Called only when no channel found anything (feature C14)."""

    def recover(self, query: Query, plan: Plan, store: Store) -> Plan | Unavailable:
        """A more generous plan to try, or the unchanged plan to give up."""


class Fuser(Protocol):
    """Turns the hits of all channels into one score column. It cannot invent ids or lose provenance."""

    def fuse(self, query: Query, candidates: Candidates) -> Fused | Unavailable:
        """Named addends whose sum is the score of each candidate."""


class Signal(Protocol):
    """One piece of evidence. It cannot reorder, drop or touch other signals.

    How the frame combines the column with the score is declared, not coded: `combine` here, bounds in `SignalParams`.
    """

    combine: ClassVar[Combine]

    def evidence(self, query: Query, pool: Pool, store: Store) -> Column | Unavailable:
        """float64[n], finite, aligned with the pool."""


class Reranker(Protocol):
    """Rescores, groups or selects. It cannot emit an order that contradicts its scores."""

    def rerank(self, query: Query, pool: Pool, store: Store) -> Reranking | Unavailable:
        """A column over the pool, which is in total order."""


class Annotator(Protocol):
    """Adds notes to a sealed ranking and may hide rows. It has no way to change a score or the order."""

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:
        """Notes by id, notes about the whole result, and optionally a mask of the rows to keep."""
