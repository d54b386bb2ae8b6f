"""Checks at registration that a class is a component of its role, and looks at its description."""

from __future__ import annotations

from inspect import getattr_static
from typing import get_args

from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.model.describing import shape_of
from speckit_memory.pipeline.model.errors import InvalidComponentOutput
from speckit_memory.pipeline.model.field_checks import flag, row_of, texts
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.roles.contracts import (
    About,
    ChannelParams,
    IntentWeighing,
    NoParams,
    Params,
    Role,
    SignalParams,
)
from speckit_memory.pipeline.roles.hooks import SCALE, combine_of
from speckit_memory.pipeline.roles.signatures import misfits

MOST_NAMED = 1000
"""Maximum number of features, scales and components in a description."""
_SCORES = (Role.CHANNEL, Role.FUSER)
"""Roles whose scores do not derive from scores that already have a scale."""
_PARAMS: dict[Role, type[Params]] = {Role.CHANNEL: ChannelParams, Role.SIGNAL: SignalParams}


def examine_component(role: Role, component: type, name: str, *, proven: bool = False) -> tuple[type[Params], About]:
    """The parameters of a component and its description.

    Args:
        role: The role that the class claims.
        component: The class.
        name: Its name in pipeline files.
        proven: Skip the check of the method signatures, which takes each process as long as a search; tests prove them
            for the components of the product.

    Raises:
        SpeckitError: E133 for a class that does not fit the role.
    """
    if not proven and (found := "; ".join(misfits(role, component))):
        raise SpeckitError("E133", f"'{name}' does not fit the role {role}: {found}")
    params = getattr(component, "Params", NoParams)
    expected = _PARAMS.get(role, Params)
    if not (isinstance(params, type) and issubclass(params, expected)):
        raise SpeckitError("E133", f"the parameters of the {role} '{name}' must derive from {expected.__name__}")
    about = getattr(component, "about", None)
    if type(about) is not About:
        raise SpeckitError("E133", f"'{name}' must describe itself in a class attribute 'about', an About")
    try:
        _check_about(about)
    except InvalidComponentOutput as unfit:
        raise SpeckitError("E133", f"the 'about' of '{name}' {unfit.violation}") from None
    if role in _SCORES and about.gives is None and SCALE.of(component) is None:
        raise SpeckitError("E133", f"the {role} '{name}' must declare the scale of its scores: 'gives' or 'scale'")
    # `combine` is read statically: a property of the class must not run here.
    if role is Role.SIGNAL and combine_of(component) is None:
        found = shape_of(getattr_static(component, "combine", None))
        raise SpeckitError("E133", f"the signal '{name}' has {found} as 'combine'; accepted: 'add', 'multiply'")
    return params, about


def _check_about(about: About) -> None:
    """Raises InvalidComponentOutput unless each field of a component's description has its declared type."""
    for name in ("features", "before", "conflicts"):
        texts(getattr(about, name), name, MOST_NAMED)
    for name in ("groups", "widens", "unconditional", "costly", "finds_intent"):
        flag(getattr(about, name), name)
    row_of(about.needs, _scale, "needs", MOST_NAMED)
    if about.gives is not None:
        _scale(about.gives)
    weighs = about.weighs_intent
    if not (weighs is None or str(weighs) in get_args(IntentWeighing)):
        raise InvalidComponentOutput(
            f"returned {shape_of(weighs)} as 'weighs_intent'; accepted: {', '.join(get_args(IntentWeighing))}"
        )


def _scale(found: object) -> Scale:
    if type(found) is Scale:
        return found
    raise InvalidComponentOutput(f"returned {shape_of(found)} as a scale; accepted: a Scale")
