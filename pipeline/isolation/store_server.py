"""The store's side of an isolated component's requests: answers those of the ports; objects stay here."""

from __future__ import annotations

from typing import Any

from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.isolation.codec import Handle
from speckit_memory.pipeline.isolation.port_table import PARTS, PORTS
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.process.clock import query_ns

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
