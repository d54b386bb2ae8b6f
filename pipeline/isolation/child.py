"""The process of isolated extensions: loads and describes them and runs their components, one request at a time.

The server starts it with a socket and its own import path. It ends when the socket is closed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import EntryPoint
from socket import socket
from typing import Any

from pydantic import ValidationError

from speckit_memory.pipeline.isolation.codec import Handle, unpack
from speckit_memory.pipeline.isolation.descriptions import describe_component, described_flags
from speckit_memory.pipeline.isolation.limits import (
    ANSWER_ARRAYS,
    ANSWER_DOCUMENT,
    KEPT_COMPONENTS,
    KEPT_PARAMETERS,
    LOST,
    ORPHAN_SECONDS,
    STORE_ARRAYS,
    STORE_DOCUMENT,
)
from speckit_memory.pipeline.isolation.remote_store import Ask, StoreLink, make_proxy
from speckit_memory.pipeline.isolation.wire import MEGABYTE, ArrayWire, EndedError, GarbledError
from speckit_memory.pipeline.model.columns import Query
from speckit_memory.pipeline.model.describing import describe
from speckit_memory.pipeline.process.clock import query_ns
from speckit_memory.pipeline.process.python_process import bound_memory, expect_within
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


def main(descriptor: int, memory_mb: int) -> None:
    """Serves requests until the server is gone; does not return."""
    bound_memory(memory_mb << 20, for_good=True)
    end = socket(fileno=descriptor)
    end.set_inheritable(False)
    os.register_at_fork(after_in_child=end.detach)  # a process forked by a component must not use the socket
    with suppress(EndedError, GarbledError):
        _serve(ArrayWire(end, STORE_DOCUMENT, STORE_ARRAYS))
    os._exit(LOST)  # threads of components must not keep the process alive


def _serve(wire: ArrayWire) -> None:
    # imported after the memory limit is set: these modules count towards it
    from speckit_memory.pipeline.isolation.codec import UnsendableError, pack, unpack

    def for_ever() -> float:
        return 1e6

    def asked(number: int, name: str, arguments: Sequence[Any], released: Sequence[int]) -> tuple[Any, ...]:
        left, _ = signal.setitimer(signal.ITIMER_REAL, 0)  # pause the timer: waiting for the store does not count
        wire.send(*pack(("store", number, name, tuple(arguments), tuple(released))), for_ever)
        found: tuple[Any, ...] = unpack(*wire.receive(for_ever), writable=True)
        signal.setitimer(signal.ITIMER_REAL, left)
        return found

    workshop = Workshop(asked)
    while True:
        # One request at a time; the server gives each a time limit.
        seconds, what, *arguments = unpack(*wire.receive(for_ever), writable=True)
        expect_within(seconds + ORPHAN_SECONDS)  # the process ends by itself if the server is gone
        answer = workshop.answer(what, arguments)
        try:
            document, arrays = pack(answer)
            if len(document) > ANSWER_DOCUMENT or len(arrays) > ANSWER_ARRAYS:
                message = f"its answer is longer than {(ANSWER_DOCUMENT + ANSWER_ARRAYS) // MEGABYTE} MB"
                document, arrays = pack(("error", message))
        except (UnsendableError, MemoryError) as error:
            message = str(error) or type(error).__name__
            document, arrays = pack(("error", f"its answer cannot be sent between processes: {message}"))
        # before the answer: output printed during a call must be attributed to that call
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # components replace and close them
                stream.flush()
        wire.send(document, arrays, for_ever)
        expect_within(None)
