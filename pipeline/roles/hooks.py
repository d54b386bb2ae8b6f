"""The methods that the frame calls on components: one per role, and optional hooks.

Methods are looked up here by the protocol that declares them, never by name elsewhere: the type checker sees the
arguments and results of a hook, and the look-up runs no code of the component, neither a property nor `__getattr__`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from inspect import getattr_static
from typing import Any, Generic, Protocol, TypeVar, cast, get_args

from speckit_memory.pipeline.model.columns import Query
from speckit_memory.pipeline.model.costs import StepCostEstimate
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Ids, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import (
    Annotator,
    Channel,
    Combine,
    Fuser,
    IntentWeighing,
    PipelineContext,
    Recoverer,
    Reranker,
    Role,
    Signal,
    Understander,
)

P_co = TypeVar("P_co", covariant=True)

Path = tuple[str | int, ...]
"""A place in the parameters: keys, and indices of lists."""


class ParameterCheck(Protocol):
    """Finds problems of parameters that are individually valid."""

    def check(self, params: Any, context: PipelineContext) -> Iterable[tuple[Path, str]]:
        """The problems, each with the path of its parameter."""


class ParameterSettling(Protocol):
    """Fills in open parameters from the rest of the pipeline, for example weights of channels that are not named."""

    def settled(self, params: Any, context: PipelineContext) -> Any:
        """The parameters, of the same class, with all open values filled in."""


class ScaleByParameters(Protocol):
    """Derives the scale of the scores from parameters; takes precedence over `gives` of the description."""

    def scale(self, params: Any) -> Scale:
        """The scale of the scores."""


class WeighingByParameters(Protocol):
    """Derives the intent weighting from parameters; takes precedence over `weighs_intent` of the description."""

    def weighs_intent(self, params: Any) -> IntentWeighing | None:
        """The intent weighting that it applies, None for neither."""


class ConceptJudge(Protocol):
    """A channel that can judge by its own evidence which memories are about a concept (feature C1)."""

    def about_concept(self, concept: str, query: Query, store: Store) -> Ids | Unavailable:
        """The memories, in any order, that the query's filter admits and the channel judges to be about the concept."""


class CostEstimate(Protocol):
    """A channel or a reranker that can estimate what it would read for a query."""

    def cost(self, query: Query, rows: int, store: Store) -> StepCostEstimate:
        """The cost of one search with a limit of `rows` hits, or of one rerank step with at most `rows` rows."""


class StateTelling(Protocol):
    """An annotator that reports each memory's retention state in the note `state`."""

    def states(self, memories: Ids, now: float, store: Store) -> list[str]:
        """The state of each memory at a time (epoch seconds), as in the note."""


@dataclass(frozen=True, slots=True)
class EvidenceRule:
    """When an annotator warns of weak evidence: none of the best `top` rows holds as much of the query as `limit`.

    Rows of `ignore_tiers` do not count. `limit` is None for an annotator that uses another criterion.
    """

    top: int
    ignore_tiers: tuple[str, ...]
    limit: float | None


class Calibrated(Protocol):
    """An annotator that warns of weak evidence by a limit, which can be fitted to judged queries (feature A4)."""

    def evidence_rule(self, params: Any) -> EvidenceRule:
        """The rule that results from the parameters."""


@dataclass(frozen=True, slots=True)
class Method(Generic[P_co]):
    """A method of components, declared by the protocol `P_co`.

    `roles` are the roles of components that may have it. If `of_class`, it is called on the class while a pipeline is
    built, otherwise on the running component.
    """

    name: str
    protocol: type[object]
    roles: tuple[Role, ...] = tuple(Role)
    of_class: bool = False

    def of(self, component: object) -> P_co | None:
        """The component or class, typed as having this method; None if it does not have it."""
        try:
            found = getattr_static(component, self.name)
        except AttributeError:
            return None
        return None if found is None else cast("P_co", component)


UNDERSTAND: Method[Understander] = Method("understand", Understander, (Role.UNDERSTANDER,))
SEARCH: Method[Channel] = Method("search", Channel, (Role.CHANNEL,))
RECOVER: Method[Recoverer] = Method("recover", Recoverer, (Role.RECOVERER,))
FUSE: Method[Fuser] = Method("fuse", Fuser, (Role.FUSER,))
EVIDENCE: Method[Signal] = Method("evidence", Signal, (Role.SIGNAL,))
RERANK: Method[Reranker] = Method("rerank", Reranker, (Role.RERANKER,))
ANNOTATE: Method[Annotator] = Method("annotate", Annotator, (Role.ANNOTATOR,))

ROLE_METHODS: dict[Role, Method[object]] = {
    method.roles[0]: method for method in (UNDERSTAND, SEARCH, RECOVER, FUSE, EVIDENCE, RERANK, ANNOTATE)
}
"""The method that a component of each role must have."""

CHECK: Method[ParameterCheck] = Method("check", ParameterCheck, of_class=True)
SETTLED: Method[ParameterSettling] = Method("settled", ParameterSettling, of_class=True)
SCALE: Method[ScaleByParameters] = Method("scale", ScaleByParameters, of_class=True)
WEIGHS_INTENT: Method[WeighingByParameters] = Method("weighs_intent", WeighingByParameters, of_class=True)
ABOUT_CONCEPT: Method[ConceptJudge] = Method("about_concept", ConceptJudge, (Role.CHANNEL,))
COST: Method[CostEstimate] = Method("cost", CostEstimate, (Role.CHANNEL, Role.RERANKER))
STATES: Method[StateTelling] = Method("states", StateTelling, (Role.ANNOTATOR,))
EVIDENCE_RULE: Method[Calibrated] = Method("evidence_rule", Calibrated, (Role.ANNOTATOR,), of_class=True)

HOOKS: tuple[Method[object], ...] = (
    CHECK,
    SETTLED,
    SCALE,
    WEIGHS_INTENT,
    ABOUT_CONCEPT,
    COST,
    STATES,
    EVIDENCE_RULE,
)
"""The optional methods of a component."""


def combine_of(signal: object) -> Combine | None:
    """How the frame combines the column of a signal or its class with the score; None if it is not declared."""
    found = getattr_static(signal, "combine", None)
    return next((known for known in get_args(Combine) if type(found) is str and found == known), None)
