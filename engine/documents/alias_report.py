"""Reports documents that appear under paths of several folders (feature T7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.intake import aliases
from speckit_memory.memory.scanning.scanner import below
from speckit_memory.memory.store.reading import reader

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
