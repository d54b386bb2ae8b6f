"""Pass 4: bind. Finds the component of every step and validates its parameters; each problem has its position."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from speckit_memory.config.pipelines.pipeline_file import StepEntry, instead_of_switch
from speckit_memory.config.pipelines.renamed_parameters import present_name
from speckit_memory.config.yaml.binding import UNKNOWN_KEY, Mistake, mistakes_of
from speckit_memory.config.yaml.reader import YamlMapping, key_place, locate, plain
from speckit_memory.errors import Problem, Where, closest, nearest
from speckit_memory.errors.echo import LISTED
from speckit_memory.pipeline.configuration.accepted_values import describe, keys, schema_at
from speckit_memory.pipeline.model import describing
from speckit_memory.pipeline.model.describing import shape_of
from speckit_memory.pipeline.model.errors import InvalidComponentOutput
from speckit_memory.pipeline.process.interrupts import call_guarded
from speckit_memory.pipeline.roles.contracts import SLOT_ROLES, ChannelParams, Params, Role, SignalParams
from speckit_memory.pipeline.roles.registry import RegisteredComponent, Registry


@dataclass(frozen=True, slots=True)
class BoundParameters:
    """A step with its component and parameters; both None if the step could not be bound.

    `meant` is the component that a misspelt name most likely means, "" if there is no clear candidate.
    """

    step: StepEntry
    registered: RegisteredComponent | None
    params: Params | None
    meant: str = ""

    @property
    def id(self) -> str:
        """The id by which other steps refer to this one, even if its name is misspelt."""
        return self.meant if self.meant and self.step.id == self.step.use else self.step.id


Places = MappingOf[str, Where]
"""The position of each slot in the file."""


def of_role(role: Role, bound: Iterable[BoundParameters]) -> list[BoundParameters]:
    """The steps whose component is known and has this role."""
    return [entry for entry in bound if entry.registered is not None and entry.registered.role is role]


def bind(steps: Iterable[StepEntry], registry: Registry) -> tuple[list[BoundParameters], list[Problem]]:
    """Every step bound as far as possible, and all problems found."""
    problems: list[Problem] = []
    return [_bind(step, registry, problems) for step in steps], problems


def _bind(step: StepEntry, registry: Registry, problems: list[Problem]) -> BoundParameters:
    roles = SLOT_ROLES[step.slot]
    registered = registry.find(step.use)
    if registered is None:
        names = registry.names(*roles)
        message = f"no component is called '{step.use}'; {nearest(step.use, names)}{registry.remark}"
        problems.append(Problem("E116", message, where=step.place("use")))
        return BoundParameters(step, None, None, closest(step.use, names))
    if registered.role not in roles:
        home = next(slot for slot, accepted in SLOT_ROLES.items() if registered.role in accepted)
        problems.append(Problem("E117", _misplaced(step, registered.role, home), where=step.where))
        return BoundParameters(step, None, None)
    # Guarded: a validator of an extension may raise anything.
    params, error = call_guarded(lambda: check_params(validate_parameters(registered.params, step.params)))
    if isinstance(error, ValidationError):
        problems += _parameter_problems(step, registered, error)
    elif error:
        message = f"the parameters of the component '{registered.name}' failed: {describing.describe(error)}"
        problems.append(Problem("E131", message, where=step.where))
    return BoundParameters(step, registered, params)


def validate_parameters(params: type[Params], written: YamlMapping) -> Params:
    """The parameters as written; mappings are merged into their defaults. Raises ValidationError."""
    values = {entry.key: plain(entry.value) for entry in written.entries}
    for name, field in params.model_fields.items():
        key = field.alias or name
        default = field.get_default(call_default_factory=True)
        below = default.model_dump(by_alias=True) if isinstance(default, BaseModel) else default
        # Defaults below, written values on top: a file that names one channel weight keeps the others.
        if isinstance(below, dict) and isinstance(above := values.get(key), dict):
            values[key] = _upon(below, above)
    return params.model_validate(values)


def _upon(below: dict[str, object], above: dict[str, object]) -> dict[str, object]:
    both = dict(below)
    for key, value in above.items():
        under = both.get(key)
        both[key] = _upon(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return both


def _misplaced(step: StepEntry, role: Role, home: str) -> str:
    article = "an" if role[0] in "aeiou" else "a"
    if step.slot == "annotate":
        reason = "changes scores or order, which nothing under 'annotate' may do"
        return f"'{step.use}' is {article} {role} and {reason}; it belongs to '{home}'"
    return f"'{step.use}' is {article} {role} and cannot be used under '{step.slot}'; it belongs to '{home}'"


def _parameter_problems(step: StepEntry, registered: RegisteredComponent, error: ValidationError) -> list[Problem]:
    """One problem per mistake; of very many, the first ones."""
    mistakes = mistakes_of(step.params, error)
    problems = [_parameter_problem(step, registered, mistake) for mistake in mistakes[:LISTED]]
    if further := mistakes[LISTED:]:
        message = f"{registered.name}: {len(further):,} more parameters from here on are not accepted"
        problems.append(Problem("E118", message, where=locate(step.params, further[0].path)))
    return problems


def _parameter_problem(step: StepEntry, registered: RegisteredComponent, mistake: Mistake) -> Problem:
    path = mistake.path
    name = ".".join(str(part) for part in path) or "parameters"
    owner = f"'{name}' of the step '{step.id}'"
    if mistake.kind == UNKNOWN_KEY:
        where = key_place(step.params, path) if len(path) == 1 else locate(step.params, path)
        if now := present_name(registered.name, path):
            return Problem("E118", f"{registered.name}: '{name}' is now called '{now}'", where=where)
        known = keys(schema_at(registered.params, path[:-1]))
        hint = nearest(str(path[-1]), known)
        if len(path) == 1:
            hint = instead_of_switch(name, step) or hint
        return Problem("E118", f"{registered.name} has no parameter '{name}'; {hint}", where=where)
    if mistake.kind == "missing":
        return Problem("E118", f"{owner} is missing", where=step.where)
    where = locate(step.params, path)
    if mistake.kind in ("value_error", "assertion_error"):
        reason = f"{mistake.message[:1].lower()}{mistake.message[1:]}"
        return Problem("E118", f"{owner}: {reason}", where=where)
    schema = schema_at(registered.params, path)
    reason = "must map keys to values" if schema.get("type") == "object" else f"must be {describe(schema)}"
    found = mistake.found
    shown = f"; found {found!r}" if isinstance(found, str | int | float | bool | None) else ""
    return Problem("E118", f"{owner}: {reason}{shown}", where=where)


def check_params(params: Params) -> Params:
    """The parameters. Raises InvalidComponentOutput unless the frame can use them, and serialise them for the hash.

    A class may redeclare an inherited parameter, its validators may return anything, and a copy with changed values is
    not validated.
    """
    for kind in (ChannelParams, SignalParams):
        if isinstance(params, kind):
            _check(params, kind)
    params.model_dump(mode="json", warnings="error")
    return params


def _check(params: Params, kind: type[Params]) -> None:
    values = {name: getattr(params, name) for name in kind.model_fields}
    try:
        kind.model_validate(values)
    except ValidationError as error:
        name = str(error.errors(include_input=False, include_url=False)[0]["loc"][0])
        found = shape_of(values[name])
        raise InvalidComponentOutput(
            f"has {found} as '{name}'; accepted: the values that {kind.__name__} accepts"
        ) from None
