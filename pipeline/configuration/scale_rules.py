"""Rules about scores: scales are not mixed without a normaliser, and bounds of signals take effect (feature P7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from speckit_memory.config.yaml.reader import locate
from speckit_memory.errors import Problem
from speckit_memory.pipeline.configuration.binding import BoundParameters, Places, of_role
from speckit_memory.pipeline.configuration.declared import scale_by_parameters
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.roles.contracts import Role, SignalParams
from speckit_memory.pipeline.roles.hooks import combine_of
from speckit_memory.pipeline.roles.registry import RegisteredComponent

NORMALISERS = {Scale.UNIT: "min_max", Scale.Z_SCORE: "standardise"}
"""The shipped rerank steps that accept any scores and return them on a scale."""


def scale_of(entry: BoundParameters) -> Scale | None:
    """The scale of a bound step's scores; None if it keeps its input's."""
    if entry.registered is None or entry.params is None:
        return None
    scale, failed = scale_by_parameters(entry)
    return None if failed else scale or entry.registered.about.gives


def scales_agree(bound: Sequence[BoundParameters], _: Places) -> Iterator[Problem]:
    """Every step gets scores on a scale it accepts, for every combination of skipped optional steps before it."""
    if len(of_role(Role.FUSER, bound)) > 1:
        return  # reported by `one_fuser`; the scale is unknown, since either fuser may be the intended one
    reached: dict[Scale, str] = {}
    """Possible scales of the scores, each with the last optional step that must be skipped to reach it."""
    for entry in bound:
        if entry.step.slot not in ("fusion", "rerank"):
            continue
        if entry.registered is None or entry.params is None:
            reached = {}  # unknown from here on: no message rather than a wrong one
            continue
        for scale, skipped in reached.items():
            if reason := _misfit(entry.registered, scale, f" when '{skipped}' is skipped" if skipped else ""):
                yield Problem("E119", f"'{entry.step.id}' {reason}", where=entry.step.where)
                break
        if entry.registered.role is Role.FUSER:
            given = scale_of(entry)
            reached = {given: ""} if given else {}
            continue
        # A skipped optional step leaves its input's scale possible after it as well.
        after = {_following(entry, scale): skipped for scale, skipped in reached.items()}
        # `scale not in after`: a scale that is reached without skipping is reported without a condition.
        if entry.step.optional:
            after |= {scale: skipped or entry.step.id for scale, skipped in reached.items() if scale not in after}
        reached = after


def _misfit(registered: RegisteredComponent, scale: Scale, condition: str) -> str:
    """Why a component cannot use scores of this scale; empty if it can."""
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
    """How to fix a step that gets none of its accepted scales."""
    named = next((NORMALISERS[scale] for scale in accepted if scale in NORMALISERS), "")
    if not named:
        return "Put a step before it that returns such scores, or leave it out"
    return f"Put '{named}' before it, or write 'after: {named}' where it is added to inherited steps that have one"


def _following(entry: BoundParameters, scale: Scale) -> Scale:
    """The scale after a step whose input has this scale."""
    assert entry.registered is not None
    if entry.registered.role is Role.SIGNAL:
        return scale.widened
    return scale_of(entry) or (scale.widened if entry.registered.about.widens else scale)


def bounds_of_signals(bound: Sequence[BoundParameters], _: Places) -> Iterator[Problem]:
    """Bounds of signals take effect: only additive signals have them, and the signals of a group have the same cap."""
    first: dict[str, tuple[BoundParameters, float]] = {}
    for entry in of_role(Role.SIGNAL, bound):
        params = entry.params
        if not isinstance(params, SignalParams):
            continue
        written = [name for name in ("ceiling", "cap_group", "cap") if getattr(params, name)]
        where = locate(entry.step.params, (written[0],)) if written else entry.step.where
        if written and entry.registered and combine_of(entry.registered.component) == "multiply":
            message = f"'{entry.step.id}' multiplies scores, but '{written[0]}' bounds additions; leave it out"
            yield Problem("E119", message, where=where)
        elif params.cap_group and params.cap is None:
            message = f"'{entry.step.id}' belongs to the cap group '{params.cap_group}' but sets no 'cap' for it"
            yield Problem("E119", message, where=where)
        elif params.cap_group and params.cap is not None:
            # The first signal of a group sets its cap; later ones must agree.
            other, cap = first.setdefault(params.cap_group, (entry, params.cap))
            if cap != params.cap:
                message = f"'{entry.step.id}' caps the group '{params.cap_group}' at {params.cap:g}, "
                message += f"and '{other.step.id}' ({other.step.where.beside}) at {cap:g}; keep one"
                yield Problem("E119", message, where=locate(entry.step.params, ("cap",)))
