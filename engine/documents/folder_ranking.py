"""Ranks the folders of a store by size, recency or importance (feature T6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from speckit_memory.engine.answers.request import FolderOrder
from speckit_memory.engine.documents.path_patterns import matching
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.memory.lifecycle.folder_worth import FolderWeights, FolderWorth, archive_multiplier, folder_worth
from speckit_memory.memory.store.reading import reader
from speckit_memory.pipeline.running.view import StoreView

RANKINGS: tuple[FolderOrder, ...] = get_args(FolderOrder)


@dataclass(frozen=True, slots=True)
class RankedFolder:
    """A folder, its number of memories, the last change (None if unknown), and its score if requested."""

    folder: str
    memories: int
    updated: float | None
    worth: FolderWorth | None


@dataclass(frozen=True, slots=True)
class FolderRanking:
    """The folders, best first, and counts of those left out.

    `excluded`: folders that match a pattern; `archives`: folders named as archives; `put_away`: archived memories.
    Absent memories are counted nowhere.
    """

    folders: tuple[RankedFolder, ...]
    excluded: int
    archives: int
    put_away: int


def rank_folders(
    opened: OpenStore, ranking: FolderOrder, exclude: Sequence[str], *, scores: bool, archived: bool, now: float
) -> FolderRanking:
    """Ranks folders; ties are broken by number of memories, then by name.

    Args:
        opened: The store.
        ranking: "count", or a part of the folder score (feature F16): "recency", "importance" or "composite".
        exclude: Regular expressions; matching folders are left out.
        scores: Whether to compute scores for the ranking "count" too.
        archived: Whether to include archive folders and archived memories.
        now: Epoch seconds.

    Raises:
        SpeckitError: E030 for another ranking; also as `path_patterns.matching`.
    """
    if ranking not in RANKINGS:
        raise SpeckitError("E030", f"there is no ranking '{ranking}'; {nearest(ranking, RANKINGS)}")
    members: defaultdict[str, list[int]] = defaultdict(list)
    updated: dict[str, float] = {}
    put_away = 0
    for memory in reader.places(opened.database.reader()):
        if memory.put_away and not archived:
            put_away += 1
            continue
        members[memory.folder].append(memory.id)
        if memory.updated_at is not None:
            updated[memory.folder] = max(memory.updated_at, updated.get(memory.folder, memory.updated_at))
    excluded = matching(exclude, sorted(members))
    archives = {folder for folder in members if archive_multiplier(folder) < 1 and not archived} - excluded
    facts = StoreView(opened.read_model.current()).attributes if scores or ranking != "count" else None
    folders = [
        RankedFolder(
            folder,
            len(ids),
            updated.get(folder),
            folder_worth(folder, np.array(ids, np.int64), facts, now, FolderWeights()) if facts else None,
        )
        for folder, ids in members.items()
        if folder not in excluded and folder not in archives
    ]
    folders.sort(key=lambda one: (-_value(one, ranking), -one.memories, one.folder))
    return FolderRanking(tuple(folders), len(excluded), len(archives), put_away)


def _value(folder: RankedFolder, ranking: FolderOrder) -> float:
    if folder.worth is None:
        return folder.memories
    return {
        "count": folder.memories,
        "recency": folder.worth.recency,
        "importance": folder.worth.importance,
        "composite": folder.worth.score,
    }[ranking]
