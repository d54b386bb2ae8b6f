"""Handles requests in the process of isolated extensions: load, validate parameters, call a component."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any

from pydantic import ValidationError

from speckit_memory.pipeline.isolation.codec import Handle, unpack
from speckit_memory.pipeline.isolation.descriptions import describe_component, described_flags
from speckit_memory.pipeline.isolation.limits import KEPT_COMPONENTS, KEPT_PARAMETERS
from speckit_memory.pipeline.isolation.store_client import Ask, StoreLink, make_proxy
from speckit_memory.pipeline.model.columns import Query
from speckit_memory.pipeline.model.describing import describe
from speckit_memory.pipeline.process.clock import query_ns
from speckit_memory.pipeline.roles.contracts import Params, PipelineContext
from speckit_memory.pipeline.roles.hooks import CHECK, SCALE, SETTLED, WEIGHS_INTENT
from speckit_memory.pipeline.roles.registry import ENTRY_POINTS, RegisteredComponent, Registry


class Workshop:
    """The loaded extensions and the components created so far."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._known: dict[str, RegisteredComponent] = {}
        self._params: dict[tuple[str, str], Params] = {}
        self._components: dict[int, Any] = {}

    def answer(self, what: str, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """("value", value), ("invalid", mistakes) or ("error", reason). No exception of a component gets out."""
        try:
            return "value", getattr(self, f"_{what}")(*arguments)
        except ValidationError as error:
            if what != "validate":
                return "error", describe(error)
            return "invalid", [_mistake(dict(detail)) for detail in error.errors(include_url=False)]
        except BaseException as error:  # including SystemExit: a component must not end a shared process
            return "error", describe(error)

    def _load(self, name: str, value: str) -> tuple[list[str], list[str]]:
        """Lets an entry point add its components and flags, all or none; returns their descriptions."""
        registry = Registry()
        for known in self._known.values():
            registry.admit(known.role, known.component, known.name)
        EntryPoint(name, value, ENTRY_POINTS).load()(registry)
        new = {entry.name: entry for entry in registry if entry.name not in self._known}
        descriptions = [describe_component(entry).model_dump_json(by_alias=False) for entry in new.values()]
        flags = [one.model_dump_json() for one in described_flags(registry.flag_files())]
        self._known |= new
        return descriptions, flags

    def _validate(self, use: str, recipe: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The validated parameters of a recipe, by name and by key, as JSON values."""
        params = self._made(use, recipe)
        return params.model_dump(mode="json"), params.model_dump(mode="json", by_alias=True)

    def _offered(self, use: str, offer: str, recipe: str, context: PipelineContext | None) -> Any:
        """The answer of a hook of the class for parameters: `check` yields paths and messages, the others one value."""
        component, params = self._known[use].component, self._made(use, recipe)
        if offer == CHECK.name and context is not None and (checking := CHECK.of(component)):
            return [(tuple(path), str(message)) for path, message in checking.check(params, context)]
        if offer == SCALE.name and (scaling := SCALE.of(component)):
            return scaling.scale(params)
        if offer == WEIGHS_INTENT.name and (weighing := WEIGHS_INTENT.of(component)):
            return weighing.weighs_intent(params)
        raise ValueError(f"'{use}' offers no '{offer}'")

    def _call(self, use: str, recipe: str, number: int, method: str, arguments: Sequence[Any]) -> Any:
        """The answer of a component, which may use the store. Deadlines are converted to this process's clock."""
        component = self._components.pop(number, None)
        if component is None:
            component = self._known[use].component(self._made(use, recipe))
        self._components[number] = component  # most recently used is last
        for forgotten in list(self._components)[:-KEPT_COMPONENTS]:
            del self._components[forgotten]
        line = StoreLink(self._ask)
        try:
            return getattr(component, method)(*(_here(argument, line) for argument in arguments))
        finally:
            line.close()

    def _made(self, use: str, recipe: str) -> Params:
        """The parameters of a recipe: the values in the file, and the pipeline context in which they were settled."""
        if (use, recipe) not in self._params:
            given, context = unpack(recipe.encode(), b"", writable=True)
            entry = self._known[use]
            params = entry.params.model_validate(given)
            if context is not None and (settling := SETTLED.of(entry.component)):
                params = settling.settled(params, context)
            if len(self._params) >= KEPT_PARAMETERS:
                self._params.clear()
            self._params[use, recipe] = params
        return self._params[use, recipe]


def _here(argument: Any, line: StoreLink) -> Any:
    if isinstance(argument, Handle):
        return make_proxy(line, argument)
    if isinstance(argument, Query) and argument.deadline_ns is not None:
        return replace(argument, deadline_ns=query_ns() + argument.deadline_ns)
    return argument


def _mistake(detail: dict[str, Any]) -> tuple[Any, ...]:
    found = detail.get("input")
    shown = found if found is None or type(found) in (bool, int, float, str) else ()  # messages show only scalars
    return tuple(detail["loc"]), str(detail["type"]), str(detail["msg"]), shown
