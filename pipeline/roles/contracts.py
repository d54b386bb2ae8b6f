"""The roles. Each is one method that returns only the delta it is entitled to; the runner applies it.

A component is a class with a nested parameter model `Params`, a description `about` and a constructor that takes the
validated parameters. Heavy work belongs into the store or into the method, never into the constructor. What a component
may offer beside the method of its role stands in `pipeline/roles/hooks.py`.
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
    """What a component is, and so where it may stand."""

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
    """For components without parameters."""


class ChannelParams(Params):
    """What every channel takes."""

    limit: int = Field(
        50,
        ge=1,
        le=1000,
        description="How many hits the channel returns at most.",
        json_schema_extra={"tunable": [20, 200]},
    )


class SignalParams(Params):
    """What every signal takes: the bounds that the frame applies to its column."""

    ceiling: float | None = Field(None, gt=0, description="A score at which additions of this signal stop.")
    cap_group: str = Field("", description="Signals of one group together add at most the group's cap.")
    cap: float | None = Field(None, gt=0, description="The cap of the group.")


IntentWeighing = Literal["channels", "attributes"]
Combine = Literal["add", "multiply"]
"""What the frame does with the column of a signal and the score."""


@dataclass(frozen=True, slots=True)
class About:
    """What the frame must know about a component to check a composition without running it (feature P7).

    `features` are ids of the product's feature map, which components of others have none of. `needs` are the scales
    that the component accepts as input score, empty for any; `gives` is the scale of what it returns, None when it
    keeps the one it found. `before` names components that must not stand earlier in the same pipeline. `weighs_intent`
    says which of the two intent weightings it applies (feature P6). `conflicts` names components that do the same thing
    and must not be combined with it. `groups` is true for a reranker that collapses the passages of a memory into one
    row (feature R4); `widens` for one that keeps the scale but may leave the unit interval; `unconditional` for a
    channel whose hits do not depend on the question, and so are no answer to it (feature C14); of the query's filter
    the tier alone binds them. `costly` is true for one whose time grows with the store, or that leads to more searches:
    it gives way when the deadline has passed, and all others run, whatever the hour (feature P9). `finds_intent` is
    true for an understander that determines the query's intent, which steps that weigh by intent go by (feature C8).
    `looks_back` is true for an annotator that asks what a session was sent before, so that it must be noted (A2).
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
    """What else a pipeline holds: what a component may check its own parameters against.

    `channels` and `steps` are ids, `scales` those of the channels (None: unknown), `uses` the component of each step.

    A component gets it by offering the hooks `check` or `settled` of `pipeline/roles/hooks.py`.
    """

    channels: tuple[str, ...]
    scales: tuple[Scale | None, ...]
    steps: tuple[str, ...]
    uses: tuple[str, ...]

    def undeclared(
        self, named: Iterable[tuple[tuple[str | int, ...], str]]
    ) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """What is wrong with channels that parameters name, each with the path of its parameter."""
        declared = ", ".join(self.channels) or "none"
        for path, channel in named:
            if channel not in self.channels:
                yield path, f"names the channel '{channel}', which is not declared; declared: {declared}"


class Understander(Protocol):
    """Looks at the question ahead of the channels and refines the plan."""

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan | Unavailable:
        """The plan with this step's findings; everything else as it was."""


class Channel(Protocol):
    """One source of candidates. It cannot see other channels."""

    def search(self, query: Query, limit: int, store: Store) -> Hits | Unavailable:
        """At most `limit` hits that the query's filter admits."""


class Recoverer(Protocol):
    """Called only when no channel found anything (feature C14)."""

    def recover(self, query: Query, plan: Plan, store: Store) -> Plan | Unavailable:
        """A more generous plan to try, or the plan as it is to give up."""


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
    """Remarks on a sealed ranking and may hide rows. It has no way to change a score or the order."""

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:
        """Notes by id, notes about the whole, and optionally a mask of the rows to keep."""
