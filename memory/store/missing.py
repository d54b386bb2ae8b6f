"""The error for a memory that is not in the store, with the name under which it was asked for."""

from __future__ import annotations

from speckit_memory.errors import NotFoundError


class MissingMemoryError(NotFoundError):
    """E080: no memory has this id or key."""

    def __init__(self, name: int | str) -> None:
        super().__init__("E080", f"there is no memory with the {'id' if isinstance(name, int) else 'key'} {name!r}")
        self.name = name
