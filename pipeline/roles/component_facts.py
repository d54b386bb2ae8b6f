"""Checks at registration that a class is a component of its role, by its methods and its description.

The frame passes arguments by position, so a method with another order of parameters would silently get wrong ones, and
a misspelt hook would never be called. No code of the component runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import cache
from inspect import Parameter, Signature, getattr_static, isasyncgenfunction, iscoroutinefunction, signature
from types import FunctionType
from typing import get_args

from speckit_memory.errors import SpeckitError, closest
from speckit_memory.pipeline.model.describing import displayable, name_of, shape_of
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
from speckit_memory.pipeline.roles.hooks import HOOKS, ROLE_METHODS, SCALE, Method, combine_of

CLOSE = 0.8
"""The similarity of names, from 0 to 1, above which one may be a misspelling of the other."""


def misfits(role: Role, component: type) -> Iterator[str]:
    """The mismatches between a class's methods and its role: the method, its place, and the accepted form."""
    members = _members(component)
    required, hooks = ROLE_METHODS[role], [hook for hook in HOOKS if role in hook.roles]
    missing = [hook.name for hook in hooks if members.get(hook.name) is None]
    own = {name: made for name, found in members.items() if not name.startswith("_") and (made := _function(found))}
    if members.get(required.name) is None:
        slip = closest(required.name, own)
        found = f"; did you mean '{slip}' at {_place(own[slip])}?" if slip else ""
        yield f"it has no method '{required.name}'{found}"
    for method in (required, *hooks):
        if members.get(method.name) is not None:
            yield from _misfit(method, members[method.name])
    for name in sorted(own):
        if name != required.name and (meant := _slip_of(name, missing)):
            found, accepted = f"it has a method '{name}' at {_place(own[name])}", f"'{meant}', or '_{name}'"
            yield f"{found}; did you mean '{meant}'? Accepted: {accepted} for a method that is not a hook"


def _members(component: type) -> dict[str, object]:
    """The attributes of a class, own and inherited, by name, without those of `object`."""
    members: dict[str, object] = {}
    for kind in reversed(component.__mro__[:-1]):
        members |= vars(kind)
    return members


def _slip_of(name: str, hooks: Sequence[str]) -> str:
    """The hook that a name is probably a misspelling of, "" for none: "chek" is one, "checksum" is not."""
    near = [hook for hook in hooks if name != hook and abs(len(name) - len(hook)) <= max(1, len(hook) // 4)]
    return next(iter(get_close_matches(name, near, n=1, cutoff=CLOSE)), "")


def _function(found: object) -> FunctionType | None:
    """The function behind a method, None if it is not a Python function."""
    found = found.__func__ if isinstance(found, classmethod | staticmethod) else found
    return found if type(found) is FunctionType else None


def _place(function: FunctionType) -> str:
    """The position of a function: "my_package.channels:12"."""
    return f"{displayable(str(function.__module__), 100)}:{function.__code__.co_firstlineno}"


def _misfit(method: Method[object], found: object) -> Iterator[str]:
    if not isinstance(found, classmethod | staticmethod) and not callable(found):
        yield f"its '{method.name}' is of type {name_of(found)}; accepted: a method {_shown_as_declared(method)}"
        return
    function = _function(found)
    if function is None:
        return  # compiled, or a callable object: its signature is not available
    its = f"its '{method.name}' at {_place(function)}"
    if iscoroutinefunction(function) or isasyncgenfunction(function):
        yield f"{its} is 'async'; accepted: a plain method, since its answer is not awaited"
    if method.of_class and isinstance(found, FunctionType):
        yield f"{its} is an instance method; accepted: a class method"
        return
    taken = _arguments(function, bound=not isinstance(found, staticmethod))
    if not _fits(taken, _declared(method)):
        yield f"{its} takes {_shown(taken)}; accepted: {_shown_as_declared(method)}"


def _arguments(function: FunctionType, *, bound: bool) -> Signature:
    """The parameters of a function without annotations; if `bound`, without object or class."""
    plain = [one.replace(annotation=Parameter.empty) for one in signature(function).parameters.values()]
    first_is_given = bound and plain and plain[0].kind is not Parameter.VAR_POSITIONAL
    return Signature(plain[1:] if first_is_given else plain)


def _fits(taken: Signature, wanted: Sequence[str]) -> bool:
    """Whether these arguments can be passed by position. An unused parameter may be called `_something`."""
    try:
        taken.bind(*wanted)
    except TypeError:
        return False
    own = [name for name, one in taken.parameters.items() if one.kind is Parameter.POSITIONAL_OR_KEYWORD]
    return all(name == other or name.startswith("_") for name, other in zip(own, wanted, strict=False))


def _shown(taken: Signature) -> str:
    """The parameters as in the source, without defaults, whose values may be anything."""
    plain = [one.replace(default=Parameter.empty) for one in taken.parameters.values()]
    return displayable(str(Signature(plain)))


@cache
# cached: the same few protocols are compared with every component
def _declared(method: Method[object]) -> tuple[str, ...]:
    """The names of a declared method's parameters after its component."""
    return tuple(signature(vars(method.protocol)[method.name]).parameters)[1:]


def _shown_as_declared(method: Method[object]) -> str:
    return f"{method.name}({', '.join(_declared(method))})"


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
