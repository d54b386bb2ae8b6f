"""Rules about scores: two scales are never combined without a normaliser, and bounds bound something (feature P7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from speckit_memory.config.yaml.reader import locate
from speckit_memory.errors import Problem
from speckit_memory.pipeline.configuration.binding import Bound, Places, of_role
from speckit_memory.pipeline.configuration.declared import scale_by_parameters
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.roles.contracts import Role, SignalParams
from speckit_memory.pipeline.roles.hooks import combine_of
from speckit_memory.pipeline.roles.registry import Registered

NORMALISERS = {Scale.UNIT: "min_max", Scale.Z_SCORE: "standardise"}
"""The shipped rerank steps that take any scores and give them on a scale."""


def scale_of(entry: Bound) -> Scale | None:
    """The scale of what a bound step returns; None when it keeps the one it found."""
    if entry.registered is None or entry.params is None:
        return None
    scale, failed = scale_by_parameters(entry)
    return None if failed else scale or entry.registered.about.gives


def scales_agree(bound: Sequence[Bound], _: Places) -> Iterator[Problem]:
    """A step gets scores on a scale it accepts, whichever optional steps ahead of it are skipped."""
    if len(of_role(Role.FUSER, bound)) > 1:
        return  # refused by `one_fuser`; which of them is meant, and so the scale, is anybody's guess
    reached: dict[Scale, str] = {}
    """Scales that scores may be on, and the last optional step that has to be skipped for it."""
    for entry in bound:
        if entry.step.slot not in ("fusion", "rerank"):
            continue
        if entry.registered is None or entry.params is None:
            reached = {}  # unknown from here on: say nothing that might be wrong
            continue
        for scale, skipped in reached.items():
            if reason := _misfit(entry.registered, scale, f" when '{skipped}' is skipped" if skipped else ""):
                yield Problem("E119", f"'{entry.step.id}' {reason}", where=entry.step.where)
                break
        if entry.registered.role is Role.FUSER:
            given = scale_of(entry)
            reached = {given: ""} if given else {}
            continue
        after = {_following(entry, scale): skipped for scale, skipped in reached.items()}
        if entry.step.optional:
            after |= {scale: skipped or entry.step.id for scale, skipped in reached.items() if scale not in after}
        reached = after


def _misfit(registered: Registered, scale: Scale, condition: str) -> str:
    """Why a component cannot work on scores of this scale; empty when it can."""
    accepted, combine = registered.about.needs, combine_of(registered.component)
    if accepted and scale not in accepted:
        here = f"here they are on the scale {scale}{condition}"
        return f"needs scores on the scale {', '.join(accepted)}; {here}. {_remedy(accepted)}"
    if registered.role is Role.SIGNAL and combine == "add" and not scale.additive:
        return f"adds a boost of the unit scale to scores on the scale {scale}{condition}. Set 'normalise' on the fuser"
    if registered.role is Role.SIGNAL and combine == "multiply" and not scale.multipliable:
        return f"multiplies scores, which may be negative on the scale {scale}{condition}. Set 'normalise' on the fuser"
    return ""


def _remedy(accepted: Sequence[Scale]) -> str:
    """What to do about a step that gets none of the accepted scales."""
    named = next((NORMALISERS[scale] for scale in accepted if scale in NORMALISERS), "")
    if not named:
        return "Put a step before it that gives such scores, or leave it out"
    return f"Put '{named}' before it, or write 'after: {named}' where it is added to inherited steps that have one"


def _following(entry: Bound, scale: Scale) -> Scale:
    """The scale after a step that found scores on this one."""
    assert entry.registered is not None
    if entry.registered.role is Role.SIGNAL:
        return scale.widened
    return scale_of(entry) or (scale.widened if entry.registered.about.widens else scale)


def bounds_of_signals(bound: Sequence[Bound], _: Places) -> Iterator[Problem]:
    """Bounds of a signal have an effect: only what is added has any, and the signals of a group have one cap."""
    first: dict[str, tuple[Bound, float]] = {}
    for entry in of_role(Role.SIGNAL, bound):
        params = entry.params
        if not isinstance(params, SignalParams):
            continue
        written = [name for name in ("ceiling", "cap_group", "cap") if getattr(params, name)]
        where = locate(entry.step.params, (written[0],)) if written else entry.step.where
        if written and entry.registered and combine_of(entry.registered.component) == "multiply":
            message = f"'{entry.step.id}' multiplies scores, and '{written[0]}' bounds what is added; leave it out"
            yield Problem("E119", message, where=where)
        elif params.cap_group and params.cap is None:
            message = f"'{entry.step.id}' is of the cap group '{params.cap_group}' but names no 'cap' for it"
            yield Problem("E119", message, where=where)
        elif params.cap_group and params.cap is not None:
            other, cap = first.setdefault(params.cap_group, (entry, params.cap))
            if cap != params.cap:
                message = f"'{entry.step.id}' caps the group '{params.cap_group}' at {params.cap:g}, "
                message += f"and '{other.step.id}' ({other.step.where.beside}) at {cap:g}; keep one"
                yield Problem("E119", message, where=locate(entry.step.params, ("cap",)))
