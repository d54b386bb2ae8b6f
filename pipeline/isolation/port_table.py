"""The requests that a component may make to the store, derived from `pipeline.ports`; all others are rejected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import Signature, isfunction, signature
from typing import Any, get_type_hints

from speckit_memory.pipeline import ports
from speckit_memory.pipeline.isolation.codec import Handle

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


_PROTOCOLS = frozenset(
    getattr(ports, name) for name in ports.__all__ if getattr(getattr(ports, name), "_is_protocol", False)
)
PORTS: Mapping[str, Mapping[str, Member]] = {protocol.__name__: _members(protocol) for protocol in _PROTOCOLS}
"""Members by port and name."""
PARTS: Mapping[str, Handle] = {
    name: Handle(member.returns, number)
    for number, (name, member) in enumerate(sorted(PORTS["Store"].items()), start=1)
}
"""The parts of every store, with fixed numbers that need no request."""
