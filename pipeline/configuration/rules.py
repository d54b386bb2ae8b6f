"""Pass 5: check. Rules about whole pipelines (feature P7), each a generator of problems.

The rules read only the declarations of components, so a new component needs no new rule. Steps that could not be bound
are skipped: their own problem has been reported, and no rule guesses about them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from speckit_memory.config.yaml.reader import locate
from speckit_memory.errors import Problem
from speckit_memory.pipeline.configuration.binding import BoundParameters, Places, of_role
from speckit_memory.pipeline.configuration.context import context_of, objections, settled_params
from speckit_memory.pipeline.configuration.declared import scale_by_parameters, weighing_by_parameters
from speckit_memory.pipeline.configuration.scale_rules import bounds_of_signals, scales_agree
from speckit_memory.pipeline.roles.contracts import Role

BY_INTENT = ("by_intent", "by_intent_ageless")
"""Parameter values that use the query's intent, independent of the parameter's name."""

Rule = Callable[[Sequence[BoundParameters], Places], Iterator[Problem]]


def check(bound: Sequence[BoundParameters], places: Places) -> list[Problem]:
    """All problems of the combination of these steps."""
    return [problem for rule in RULES for problem in rule(bound, places)]


def _in(slot: str, bound: Sequence[BoundParameters]) -> list[BoundParameters]:
    return [entry for entry in bound if entry.step.slot == slot]


def unique_ids(bound: Sequence[BoundParameters], _: Places) -> Iterator[Problem]:
    """Every step has an id, and no two have the same."""
    first: dict[str, BoundParameters] = {}
    extra = [id(entry) for entry in of_role(Role.FUSER, bound)[1:]]  # reported by `one_fuser`
    for entry in bound:
        if entry.registered is None or id(entry) in extra:
            continue
        if not entry.step.id:
            yield Problem("E119", f"the 'id' of a step '{entry.step.use}' is empty", where=entry.step.place("id"))
        elif entry.step.id in first:
            taken = first[entry.step.id].step.where.beside
            message = f"the id '{entry.step.id}' is taken by the step at {taken}; give one of them another 'id'"
            yield Problem("E119", message, where=entry.step.where)
        first.setdefault(entry.step.id, entry)


def one_fuser(bound: Sequence[BoundParameters], places: Places) -> Iterator[Problem]:
    """Fusion has exactly one fuser, before all signals."""
    fusion = _in("fusion", bound)
    fusers = of_role(Role.FUSER, fusion)
    for extra in fusers[1:]:
        message = f"'{extra.step.id}' is a second fuser; '{fusers[0].step.id}' is the first. "
        message += "Keep one, or give this one 'replaces' and a 'flag'"
        yield Problem("E119", message, where=extra.step.where)
    unknown = any(entry.registered is None for entry in fusion)
    if not fusers and not unknown:
        yield Problem("E119", "'fusion' needs a fuser as its first step", where=places["fusion"])
    for entry in fusion:
        if entry in fusers:
            break
        if fusers and entry.registered is not None:
            message = f"the signal '{entry.step.id}' comes before the fuser '{fusers[0].step.id}'"
            yield Problem("E119", message, where=entry.step.where)


def some_channel(bound: Sequence[BoundParameters], places: Places) -> Iterator[Problem]:
    """At least one channel is needed."""
    if not _in("channels", bound):
        yield Problem("E119", "'candidates: channels' needs at least one channel", where=places["channels"])


def order_of_steps(bound: Sequence[BoundParameters], _: Places) -> Iterator[Problem]:
    """Steps that must come before others do, and steps that exclude each other are not combined."""
    for at, entry in enumerate(bound):
        if entry.registered is None:
            continue
        about = entry.registered.about
        for earlier in bound[:at]:
            if earlier.step.use in about.before:
                message = f"'{entry.step.id}' must come before '{earlier.step.id}' ({earlier.step.where.beside})"
                yield Problem("E119", message, where=entry.step.where)
            if earlier.step.use in about.conflicts:
                message = f"'{entry.step.id}' and '{earlier.step.id}' ({earlier.step.where.beside}) exclude each other"
                yield Problem("E119", message, where=entry.step.where)


def intent_counts_once(bound: Sequence[BoundParameters], _: Places) -> Iterator[Problem]:
    """Channel weights by intent act once, in fusion; attribute weights by intent act once, in scoring (feature P6)."""
    first: dict[str, BoundParameters] = {}
    for entry in bound:
        if entry.registered is None or entry.params is None:
            continue
        by_params = weighing_by_parameters(entry)[0]
        kind = entry.registered.about.weighs_intent if by_params is None else by_params[0]
        if kind is None:
            continue
        if kind in first:
            message = f"'{entry.step.id}' weighs {kind} by intent, and so does '{first[kind].step.id}'; keep one"
            yield Problem("E119", message, where=entry.step.where)
        first.setdefault(kind, entry)


def intent_is_determined(bound: Sequence[BoundParameters], _: Places) -> Iterator[Problem]:
    """Steps that use the query's intent need a step that determines it (feature C8); else a default always applies."""
    understand = _in("understand", bound)
    if any(entry.registered is None or entry.registered.about.finds_intent for entry in understand):
        return
    for entry in bound:
        for name, field in type(entry.params).model_fields.items() if entry.params else ():
            if getattr(entry.params, name) in BY_INTENT:
                message = f"'{entry.step.id}' weighs by intent, which no step determines; "
                message += "add 'intent' under 'understand'"
                where = locate(entry.step.params, (field.alias or name,))
                yield Problem("E119", message, where=where)


def chunks_are_grouped(bound: Sequence[BoundParameters], _: Places) -> Iterator[Problem]:
    """If a channel returns passages, a rerank step collapses them into one result per memory (feature R4)."""
    rerank = _in("rerank", bound)
    if any(entry.registered is None or entry.registered.about.groups for entry in rerank):
        return
    for entry in _in("channels", bound):
        if getattr(entry.params, "level", "memory") == "chunk":
            message = f"'{entry.step.id}' returns chunks, but no rerank step groups them; add 'collapse' under 'rerank'"
            yield Problem("E119", message, where=entry.step.where)


def declarations_answer(bound: Sequence[BoundParameters], _: Places) -> Iterator[Problem]:
    """Declarations of components succeed, and have the required form."""
    context = context_of(bound)
    for entry in bound:
        for failed in (
            scale_by_parameters(entry)[1],
            weighing_by_parameters(entry)[1],
            objections(entry, context)[1],
            settled_params(entry, context)[1],
        ):
            if failed:
                yield failed


def own_checks(bound: Sequence[BoundParameters], _: Places) -> Iterator[Problem]:
    """The objections of components to their own parameters in this pipeline."""
    context = context_of(bound)
    for entry in bound:
        for path, message in objections(entry, context)[0]:
            where = locate(entry.step.params, path)
            yield Problem("E119", f"'{entry.step.id}': {message}", where=where)


RULES: tuple[Rule, ...] = (
    unique_ids,
    one_fuser,
    some_channel,
    scales_agree,
    order_of_steps,
    intent_counts_once,
    intent_is_determined,
    bounds_of_signals,
    chunks_are_grouped,
    declarations_answer,
    own_checks,
)
