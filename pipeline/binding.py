"""Pass 4: bind. Finds the component of every step and validates its parameters, each problem at its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from config.errors import Problem, Where, closest, nearest
from config.pipeline_file import Step
from config.yaml_reader import locate, plain
from pipeline.contracts import SLOT_ROLES, Params, Role
from pipeline.registry import Registered, Registry


@dataclass(frozen=True, slots=True)
class Bound:
    """A step with its component and parameters; both None when the step could not be bound.

    `meant` is the component that a misspelt name most likely means, "" when that is anybody's guess.
    """

    step: Step
    registered: Registered | None
    params: Params | None
    meant: str = ""

    @property
    def id(self) -> str:
        """The id by which other steps speak of this one, also when its name is misspelt."""
        return self.meant if self.meant and self.step.id == self.step.use else self.step.id


Places = Mapping[str, Where]
"""Where each slot stands in the file."""


def of_role(role: Role, bound: Iterable[Bound]) -> list[Bound]:
    """The steps whose component is known and has this role."""
    return [entry for entry in bound if entry.registered is not None and entry.registered.role is role]


def bind(steps: Iterable[Step], registry: Registry) -> tuple[list[Bound], list[Problem]]:
    """Every step bound as far as possible, and everything that is wrong with it."""
    problems: list[Problem] = []
    return [_bind(step, registry, problems) for step in steps], problems


def _bind(step: Step, registry: Registry, problems: list[Problem]) -> Bound:
    roles = SLOT_ROLES[step.slot]
    registered = registry.find(step.use)
    if registered is None:
        names = registry.names(*roles)
        message = f"no component is called '{step.use}'; {nearest(step.use, names)}"
        problems.append(Problem("E116", message, where=step.place("use")))
        return Bound(step, None, None, closest(step.use, names))
    if registered.role not in roles:
        home = next(slot for slot, accepted in SLOT_ROLES.items() if registered.role in accepted)
        problems.append(Problem("E117", _misplaced(step, registered.role, home), where=step.where))
        return Bound(step, None, None)
    try:
        params = registered.params.model_validate(plain(step.params))
    except ValidationError as error:
        problems.extend(_parameter_problem(step, registered, detail) for detail in error.errors())
        return Bound(step, registered, None)
    return Bound(step, registered, params)


def _misplaced(step: Step, role: Role, home: str) -> str:
    article = "an" if role[0] in "aeiou" else "a"
    if step.slot == "annotate":
        reason = "changes scores or order, which nothing under 'annotate' may do"
        return f"'{step.use}' is {article} {role} and {reason}; it belongs to '{home}'"
    return f"'{step.use}' is {article} {role} and cannot stand under '{step.slot}'; it belongs to '{home}'"


def _parameter_problem(step: Step, registered: Registered, detail: object) -> Problem:
    assert isinstance(detail, dict)
    path = tuple(part for part in detail["loc"] if isinstance(part, str | int))
    name = ".".join(str(part) for part in path) or "parameters"
    owner = f"'{name}' of the step '{step.id}'"
    if detail["type"] == "extra_forbidden":
        entry = step.params.get(str(path[0]))
        where = entry.where if entry and len(path) == 1 else locate(step.params, path)
        hint = nearest(str(path[-1]), _accepted(registered.params, path[:-1]))
        return Problem("E118", f"{registered.name} has no parameter '{name}'; {hint}", where=where)
    if detail["type"] == "missing":
        return Problem("E118", f"{owner} is missing", where=step.where)
    reason = str(detail["msg"]).removeprefix("Value error, ")
    if detail["type"] in ("model_type", "model_attributes_type", "dataclass_type", "dict_type"):
        reason = "must map keys to values"  # the library's own words name a Python class
    found = detail.get("input")
    shown = f"; found {found!r}" if isinstance(found, str | int | float | bool | None) else ""
    return Problem("E118", f"{owner}: {reason[:1].lower()}{reason[1:]}{shown}", where=locate(step.params, path))


def _accepted(params: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    """The names that the mapping at this path takes."""
    for part in path:
        inner = next((f.annotation for key, f in params.model_fields.items() if part in (key, f.alias)), None)
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        params = inner
    return [field.alias or key for key, field in params.model_fields.items()]
