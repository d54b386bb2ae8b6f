"""One component with one set of parameters, tried on one sample; and the messages of broken promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from speckit_memory.pipeline.model.describing import shape_of
from speckit_memory.pipeline.model.errors import ContractError, StageInvariantError
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Unavailable
from speckit_memory.pipeline.roles.contracts import Params, PipelineContext
from speckit_memory.pipeline.roles.hooks import SCALE, SETTLED
from speckit_memory.pipeline.roles.registry import RegisteredComponent
from speckit_memory.pipeline.testing.sample import Sample
from speckit_memory.pipeline.testing.strict import guarded

T = TypeVar("T")
_CHANNELS = ("bm25", "vector", "graph")
_THREE = PipelineContext(_CHANNELS, (Scale.BM25, Scale.COSINE, Scale.UNIT), steps=_CHANNELS, uses=_CHANNELS)


@dataclass(frozen=True)
class Trial:
    """A component under test. `may_lack`: it needs a part that a store may lack, and then answers Unavailable."""

    entry: RegisteredComponent
    params: Params
    sample: Sample
    may_lack: bool = False

    def component(self) -> Any:
        """A new component under the strict guard, with parameters settled in a pipeline of three channels."""
        settling = SETTLED.of(self.entry.component)
        made = self.entry.component(settling.settled(self.params, _THREE) if settling else self.params)
        return guarded(made, self.entry.name)

    def must(self, holds: object, otherwise: str) -> None:
        """Raises AssertionError, which names the component, unless `holds` is true."""
        if not holds:
            raise AssertionError(f"the {self.entry.role} '{self.entry.name}' {otherwise}")

    def whole(self, answer: Any, kind: type[T], given: str) -> T:
        """Checks that the answer for a complete store has this class, and returns it.

        `given` names the input, for the message.
        """
        self.must(isinstance(answer, kind), f"answered {_describe(answer)} to {given}; accepted here: {_names(kind)}")
        found: T = answer
        return found

    def lacking(self, answer: object, *kinds: type) -> None:
        """Checks the class of the answer for an incomplete store; Unavailable is accepted if allowed."""
        if self.may_lack and isinstance(answer, Unavailable):
            self.must(answer.reason, "is unavailable and gives no reason")
            return
        accepted = _names(*kinds) + (" or Unavailable" if self.may_lack else "")
        told = f"answered {_describe(answer)} where the store lacks texts, vectors and models; accepted: {accepted}"
        self.must(isinstance(answer, kinds), told)

    def checked(self, check: Any, *arguments: Any) -> Any:
        """The result of a check of the frame. Raises AssertionError with the frame's own message."""
        try:
            return check(*arguments, self.entry.name)
        except (ContractError, StageInvariantError) as error:
            raise AssertionError(f"the {self.entry.role} '{self.entry.name}' {error.violation}") from error

    @property
    def scale(self) -> Scale | None:
        """The scale that the component declares for these parameters, None if it keeps its input's."""
        by_parameters = SCALE.of(self.entry.component)
        return self.entry.about.gives if by_parameters is None else by_parameters.scale(self.params)


def _describe(answer: object) -> str:
    return f"Unavailable ({answer.reason})" if isinstance(answer, Unavailable) else shape_of(answer)


def _names(*kinds: type) -> str:
    return " or ".join(kind.__name__ for kind in kinds)
