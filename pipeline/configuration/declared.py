"""What components say about themselves, asked while a pipeline is built. Whatever they answer or raise stays here."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, TypeVar, cast, get_args

from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.pipeline.configuration.binding import Bound
from speckit_memory.pipeline.configuration.param_checks import check_params
from speckit_memory.pipeline.model.copying import text
from speckit_memory.pipeline.model.describing import describe, shape_of
from speckit_memory.pipeline.model.errors import Unfit
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.process.interrupts import guarded
from speckit_memory.pipeline.roles.contracts import IntentWeighing, Params
from speckit_memory.pipeline.roles.hooks import EVIDENCE_RULE, SCALE, WEIGHS_INTENT, EvidenceRule, Method, Path

T = TypeVar("T")
H = TypeVar("H")

MOST_OBJECTIONS = 100
"""What one component may have against its own parameters."""


def ask(
    entry: Bound, hook: Method[H], question: Callable[[H, Params], object], copier: Callable[[Any], T]
) -> tuple[T | None, Problem | None]:
    """A plain copy of what a component answers to a question, None where it does not offer the hook or has failed.

    The question is asked of the component's class, with its parameters. The other value says how it failed.
    """
    registered, params = entry.registered, entry.params
    if registered is None or params is None:
        return None, None
    own = hook.of(registered.component)
    if own is None:
        return None, None
    answer, error = guarded(lambda: copier(question(own, params)))
    return answer, _broken(entry, f"'{hook.name}'", error) if error else None


def scale_by_parameters(entry: Bound) -> tuple[Scale | None, Problem | None]:
    """The scale that a component gives with these parameters, None where it hangs on none; and how it failed."""
    return ask(entry, SCALE, lambda own, params: own.scale(params), as_scale)


def weighing_by_parameters(entry: Bound) -> tuple[tuple[IntentWeighing | None] | None, Problem | None]:
    """Which weighting by intent these parameters say, None where that hangs on none; and how the component failed."""
    return ask(entry, WEIGHS_INTENT, lambda own, params: own.weighs_intent(params), as_weighing)


def evidence_rule(entry: Bound) -> EvidenceRule | None:
    """By which evidence a component warns with these parameters, None where it does not or fails to tell."""
    return ask(entry, EVIDENCE_RULE, lambda own, params: own.evidence_rule(params), _as_rule)[0]


def _as_rule(found: object) -> EvidenceRule:
    if type(found) is EvidenceRule:
        return found
    raise Unfit(f"returned {shape_of(found)}; accepted: EvidenceRule")


def constructed(entry: Bound, method: Method[H]) -> H:
    """The component of a step, which has the method of its role, with parameters that no other holds. Raises E131."""
    registered, params = entry.registered, entry.params
    assert registered is not None and params is not None  # a configuration without problems is bound
    component, error = guarded(lambda: registered.component(params.model_copy(deep=True)))
    if error:
        raise SpeckitError.of([_broken(entry, "the constructor", error)])
    made = method.of(component)
    if made is None:
        unfit = Unfit(f"made {shape_of(component)}; accepted: an object with the method '{method.name}'")
        raise SpeckitError.of([_broken(entry, "the constructor", unfit)])
    return made


def _broken(entry: Bound, what: str, error: BaseException) -> Problem:
    name = entry.registered.name if entry.registered else entry.step.use
    return Problem("E131", f"{what} of the component '{name}' failed: {describe(error)}", where=entry.step.where)


def as_scale(found: object) -> Scale:
    """A scale of scores."""
    if type(found) is Scale and any(found is scale for scale in Scale):
        return found
    raise Unfit(f"returned {shape_of(found)}; accepted: a Scale")


def as_weighing(found: object) -> tuple[IntentWeighing | None]:
    """Which of the two weightings by intent a component applies, None for neither."""
    for known in (None, *get_args(IntentWeighing)):
        if type(found) is type(known) and found == known:
            return (cast("IntentWeighing | None", known),)
    raise Unfit(f"returned {shape_of(found)}; accepted: None, {', '.join(get_args(IntentWeighing))}")


def as_objections(found: Any) -> list[tuple[Path, str]]:
    """Problems of parameters: the path of each, and why."""
    plain = []
    for path, message in islice(found, MOST_OBJECTIONS):
        if not all(type(part) in (str, int) for part in path):
            raise Unfit("returned a path of other parts than texts and whole numbers")
        plain.append((tuple(path), text(message, "a message")))
    return plain


def as_params(kind: type[Params]) -> Callable[[Any], Params]:
    """Parameters of exactly the class that the component declares."""

    def copier(found: Any) -> Params:
        if type(found) is not kind:
            raise Unfit(f"returned {shape_of(found)}; accepted: {kind.__name__}")
        settled: Params = found.model_copy(deep=True)
        return check_params(settled)

    return copier
