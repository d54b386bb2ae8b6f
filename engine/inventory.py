"""What there is, for who offers it by name: the keys of all memories, and whether any was written or deleted since."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from speckit_memory.engine.assembly import OpenStore
from speckit_memory.engine.following import Following
from speckit_memory.errors import NotFoundError
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.tables import changes


@dataclass(frozen=True, slots=True)
class Since:
    """How a store stands against an earlier look at it. `last` is the number of its last change.

    `written` is true where documents came, went or changed, whoever did that, and where nobody can tell any more.
    """

    last: int
    written: bool


class Inventory(ABC):
    """The operations that tell of all memories without reading them."""

    @property
    @abstractmethod
    def _followed(self) -> Following:
        """The open store."""

    def keys(self) -> list[str]:
        """The keys of all memories, in order."""
        return self._followed.run(lambda opened: reader.keys(opened.database.reader()))

    def since(self, last: int | None) -> Since:
        """What came of the store after its change number `last`, by any process; None asks for the number alone. Use of
        a memory is no change of it."""
        now = self._followed.run(lambda opened: opened.database.latest())
        if last is None or now == last:
            return Since(now, False)
        found = self._followed.run(lambda opened: changes.content_since(opened.database.reader(), last))
        return Since(now, True) if found is None else Since(found[0], any(kind in _WRITTEN for _, kind in found[1]))

    def states(self, names: Iterable[int | str]) -> dict[int | str, str]:
        """A mark of what each memory says, by the id or key that was asked; one that is not there has none.

        The mark is another one after its document, its key or its title changed.
        """
        return {name: mark for name in dict.fromkeys(names) if (mark := self._state(name))}

    def _state(self, name: int | str) -> str:
        def mark(opened: OpenStore) -> str:
            try:
                found = reader.get_memory(opened.database.reader(), name)
            except NotFoundError:
                return ""
            return f"{found.id}:{found.key}:{found.content_hash}:{found.title}"

        return self._followed.run(mark)


_WRITTEN = ("put", "delete")
