"""Classes that are no components of their role are refused when they are registered, with what is wrong and where."""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import getsourcelines
from typing import Any

import pytest
from frame.hostile import component
from isolated.distributions import installed
from isolated.opened import hosting, isolating, trusting

from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.roles.contracts import Params, Role
from speckit_memory.pipeline.roles.hooks import ROLE_METHODS
from speckit_memory.pipeline.roles.registry import Registry

pytestmark = pytest.mark.requirement("P2")


def refusal(role: Role, **members: Any) -> str:
    """What the registry says of a component of the role with these members; empty when it takes it."""
    made = type("Made", (component(role, lambda *asked: None),), {"__module__": "mine", **members})
    try:
        Registry().admit(role, made, "made")
    except SpeckitError as error:
        return str(error).removeprefix("E133 ").removeprefix(f"'made' does not fit the role {role}: ")
    return ""


def place(function: Callable[..., Any]) -> str:
    return f"{__name__}:{getsourcelines(function)[1]}"


def swapped(self: Any, limit: Any, query: Any, store: Any) -> None: ...
def fewer(self: Any, query: Any, store: Any) -> None: ...
def more(self: Any, query: Any, limit: Any, store: Any, extra: Any) -> None: ...
def named(self: Any, query: Any, limit: Any, *, store: Any) -> None: ...
def plain(self: Any, query: Any, limit: Any, store: Any) -> None: ...
def optional(self: Any, query: Any, limit: Any, store: Any, extra: Any = 1, *, other: Any = 2) -> None: ...
def unused(self: Any, query: Any, _limit: Any, *_: Any) -> None: ...
def anything(*asked: Any, **named: Any) -> None: ...
def objectless(query: Any, limit: Any, store: Any) -> None: ...
def checking(cls: Any, params: Any, context: Any) -> Any: ...
def uninformed(cls: Any, params: Any) -> Any: ...
async def later(self: Any, query: Any, limit: Any, store: Any) -> None: ...


@pytest.mark.parametrize(
    ("method", "shown"),
    [
        (swapped, "takes (limit, query, store)"),
        (fewer, "takes (query, store)"),
        (more, "takes (query, limit, store, extra)"),
        (named, "takes (query, limit, *, store)"),
    ],
)
def test_a_method_that_cannot_take_the_arguments_is_refused(method: Callable[..., Any], shown: str) -> None:
    expected = f"its 'search' at {place(method)} {shown}; accepted: search(query, limit, store)"

    assert refusal(Role.CHANNEL, search=method) == expected


@pytest.mark.parametrize("method", [plain, optional, unused, anything, staticmethod(objectless)])
def test_what_takes_them_is_accepted(method: Any) -> None:
    assert refusal(Role.CHANNEL, search=method) == ""


def test_an_answer_that_somebody_would_have_to_await_is_refused() -> None:
    found = f"its 'search' at {place(later)} is 'async'; accepted: a plain method, since its answer is not awaited"

    assert refusal(Role.CHANNEL, search=later) == found


@pytest.mark.parametrize("role", Role)
def test_every_role_has_its_method_looked_at(role: Role) -> None:
    name = ROLE_METHODS[role].name

    assert refusal(role) == ""
    assert f"its '{name}' at {place(objectless)} takes (limit, store); " in refusal(role, **{name: objectless})
    assert refusal(role, **{name: None, f"{name}s": plain}).startswith(
        f"it has no method '{name}'; did you mean '{name}s' at {place(plain)}?"
    )


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"check": classmethod(checking)}, ""),
        ({"check": None}, ""),
        ({"check": classmethod(uninformed)}, "its 'check' at {uninformed} takes (params); accepted: {accepted}"),
        ({"check": checking}, "its 'check' at {checking} is an instance method; accepted: a class method"),
        ({"check": 7}, "its 'check' is of type int; accepted: a method {accepted}"),
        ({"check": property(checking)}, "its 'check' is of type property; accepted: a method {accepted}"),  # type: ignore[arg-type]
    ],
)
def test_hooks_are_looked_at_too(members: dict[str, Any], expected: str) -> None:
    places = {"uninformed": place(uninformed), "checking": place(checking)}

    assert refusal(Role.ANNOTATOR, **members) == expected.format(**places, accepted="check(params, context)")


@pytest.mark.parametrize(
    ("role", "name", "meant"),
    [
        (Role.FUSER, "chek", "check"),
        (Role.FUSER, "checks", "check"),
        (Role.FUSER, "settle", "settled"),
        (Role.FUSER, "sclae", "scale"),
        (Role.SIGNAL, "weights_intent", "weighs_intent"),
        (Role.CHANNEL, "about_concepts", "about_concept"),
    ],
)
def test_a_misspelt_hook_is_refused_and_the_right_name_offered(role: Role, name: str, meant: str) -> None:
    found = f"it has a method '{name}' at {place(checking)}; did you mean '{meant}'?"

    assert refusal(role, **{name: classmethod(checking)}).startswith(found)


@pytest.mark.parametrize(
    ("role", "name"),
    [
        (Role.FUSER, "checksum"),
        (Role.FUSER, "score"),
        (Role.FUSER, "rescale"),
        (Role.FUSER, "explain"),
        (Role.FUSER, "_chek"),
        (Role.FUSER, "about_concepts"),  # no hook of fusers
    ],
)
def test_methods_of_a_component_s_own_are_its_own_affair(role: Role, name: str) -> None:
    assert refusal(role, **{name: plain}) == ""


def test_a_name_near_a_hook_is_free_once_the_hook_is_there() -> None:
    assert refusal(Role.FUSER, check=classmethod(checking), checks=plain) == ""


def test_everything_wrong_with_the_methods_is_said_at_once() -> None:
    said = refusal(Role.CHANNEL, search=fewer, chek=checking)

    assert said.count("; accepted: ") == 1
    assert "'chek'" in said


def test_a_signal_says_how_it_is_combined() -> None:
    said = refusal(Role.SIGNAL, combine="replace")

    assert said == "the signal 'made' has str as 'combine'; accepted: 'add', 'multiply'"


def test_a_role_in_plain_text_is_that_role() -> None:
    registry = Registry()

    registry.admit("signal", component(Role.SIGNAL, lambda *asked: None), "made")  # type: ignore[arg-type]

    entry = registry.find("made")
    assert entry is not None
    assert entry.role is Role.SIGNAL  # rules about signals tell them so


def test_a_role_that_there_is_not_and_what_is_no_class_are_refused() -> None:
    with pytest.raises(SpeckitError, match=r"there is no role 'chanel'; did you mean 'channel'\?"):
        Registry().admit("chanel", Params)  # type: ignore[arg-type]
    with pytest.raises(SpeckitError, match="function was registered as signal; accepted: a class"):
        Registry().admit(Role.SIGNAL, plain)  # type: ignore[arg-type]


EXTENSION = """\
from speckit_memory.pipeline.roles.contracts import About, Role


class Marks:
    '''Marks nothing.'''

    about = About(features=())

    def __init__(self, params):
        pass

    def annotate(self, query, ranking, store):
        return None

    @classmethod
    def chek(cls, params, context):
        return []


def register(registry):
    registry.add(Role.ANNOTATOR, Marks, "marks")
"""
REFUSED = "E133 'marks' does not fit the role annotator: it has a method 'chek' at misspelt:15; did you mean 'check'?"


@pytest.mark.usefixtures("processes")
def test_an_extension_with_such_a_component_is_reported_wherever_it_runs(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(installed(tmp_path / "site", "misspelt", EXTENSION)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))

    with hosting() as host:
        for registry in (trusting(), isolating(host)):
            assert registry.find("marks") is None
            [broken] = [one for one in registry.extensions() if one.name == "misspelt"]
            assert broken.components == ()
            assert broken.failure.startswith(REFUSED)
            assert registry.find("bm25") is not None
    sys.modules.pop("misspelt", None)
