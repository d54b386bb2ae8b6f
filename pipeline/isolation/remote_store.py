"""The store for an isolated component: the requests of `pipeline.ports`, sent over the wire and answered here.

A component may make the requests that the ports declare; all others are rejected. Objects stay in the server.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Signature, isfunction, signature
from threading import Lock
from typing import Any, get_type_hints
from weakref import finalize

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.codes import CODES
from speckit_memory.pipeline import ports
from speckit_memory.pipeline.isolation.codec import Handle
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.process.clock import query_ns

DEADLINE = "deadline_ns"
"""The parameter that holds a clock reading, which is only valid in its own process."""


@dataclass(frozen=True, slots=True)
class Member:
    """One method or property of a port. `returns` names the port of the result, "" if the result is a value."""

    name: str
    is_property: bool
    signature: Signature | None
    returns: str

    @property
    def deadline(self) -> int | None:
        """The index of the argument that is the deadline, None if there is none."""
        names = list(self.signature.parameters)[1:] if self.signature else []
        return names.index(DEADLINE) if DEADLINE in names else None


def _members(protocol: type) -> Mapping[str, Member]:
    members = {}
    for name, member in vars(protocol).items():
        function = member.fget if isinstance(member, property) else member
        if name.startswith("_") or not isfunction(function):
            continue
        answer: Any = get_type_hints(function).get("return")
        returns = answer.__name__ if answer in _PROTOCOLS else ""
        members[name] = Member(name, isinstance(member, property), signature(function), returns)
    return members


_PROTOCOLS = frozenset(port for port in vars(ports).values() if getattr(port, "_is_protocol", False))
PORTS: Mapping[str, Mapping[str, Member]] = {protocol.__name__: _members(protocol) for protocol in _PROTOCOLS}
"""Members by port and name."""
PARTS: Mapping[str, Handle] = {
    name: Handle(member.returns, number)
    for number, (name, member) in enumerate(sorted(PORTS["Store"].items()), start=1)
}
"""The parts of every store, with fixed numbers that need no request."""

MOST_HANDLES = 256
"""Maximum number of scopes, indexes and bags of words held at once; each is as large as the store."""


class StoreServer:
    """Answers the requests of one call. A component receives numbers instead of scopes, indexes and bags of words."""

    def __init__(self, store: Store | None) -> None:
        parts = {} if store is None else PARTS
        self._objects: dict[int, tuple[str, Any]] = {
            part.number: (part.kind, getattr(store, name)) for name, part in parts.items()
        }
        self._last = len(PARTS)

    def answer(self, holder: Any, name: Any, arguments: Any, released: Any) -> tuple[Any, ...]:
        """Answers one request of the component; errors of the store are passed on to it.

        Args:
            holder: Number of the object that is asked.
            name: Name of its method or property.
            arguments: Arguments of the method.
            released: Numbers of objects that the component no longer uses.

        Returns:
            ("value", value) or ("error", class, code, message).
        """
        try:
            for number in released:
                if number > len(PARTS):  # the parts of the store stay
                    self._objects.pop(number, None)
            return "value", self._asked(holder, name, arguments)
        except SpeckitError as error:
            return "error", "SpeckitError", error.code, error.problems[0].message
        except Exception as error:  # passed on to the component, as if the store were in its process
            return "error", type(error).__name__, "", str(error)

    def _asked(self, number: Any, name: Any, arguments: Any) -> Any:
        kind, holder = self._objects[number]
        member = PORTS[kind].get(name)
        if member is None:
            raise AttributeError(f"{kind} has no '{name}'")
        given = [self._objects[one.number][1] if isinstance(one, Handle) else one for one in arguments]
        if member.deadline is not None and given[member.deadline] is not None:
            given[member.deadline] += query_ns()
        found = getattr(holder, name) if member.is_property else getattr(holder, name)(*given)
        return self._handle(member.returns, found) if member.returns else found

    def _handle(self, kind: str, found: Any) -> Handle:
        if len(self._objects) > MOST_HANDLES:
            raise MemoryError(f"more than {MOST_HANDLES} scopes, indexes and bags of words are held at once")
        self._last += 1
        self._objects[self._last] = kind, found
        return Handle(kind, self._last)


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
