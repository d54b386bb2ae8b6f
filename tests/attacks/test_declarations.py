"""What a component does while a pipeline is built: it is named with its place in the file, and nothing else is hurt."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from files import write_file
from frame.attacks import RAISED
from frame.hostile import PLAIN, component, registered
from pydantic import field_validator, model_validator
from tally import Tally

from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.configuration.builder import build, examine
from speckit_memory.pipeline.model.columns import Notes
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.roles.contracts import About, ChannelParams, NoParams, Params, Role, SignalParams
from speckit_memory.pipeline.roles.registry import Registry

pytestmark = pytest.mark.requirement("P7")


def raising(make: Callable[[], BaseException]) -> Callable[..., Any]:
    def raise_it(*asked: Any) -> Any:
        raise make()

    return raise_it


def hostile(**declared: Any) -> type[Any]:
    made = component(Role.ANNOTATOR, lambda *asked: Notes())
    for name, value in declared.items():
        setattr(made, name, value)
    return made


def file(tmp_path: Path) -> str:
    path = write_file(tmp_path / "p.yaml", PLAIN.replace("annotate: []", "annotate:\n  - {use: hostile}"))
    return str(path)


def found(tmp_path: Path, made: type[Any]) -> list[str]:
    """The problems of a file that uses the component, each at its place; building fails with the same."""
    registry = registered((Role.ANNOTATOR, made, "hostile"))
    problems = examine(file(tmp_path), registry, {}).problems
    with pytest.raises(SpeckitError) as caught:
        build(file(tmp_path), registry, {})
    if problems:
        assert sorted(map(str, caught.value.problems)) == sorted(map(str, problems))
    assert all(problem.where and problem.where.line == 12 for problem in caught.value.problems)
    assert {problem.code for problem in caught.value.problems} == {"E131"}
    return [problem.message for problem in caught.value.problems]


@pytest.mark.parametrize("method", ["check", "settled", "scale", "weighs_intent"])
@pytest.mark.parametrize("name", RAISED)
def test_what_a_declaration_raises_is_a_problem_of_the_file(
    method: str, name: str, tmp_path: Path, tally: Tally
) -> None:
    [message] = found(tmp_path, hostile(**{method: classmethod(raising(RAISED[name]))}))

    assert message.startswith(f"'{method}' of the component 'hostile' failed: ")
    tally.tried()


@pytest.mark.parametrize("name", RAISED)
def test_what_a_constructor_or_a_parameter_raises_is_one_too(name: str, tmp_path: Path, tally: Tally) -> None:
    [message] = found(tmp_path, hostile(__init__=raising(RAISED[name])))
    assert message.startswith("the constructor of the component 'hostile' failed: ")
    tally.tried()

    class Params(NoParams):
        """Cannot be validated."""

        @model_validator(mode="before")
        @classmethod
        def refuse(cls, values: Any) -> Any:
            raise RAISED[name]()

    if not issubclass(type(RAISED[name]()), ValueError):  # which is how a validator says what is wrong
        [message] = found(tmp_path, hostile(Params=Params))
        assert message.startswith("the parameters of the component 'hostile' failed: ")
        tally.tried()


ANSWERS: dict[str, tuple[Any, ...]] = {
    "check": (None, 7, [7], [("x",)], [((object(),), "x")], [(("x",), None)], [(("x",), "\ud800")]),
    "settled": (7, object(), {}, About(features=())),
    "scale": (None, 7, "unit", object()),
    "weighs_intent": (7, "both", object(), True),
}


@pytest.mark.parametrize("method", ANSWERS)
def test_what_a_declaration_answers_is_looked_at(method: str, tmp_path: Path, tally: Tally) -> None:
    for answer in ANSWERS[method]:
        declared = {method: classmethod(lambda cls, *asked, answer=answer: answer)}
        assert all(message.startswith(f"'{method}' of") for message in found(tmp_path, hostile(**declared)))
        tally.tried()


def test_a_class_that_makes_something_else_is_a_problem_of_the_file(tmp_path: Path, tally: Tally) -> None:
    for found_, made in (("int", 7), ("NoParams, a subclass of Params", NoParams())):
        [message] = found(tmp_path, hostile(__new__=lambda cls, params, made=made: made))
        assert message.startswith(f"the constructor of the component 'hostile' failed: it created {found_}")
        tally.tried()


def test_objections_without_an_end_are_cut(tmp_path: Path, tally: Tally) -> None:
    made = hostile(check=classmethod(lambda cls, params, context: repeat((("x",), "no"))))

    problems = examine(file(tmp_path), registered((Role.ANNOTATOR, made, "hostile")), {}).problems

    assert len(problems) == 100
    tally.tried()


def test_a_description_is_one(tally: Tally) -> None:
    claimed: tuple[Any, ...] = (None, {})
    for about in claimed:
        with pytest.raises(SpeckitError, match="must describe itself"):
            Registry().add(Role.ANNOTATOR, hostile(about=about), "hostile")
        tally.tried()


DESCRIBED: dict[str, tuple[Any, ...]] = {
    "features": (None, 7, ["P9"], (7,)),
    "needs": (7, [Scale.UNIT], ("unit",)),
    "gives": (7, "unit", object()),
    "before": (7, np.ones(2), ("\ud800",)),
    "conflicts": (7, "pin", (object(),)),
    "weighs_intent": (7, "both", np.ones(2)),
    **{name: (None, 1, np.ones(2), object()) for name in ("groups", "widens", "unconditional", "costly")},
}


@pytest.mark.parametrize("field", DESCRIBED)
def test_every_field_of_a_description_is_looked_at(field: str, tally: Tally) -> None:
    for value in DESCRIBED[field]:
        about = About(**({"features": ("P9",)} | {field: value}))
        with pytest.raises(SpeckitError, match="the 'about' of 'hostile' "):
            Registry().add(Role.ANNOTATOR, hostile(about=about), "hostile")
        tally.tried()


def other(kind: type[Params], name: str, annotation: Any, default: Any) -> type[Params]:
    """A class that declares an inherited parameter anew."""
    return type("Other", (kind,), {"__annotations__": {name: annotation}, name: default})


class Forgetful(ChannelParams):
    """Has a validator that returns nothing."""

    @field_validator("limit")
    @classmethod
    def look(cls, value: int) -> None:
        return None


class Unwritable(NoParams):
    """Cannot be written down."""

    def model_dump(self, **how: Any) -> dict[str, Any]:
        raise SystemExit(3)


UNHEEDED = [
    (Role.CHANNEL, other(ChannelParams, "limit", "int | None", None), {}),
    (Role.CHANNEL, other(ChannelParams, "limit", "float", 2.5), {}),
    (Role.CHANNEL, Forgetful, {"limit": 5}),
    (Role.SIGNAL, other(SignalParams, "cap_group", "list[str]", []), {}),
    (Role.SIGNAL, other(SignalParams, "cap", "str", "all"), {}),
    (Role.ANNOTATOR, Unwritable, {}),
]
"""Parameters that the frame cannot go by, and what the file says."""


@pytest.mark.parametrize(("role", "params", "written"), UNHEEDED)
def test_parameters_that_the_frame_cannot_go_by_are_problems_of_the_file(
    role: Role, params: type[Params], written: dict[str, Any], tmp_path: Path, tally: Tally
) -> None:
    made = component(role, lambda *asked: None)
    made.Params = params

    assert problems_of(tmp_path, role, made, written) == ["E131"]
    tally.tried()


SETTLED: list[tuple[Role, str, object]] = [(Role.CHANNEL, "limit", value) for value in (None, "many", -5, 10**9)]
SETTLED += [(Role.SIGNAL, name, value) for name, value in (("cap_group", []), ("cap", -1.0), ("cap", object()))]


@pytest.mark.parametrize(("role", "name", "value"), SETTLED)
def test_settled_parameters_that_nobody_has_validated_are_problems_too(
    role: Role, name: str, value: Any, tmp_path: Path, tally: Tally
) -> None:
    made = component(role, lambda *asked: None)
    made.settled = classmethod(lambda cls, params, context: params.model_copy(update={name: value}))

    assert problems_of(tmp_path, role, made, {}) == ["E131"]
    tally.tried()


def problems_of(tmp_path: Path, role: Role, made: type[Any], written: dict[str, Any]) -> list[str]:
    said = "".join(f", {name}: {value}" for name, value in written.items())
    slot, instead = {
        Role.CHANNEL: ("    - {use: bm25}", f"    - {{use: bm25}}\n    - {{use: hostile{said}}}"),
        Role.SIGNAL: ("rerank:", f"  - {{use: hostile{said}}}\nrerank:"),
        Role.ANNOTATOR: ("annotate: []", f"annotate:\n  - {{use: hostile{said}}}"),
    }[role]
    path = write_file(tmp_path / "p.yaml", PLAIN.replace(slot, instead))
    return [problem.code for problem in examine(str(path), registered((role, made, "hostile")), {}).problems]
