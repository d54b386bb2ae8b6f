"""What there is, for who offers it by name: the keys of all memories, and whether any was written or deleted since."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from speckit_memory.engine.answers.request import FolderOrder, normalised_folder, texts
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.session.reopening import Following
from speckit_memory.errors import NotFoundError
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.memories import absences
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.pipeline.ports import Passage

if TYPE_CHECKING:
    from speckit_memory.engine.documents.alias_report import AliasReport
    from speckit_memory.engine.documents.folder_ranking import FolderRanking


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

    def passages(self, name: int | str, limit: int = -1) -> list[Passage]:
        """The passages of a memory, by id or key, in document order: the first `limit`, or all. Raises E080."""

        def found(opened: OpenStore) -> list[Passage]:
            connection = opened.database.reader()
            return reader.passages_of(connection, reader.get_memory(connection, name).id, limit)

        return self._followed.run(found)

    def folders(
        self,
        ranking: FolderOrder = "count",
        *,
        exclude: Sequence[str] = (),
        scores: bool = False,
        archived: bool = False,
        now: float | None = None,
    ) -> FolderRanking:
        """The folders that hold memories, best first by `ranking`: count, recency, importance or composite (F16).

        Left out, and counted, are those in whose path a regular expression of `exclude` is found (at most 20 of 200
        characters) and, unless `archived`, folders such as z_archive and scratch and memories that were put away.
        `scores` gives every folder its score with the parts; `now` is in epoch seconds. Raises E030 and E032 for
        patterns and rankings that cannot be used.
        """
        from speckit_memory.engine.documents.folder_ranking import ranked  # a search has no use for it

        patterns = texts(exclude, "exclude")
        at = time.time() if now is None else now
        return self._followed.run(
            lambda opened: ranked(opened, ranking, patterns, scores=scores, archived=archived, now=at)
        )

    def aliases(self, folder: str = "", limit: int = 20) -> AliasReport:
        """The documents that stand in several folders, as memories of equal content or as links to one file: those with
        a path in this folder or below it, and at most `limit` (1 to 200) of them."""
        from speckit_memory.engine.documents.alias_report import alias_report  # a search has no use for it

        below = normalised_folder(folder)
        return self._followed.run(lambda opened: alias_report(opened, below, limit))

    def since(self, last: int | None) -> Since:
        """What came of the store after its change number `last`, by any process; None asks for the number alone. Use of
        a memory is no change of it."""

        def came(opened: OpenStore) -> Since:
            now = opened.database.latest()
            if last is None or now == last:
                return Since(now, False)
            connection = opened.database.reader()
            found = changes.content_since(connection, last)
            if found is None:
                return Since(now, True)
            number, log = found
            written = any(kind in _WRITTEN for _, kind in log)
            return Since(number, written or int(get_meta(connection, absences.CHANGED) or 0) > last)

        return self._followed.run(came)

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
            if absences.since(opened.database.reader(), found.id) is not None:
                return ""
            return f"{found.id}:{found.key}:{found.content_hash}:{found.title}"

        return self._followed.run(mark)


_WRITTEN = ("put", "delete")
