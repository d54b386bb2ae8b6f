"""Queries to components about themselves while a pipeline is built. No exception of a component leaves this module."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, TypeVar, cast, get_args

from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.pipeline.configuration.binding import BoundParameters, check_params
from speckit_memory.pipeline.model.describing import describe, shape_of
from speckit_memory.pipeline.model.errors import InvalidComponentOutput
from speckit_memory.pipeline.model.field_checks import text
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.process.interrupts import call_guarded
from speckit_memory.pipeline.roles.contracts import IntentWeighing, Params
from speckit_memory.pipeline.roles.hooks import EVIDENCE_RULE, SCALE, WEIGHS_INTENT, EvidenceRule, Method, Path

T = TypeVar("T")
H = TypeVar("H")

MOST_OBJECTIONS = 100
"""Maximum number of objections of one component to its own parameters."""


def ask(
    entry: BoundParameters, hook: Method[H], question: Callable[[H, Params], object], copier: Callable[[Any], T]
) -> tuple[T | None, Problem | None]:
    """A plain copy of a component's answer, None if it does not offer the hook or has failed; and the failure.

    Args:
        entry: The step; its component's class is asked, with the step's parameters.
        hook: The hook that the class may offer.
        question: Calls the hook.
        copier: Makes a plain copy of the answer; raises InvalidComponentOutput for an invalid one.
    """
    registered, params = entry.registered, entry.params
    if registered is None or params is None:
        return None, None
    own = hook.of(registered.component)
    if own is None:
        return None, None
    answer, error = call_guarded(lambda: copier(question(own, params)))
    return answer, _broken(entry, f"'{hook.name}'", error) if error else None


def scale_by_parameters(entry: BoundParameters) -> tuple[Scale | None, Problem | None]:
    """The scale that a component gives with these parameters, None if it does not depend on them; and the failure."""
    return ask(entry, SCALE, lambda own, params: own.scale(params), as_scale)


def weighing_by_parameters(entry: BoundParameters) -> tuple[tuple[IntentWeighing | None] | None, Problem | None]:
    """The intent weighting that these parameters select, None if it does not depend on them; and the failure."""
    return ask(entry, WEIGHS_INTENT, lambda own, params: own.weighs_intent(params), as_weighing)


def evidence_rule(entry: BoundParameters) -> EvidenceRule | None:
    """The evidence rule of a component with these parameters; None if it has none or fails to answer."""
    return ask(entry, EVIDENCE_RULE, lambda own, params: own.evidence_rule(params), _as_rule)[0]


def _as_rule(found: object) -> EvidenceRule:
    if type(found) is EvidenceRule:
        return found
    raise InvalidComponentOutput(f"returned {shape_of(found)}; accepted: EvidenceRule")


def construct_component(entry: BoundParameters, method: Method[H]) -> H:
    """The component of a step, as having the method of its role. Raises E131."""
    registered, params = entry.registered, entry.params
    assert registered is not None and params is not None  # without problems, every step is bound
    component, error = call_guarded(lambda: registered.component(params))
    if error:
        raise SpeckitError.of([_broken(entry, "the constructor", error)])
    made = method.of(component)
    if made is None:
        unfit = InvalidComponentOutput(
            f"created {shape_of(component)}; accepted: an object with the method '{method.name}'"
        )
        raise SpeckitError.of([_broken(entry, "the constructor", unfit)])
    return made


def _broken(entry: BoundParameters, what: str, error: BaseException) -> Problem:
    name = entry.registered.name if entry.registered else entry.step.use
    return Problem("E131", f"{what} of the component '{name}' failed: {describe(error)}", where=entry.step.where)


def as_scale(found: object) -> Scale:
    """A scale of scores; raises InvalidComponentOutput for anything else."""
    if isinstance(found, Scale):
        return found
    raise InvalidComponentOutput(f"returned {shape_of(found)}; accepted: a Scale")


def as_weighing(found: object) -> tuple[IntentWeighing | None]:
    """The intent weighting that a component applies, None for neither. Raises InvalidComponentOutput otherwise."""
    for known in (None, *get_args(IntentWeighing)):
        if type(found) is type(known) and found == known:
            return (cast("IntentWeighing | None", known),)
    raise InvalidComponentOutput(f"returned {shape_of(found)}; accepted: None, {', '.join(get_args(IntentWeighing))}")


def as_objections(found: Any) -> list[tuple[Path, str]]:
    """Objections to parameters, each with its path; raises InvalidComponentOutput for anything else."""
    plain = []
    for path, message in islice(found, MOST_OBJECTIONS):
        if not all(type(part) in (str, int) for part in path):
            raise InvalidComponentOutput("returned a path with parts other than texts and whole numbers")
        plain.append((tuple(path), text(message, "a message")))
    return plain


def as_params(kind: type[Params]) -> Callable[[Any], Params]:
    """Parameters of exactly the class that the component declares."""

    def copier(found: Any) -> Params:
        if type(found) is not kind:
            raise InvalidComponentOutput(f"returned {shape_of(found)}; accepted: {kind.__name__}")
        return check_params(found)

    return copier
