"""Descriptions of an extension's components as plain data, made in the extension's own process."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import cleandoc
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, JsonValue, model_validator
from pydantic_core import PydanticUndefined, to_jsonable_python

from speckit_memory.config.flags.flag_files import FlagFile, said_in_code
from speckit_memory.config.yaml.reader import MappingEntry, plain
from speckit_memory.errors import Where
from speckit_memory.pipeline.roles.contracts import About, Combine, Role
from speckit_memory.pipeline.roles.hooks import HOOKS, combine_of
from speckit_memory.pipeline.roles.registry import RegisteredComponent


class _Plain(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, ser_json_inf_nan="constants")


class ParameterDescription(_Plain):
    """One parameter: its name in the class, its key in a file, and its default unless it is `required`."""

    name: str
    key: str
    required: bool
    default: JsonValue = None

    @model_validator(mode="after")
    def _is_a_name(self) -> Self:
        if not self.name.isidentifier() or self.name.startswith("_"):
            raise ValueError(f"{self.name!r} is not a valid parameter name")
        return self


class Description(_Plain):
    """One component, described as by `pipeline.roles.registry.RegisteredComponent` for components of this process."""

    name: str
    role: Role
    origin: str
    doc: str
    about: About
    parameters: tuple[ParameterDescription, ...]
    json_schema: dict[str, JsonValue]
    offers: tuple[str, ...]
    combine: Combine | None = None

    @model_validator(mode="after")
    def _signals_combine(self) -> Self:
        if self.role is Role.SIGNAL and self.combine is None:
            raise ValueError(f"the signal '{self.name}' must declare 'combine': 'add' or 'multiply'")
        return self

    @model_validator(mode="after")
    def _offers_hooks_of_its_role(self) -> Self:
        if unknown := set(self.offers) - {hook.name for hook in HOOKS if self.role in hook.roles}:
            raise ValueError(f"the {self.role} '{self.name}' offers unknown hooks: {', '.join(sorted(unknown))}")
        return self


class FlagDescription(_Plain):
    """One flag that an extension declares: its name, its facts, and its position."""

    name: str
    facts: dict[str, str]
    file: str
    line: int

    def entry(self) -> MappingEntry:
        """The flag as an entry of a flag file."""
        return said_in_code(self.name, self.facts, Where(self.file, self.line, 1))


def described_flags(files: Sequence[FlagFile]) -> list[FlagDescription]:
    """The descriptions of the flags of this process."""
    return [
        FlagDescription(
            name=entry.key,
            facts=facts,
            file=entry.where.file,
            line=entry.where.line,
        )
        for file in files
        for entry in file.entries
        if isinstance(facts := plain(entry.value), dict)  # always true for entries made by `said_in_code`
    ]


def describe_component(entry: RegisteredComponent) -> Description:
    """The description of a component of this process. Raises ValueError if it cannot be described."""
    component: Any = entry.component
    return Description(
        name=entry.name,
        role=entry.role,
        origin=entry.origin,
        doc=cleandoc(component.__doc__ or ""),
        about=entry.about,
        parameters=tuple(
            ParameterDescription(
                name=name,
                key=field.alias or name,
                required=field.is_required(),
                default=None if field.is_required() else _as_json(field.get_default(call_default_factory=True)),
            )
            for name, field in entry.params.model_fields.items()
        ),
        json_schema=entry.params.model_json_schema(by_alias=True),
        offers=tuple(hook.name for hook in HOOKS if entry.role in hook.roles and hook.of(component) is not None),
        combine=combine_of(component) if entry.role is Role.SIGNAL else None,
    )


def _as_json(value: object) -> JsonValue:
    found: JsonValue = None if value is PydanticUndefined else to_jsonable_python(value, by_alias=True)
    return found
