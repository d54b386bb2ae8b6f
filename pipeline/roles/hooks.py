"""The methods by which the frame calls components: the one of each role, and hooks that a component may offer.

A method is found here, by what declares it, and nowhere by its name: the type checker sees what a hook takes and gives,
and finding one runs nothing of the component, neither a property nor `__getattr__`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from inspect import getattr_static
from typing import Any, Generic, Protocol, TypeVar, cast, get_args

from speckit_memory.pipeline.model.columns import Query
from speckit_memory.pipeline.model.costs import Cost
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
"""Where in the parameters something stands: keys, and positions in lists."""


class ParameterCheck(Protocol):
    """Knows what is wrong with parameters that are valid one by one."""

    def check(self, params: Any, context: PipelineContext) -> Iterable[tuple[Path, str]]:
        """A problem for the parameter at each path."""


class ParameterSettling(Protocol):
    """Fills in what parameters leave to the rest of the pipeline, as weights leave channels that nobody names."""

    def settled(self, params: Any, context: PipelineContext) -> Any:
        """The parameters, of the same class, with nothing left open."""


class ScaleByParameters(Protocol):
    """Gives scores on a scale that hangs on parameters; it comes before `gives` of the description."""

    def scale(self, params: Any) -> Scale:
        """The scale of the scores."""


class WeighingByParameters(Protocol):
    """Weighs by intent if parameters say so; it comes before `weighs_intent` of the description."""

    def weighs_intent(self, params: Any) -> IntentWeighing | None:
        """Which of the two weightings it applies, None for neither."""


class ConceptJudge(Protocol):
    """A channel that can tell by its own evidence what is about a concept (feature C1)."""

    def about_concept(self, concept: str, query: Query, store: Store) -> Ids | Unavailable:
        """The memories that the query's filter admits and the channel takes to be about the concept, in any order."""


class CostEstimate(Protocol):
    """A channel or a reranker that can tell what it would read for a query."""

    def cost(self, query: Query, rows: int, store: Store) -> Cost:
        """What one search reads with a limit of so many hits, or one rerank step with at most so many rows."""


class StateTelling(Protocol):
    """An annotator that says in the note `state` how fresh each memory is in mind."""

    def states(self, memories: Ids, now: float, store: Store) -> list[str]:
        """The state of each memory at a time (epoch seconds), as the note would say it."""


@dataclass(frozen=True, slots=True)
class EvidenceRule:
    """When an annotator warns of weak evidence: none of the best `top` rows holds so much of the question as `limit`.

    Rows of `ignore_tiers` don't count. The limit is None for one that goes by something else.
    """

    top: int
    ignore_tiers: tuple[str, ...]
    limit: float | None


class Calibrated(Protocol):
    """An annotator that warns of weak evidence by a limit, which can be fitted to judged queries (feature A4)."""

    def evidence_rule(self, params: Any) -> EvidenceRule:
        """The rule that parameters make."""


@dataclass(frozen=True, slots=True)
class Method(Generic[P_co]):
    """A method of components, as the protocol `P_co` declares it.

    `roles` are those of the components that may have it. One that is `of_class` is asked of the class while a pipeline
    is built, the others of the component that runs in it.
    """

    name: str
    protocol: type[object]
    roles: tuple[Role, ...] = tuple(Role)
    of_class: bool = False

    def of(self, component: object) -> P_co | None:
        """The component, or its class, as what has this method; None where it has none."""
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
"""What a component of each role must have."""

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
"""What a component may have beside the method of its role."""


def combine_of(signal: object) -> Combine | None:
    """How the frame combines the column of a signal or its class with the score; None where that is not declared."""
    found = getattr_static(signal, "combine", None)
    return next((known for known in get_args(Combine) if type(found) is str and found == known), None)
