"""The sources of a store: files and folders that were indexed by name.

A source `overrules` when it is hidden or ignored and was only indexed because it was named: a run over its parent
folder would not find it. Sources are stored per root, the folder that keys are relative to. A root is stored relative
to the store's folder, so that a workspace that is moved or renamed keeps its sources.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from speckit_memory.errors.names import displayable_name, original_name
from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows


def root_name(root: Path, store: Path) -> str:
    """The form in which the store at this path keeps a root; bytes that are not UTF-8 are escaped as `\\xff`."""
    return displayable_name(Path(os.path.relpath(root.resolve(), store.parent.resolve())).as_posix())


def source_paths(connection: Connection, root: str) -> dict[str, bool]:
    """The keys of the sources of a root, in order, and whether each overrules; "" is the root itself."""
    found = rows(connection, "SELECT path, overrules FROM source_paths WHERE root = ? ORDER BY path", (root,))
    return {path: bool(overrules) for path, overrules in found}


def other_sources(connection: Connection, root: str) -> list[tuple[str, str]]:
    """The sources of the store's other roots, as (root, key)."""
    others = rows(connection, "SELECT root, path FROM source_paths WHERE root <> ? ORDER BY root, path", (root,))
    return [(original_name(other), path) for other, path in others]


def remember(txn: Transaction, root: str, sources: Mapping[str, bool]) -> None:
    """Adds sources to a root, by key, with whether each overrules."""
    txn.connection.executemany(
        "INSERT OR REPLACE INTO source_paths (root, path, overrules) VALUES (?, ?, ?)",
        [(root, key, int(overrules)) for key, overrules in sources.items()],
    )


def forget(txn: Transaction, root: str, keys: Iterable[str]) -> None:
    """Removes sources from a root; their memories stay."""
    txn.connection.executemany("DELETE FROM source_paths WHERE root = ? AND path = ?", [(root, key) for key in keys])
