"""Facts and texts of the memories of the fake store, and the memories that a filter admits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.ports import Column, Filter, Ids, MemoryName, Passage, Scope
from speckit_memory.pipeline.testing.memories import Memory, MemoryTable


class FakeAttributes:
    """Implements `ports.Attributes`."""

    def __init__(self, table: MemoryTable) -> None:
        self._table = table

    def _of(self, id_: int) -> Memory:
        return self._table.memories[self._table.parent[int(id_)]]

    def parents(self, ids: Ids) -> Ids:
        """The memory of each id."""
        return np.array([self._table.parent[int(i)] for i in ids], np.int64)

    def number(self, name: str, ids: Ids) -> Column:
        """A number of each memory, NaN if it has none."""
        return np.array([self._of(i).numbers.get(name, np.nan) for i in ids], np.float64)

    def label(self, name: str, ids: Ids) -> NDArray[np.object_]:
        """A text of each memory, "" if it has none."""
        labels = [self._of(i).labels.get(name, getattr(self._of(i), name, "")) for i in ids]
        return np.array(labels, np.object_)

    def scope(self, wanted: Filter, now: float) -> FakeScope:
        """The memories that a filter admits."""

        def inside(folder: str, wanted: str) -> bool:
            return not wanted or folder == wanted or folder.startswith(wanted + "/")

        admitted = {
            m.id
            for m in self._table.memories.values()
            if m.tier != "deprecated"
            and not m.numbers.get("expires_at", np.inf) < now
            and inside(m.folder, wanted.folder)
            and (not wanted.folders or any(inside(m.folder, folder) for folder in wanted.folders))
            and wanted.tier in ("", m.tier)
            and wanted.context_type in ("", m.context_type)
            and (wanted.memories is None or m.id in wanted.memories)
        }
        return FakeScope(self._table, admitted)

    def neighbours(self, ids: Ids) -> tuple[Ids, Ids]:
        """The short notes of the same folder just before and just after each, by id; -1 for none."""
        stored = sorted(self._table.memories)

        def beside(id_: int, step: int) -> int:
            if id_ < 0:  # a hole of an index
                return -1
            memory = self._of(id_)
            at = stored.index(memory.id) + step
            other = self._table.memories[stored[at]] if 0 <= at < len(stored) else None
            if other is None or not memory.folder or other.folder != memory.folder:
                return -1
            short = all(m.numbers.get("characters", np.inf) < 600 for m in (memory, other))
            return other.id if short else -1

        return (
            np.array([beside(int(i), -1) for i in ids], np.int64),
            np.array([beside(int(i), 1) for i in ids], np.int64),
        )

    def oldest_first(self, scope: Scope) -> Ids:
        """The admitted memories by creation time."""
        ids = np.array(sorted(self._table.memories), np.int64)
        made = self.number("created_at", ids)
        ids = ids[np.argsort(made, kind="stable")][: int(np.isfinite(made).sum())]
        return ids[scope.admits(ids)]

    def of_tier(self, tier: str) -> Ids:
        """The memories of a tier."""
        return np.array(sorted(m.id for m in self._table.memories.values() if m.tier == tier), np.int64)

    def in_folder(self, folder: str) -> Ids:
        """The memories of a folder."""
        return np.array(sorted(m.id for m in self._table.memories.values() if m.folder == folder), np.int64)

    @property
    def count(self) -> int:
        """The number of memories."""
        return len(self._table.memories)


class FakeScope:
    """The memories that a filter admits, by id."""

    def __init__(self, table: MemoryTable, admitted: set[int]) -> None:
        self._table, self._admitted = table, admitted

    @property
    def size(self) -> int:
        """The number of admitted memories."""
        return len(self._admitted)

    @property
    def complete(self) -> bool:
        """Whether all memories are admitted."""
        return len(self._admitted) == len(self._table.memories)

    def admits(self, ids: Ids) -> NDArray[np.bool_]:
        """Which of these ids are admitted."""
        return np.array([self._table.parent.get(int(i)) in self._admitted for i in ids], np.bool_)


class FakePassages:
    """Implements `ports.Passages`."""

    def __init__(self, table: MemoryTable) -> None:
        self._table = table

    def prefetch(self, ids: Sequence[int], whole: Sequence[int], summed_up: Sequence[int]) -> None:
        """Nothing: all texts are in memory."""

    def passages(self, ids: Sequence[int]) -> list[Passage]:
        """The text of each id."""
        return [self._passage(int(i)) for i in ids]

    def _passage(self, id_: int) -> Passage:
        memory = self._table.memories[self._table.parent[id_]]
        at = memory.chunk_ids.index(id_) if id_ in memory.chunk_ids else 0
        return Passage(memory.chunk_ids[at], memory.id, memory.chunks[at], "", "", at + 1, at + 1)

    def of_memory(self, memory: int) -> list[Passage]:
        """The texts of a memory."""
        return self.passages(self._table.memories[memory].chunk_ids)

    def in_sections(self, names: Sequence[str]) -> list[Passage]:
        """The texts that open a section with such a name: `<!-- ANCHOR:name -->`."""
        everything = (self._passage(i) for memory in self._table.memories.values() for i in memory.chunk_ids)
        return [passage for passage in everything if any(f"ANCHOR:{name}" in passage.text for name in names)]

    def headed(self, slugs: Sequence[str], memories: Ids) -> list[Passage]:
        """The texts of these memories that hold the words of one of the slugs."""
        everything = (self._passage(i) for memory in memories.tolist() for i in self._table.memories[memory].chunk_ids)
        return [one for one in everything if any(slug.replace("-", " ") in one.text.casefold() for slug in slugs)]

    def names(self, patterns: Sequence[str]) -> list[MemoryName]:
        """The names of all memories; none has front matter."""
        return [MemoryName(one.id, one.labels.get("key", ""), one.title, "{}") for one in self._table.memories.values()]

    def summaries(self, memories: Sequence[int]) -> dict[int, Passage]:
        """Empty: no memory has a summary."""
        return {}

    def body(self, memory: int) -> str:
        """The texts of a memory as one."""
        return "\n\n".join(self._table.memories[memory].chunks)

    def bodies(self, memories: Sequence[int]) -> dict[int, str]:
        """The texts of each memory as one."""
        return {memory: self.body(memory) for memory in memories}
