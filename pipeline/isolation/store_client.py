"""The store as an isolated component sees it: the ports of `pipeline.ports`, each request sent over the wire."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any
from weakref import finalize

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.codes import CODES
from speckit_memory.pipeline.isolation.codec import Handle
from speckit_memory.pipeline.isolation.port_table import PARTS, PORTS, Member
from speckit_memory.pipeline.process.clock import query_ns

Ask = Callable[[int, str, Sequence[Any], Sequence[int]], tuple[Any, ...]]
"""Sends a request (object number, name, arguments, released numbers) and returns the answer of `StoreServer`."""


class StoreLink:
    """The connection to the store during one call; closed afterwards. Threads of a component take turns."""

    def __init__(self, ask: Ask) -> None:
        self._ask: Ask | None = ask
        self._turn = Lock()
        self._released: list[int] = []

    def let_go(self, number: int) -> None:
        """Marks an object as released; the next request reports it. May be called at any time, from any thread."""
        self._released.append(number)

    def asked(self, number: int, name: str, arguments: Sequence[Any]) -> Any:
        """The answer. Raises the exception that the request raised at the store, and RuntimeError after the call."""
        with self._turn:
            if self._ask is None:
                raise RuntimeError("the store may only be used during the call that passed it")
            released, self._released = self._released, []
            state, *answer = self._ask(number, name, arguments, released)
        if state == "value":
            (value,) = answer
            return make_proxy(self, value) if isinstance(value, Handle) else value
        kind, code, message = answer
        if code in CODES:
            raise SpeckitError(code, message)
        known = getattr(builtins, kind, RuntimeError)
        raise (known if isinstance(known, type) and issubclass(known, Exception) else RuntimeError)(message)

    def close(self) -> None:
        """Ends the connection when the call is over."""
        with self._turn:
            self._ask = None


_KEPT = ("TermIndex",)
"""Ports whose objects are cached: they are requested repeatedly, and there are few of them."""


class _Port:
    """An object that stays in the server's process. Properties are read once: the store does not change."""

    def __init__(self, line: StoreLink, number: int) -> None:
        self._line, self._number = line, number
        self._known: dict[Any, Any] = {}
        finalize(self, line.let_go, number).atexit = False


def _method(member: Member) -> Callable[..., Any]:
    assert member.signature is not None
    # The signature of the port checks and completes the arguments here, not in the server.
    form, deadline = member.signature, member.deadline

    def ask(self: _Port, *positional: Any, **named: Any) -> Any:
        if member.returns in _KEPT and (known := self._known.get((positional, *named.items()))):
            return known
        bound = form.bind(self, *positional, **named)
        bound.apply_defaults()
        given: list[Any] = [Handle("", one._number) if isinstance(one, _Port) else one for one in bound.args[1:]]
        if deadline is not None and given[deadline] is not None:
            given[deadline] -= query_ns()
        found = self._line.asked(self._number, member.name, given)
        if member.returns in _KEPT:
            self._known[positional, *named.items()] = found
        return found

    return ask


def _property(member: Member) -> property:
    def ask(self: _Port) -> Any:
        if member.name not in self._known:
            part = make_proxy(self._line, PARTS[member.name]) if member.returns else None
            self._known[member.name] = part or self._line.asked(self._number, member.name, ())
        return self._known[member.name]

    return property(ask)


_CLASSES = {
    port: type(
        port, (_Port,), {name: _property(one) if one.is_property else _method(one) for name, one in members.items()}
    )
    for port, members in PORTS.items()
}


def make_proxy(line: StoreLink, handle: Handle) -> Any:
    """The proxy in this process of an object in the server's process."""
    return _CLASSES[handle.kind](line, handle.number)
