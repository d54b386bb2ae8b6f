"""Lists the contents of a store: keys, folders, aliases, and changes since an earlier state."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from speckit_memory.engine.answers.request import FolderOrder, normalised_folder, texts
from speckit_memory.engine.documents.folder_ranking import FolderRanking, rank_folders
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.session.store_session import StoreSession
from speckit_memory.errors import NotFoundError, SpeckitError
from speckit_memory.memory.intake import aliases
from speckit_memory.memory.scanning.scanner import below
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.memories import absences
from speckit_memory.memory.store.tables.meta import get_meta
from speckit_memory.pipeline.ports import Passage

MOST_GROUPS = 200


@dataclass(frozen=True, slots=True)
class AliasGroup:
    """Keys in several folders with the same content.

    `content`: each key is a memory with equal text. `link`: one key is a memory, the others are links to its file.
    """

    kind: Literal["content", "link"]
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AliasReport:
    """The first groups, equal contents before links, each kind sorted by key; and the total number of groups."""

    groups: tuple[AliasGroup, ...]
    total: int


def alias_report(opened: OpenStore, folder: str, limit: int) -> AliasReport:
    """The groups with a key in or below a folder ("" for all). Raises E032 for a limit outside 1 to 200."""
    if not 1 <= limit <= MOST_GROUPS:
        raise SpeckitError("E032", f"the limit {limit} is not from 1 to {MOST_GROUPS}")
    connection = opened.database.reader()
    found = [
        *(AliasGroup("content", keys) for keys in sorted(reader.equal_in_several_folders(connection))),
        *(AliasGroup("link", link) for link in sorted(aliases.named_links(connection)) if _folders(link) > 1),
    ]
    groups = [group for group in found if any(below(key, folder) for key in group.keys)]
    return AliasReport(tuple(groups[:limit]), len(groups))


def _folders(keys: Sequence[str]) -> int:
    return len({key.rpartition("/")[0] for key in keys})


@dataclass(frozen=True, slots=True)
class StoreDelta:
    """The changes since an earlier state. `last` is the present change number.

    `written` is true if documents were added, deleted or changed by any process, or if the log no longer reaches back.
    """

    last: int
    written: bool


@dataclass(eq=False)
class InventoryService:
    """The operations that list memories without reading their texts."""

    session: StoreSession

    def keys(self) -> list[str]:
        """The keys of all memories, sorted."""
        return self.session.read(lambda opened: reader.keys(opened.database.reader()))

    def passages(self, name: int | str, limit: int = -1) -> list[Passage]:
        """The passages of a memory, by id or key, in document order: the first `limit`, or all. Raises E080."""

        def found(opened: OpenStore) -> list[Passage]:
            connection = opened.database.reader()
            return reader.passages_of(connection, reader.get_memory(connection, name).id, limit)

        return self.session.read(found)

    def stats(self) -> reader.StoreStatistics:
        """Counts of the store's contents."""
        return self.session.read(lambda opened: reader.statistics(opened.database.reader()))

    def folders(
        self,
        ranking: FolderOrder = "count",
        *,
        exclude: Sequence[str] = (),
        scores: bool = False,
        archived: bool = False,
        now: float | None = None,
    ) -> FolderRanking:
        """The folders that contain memories, best first (F16).

        Args:
            ranking: "count", "recency", "importance" or "composite".
            exclude: At most 20 regular expressions of at most 200 characters; folders with a matching path are left
                out.
            scores: Add every folder's score with its parts.
            archived: Include folders such as z_archive and scratch, and archived memories.
            now: Epoch seconds; default: the clock.

        Returns:
            The folders, and counts of those left out.

        Raises:
            SpeckitError: E030 and E032 for patterns and rankings that are not accepted.
        """
        patterns = texts(exclude, "exclude")
        at = time.time() if now is None else now
        return self.session.read(
            lambda opened: rank_folders(opened, ranking, patterns, scores=scores, archived=archived, now=at)
        )

    def aliases(self, folder: str = "", limit: int = 20) -> AliasReport:
        """Documents that appear in several folders, with equal content or as links to one file.

        At most `limit` (1 to 200) groups with a path in or below the folder.
        """
        below = normalised_folder(folder)
        return self.session.read(lambda opened: alias_report(opened, below, limit))

    def changes_since(self, last: int | None) -> StoreDelta:
        """The changes after change number `last` by any process; None asks for the present number. Usage does not
        count."""

        def came(opened: OpenStore) -> StoreDelta:
            now = opened.database.latest()
            if last is None or now == last:
                return StoreDelta(now, False)
            connection = opened.database.reader()
            found = changes.content_since(connection, last)
            if found is None:  # the log no longer reaches back to `last`
                return StoreDelta(now, True)
            number, log = found
            written = any(kind in _WRITTEN for _, kind in log)
            return StoreDelta(number, written or int(get_meta(connection, absences.CHANGED) or 0) > last)

        return self.session.read(came)

    def states(self, names: Iterable[int | str]) -> dict[int | str, str]:
        """A fingerprint of each memory that exists, by the given id or key.

        It changes with the document, the key and the title.
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

        return self.session.read(mark)


_WRITTEN = ("put", "delete")
