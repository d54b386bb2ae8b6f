"""The sources of one workspace in a store: the paths that were indexed by name, and the files of other roots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from speckit_memory.errors.names import displayable_name
from speckit_memory.memory.scanning.scanner import Scan, below
from speckit_memory.memory.store.file.connection import Connection, Database, Transaction
from speckit_memory.memory.store.tables.memories import source_paths


class WorkspaceSources:
    """Records the sources of a root in a store."""

    def __init__(self, database: Database, root: Path) -> None:
        self._store = database.path
        self._name = source_paths.root_name(root, database.path)

    def known(self, connection: Connection) -> dict[str, bool]:
        """Return the sources by key ("" is the root), and whether each overrules a pattern that excludes it."""
        return source_paths.source_paths(connection, self._name)

    def overruling(self, connection: Connection) -> list[str]:
        """Return the keys of the sources that are only included because they were named."""
        return [key for key, overrules in self.known(connection).items() if overrules]

    def remember(self, txn: Transaction, found: Scan) -> None:
        """Add the paths that a scan was given and that exist."""
        absent = {*found.missing, *found.hidden}
        named = {key: key in found.overruled for key in found.covered if key not in absent and _storable(key)}
        source_paths.remember(txn, self._name, named)

    def forget(self, txn: Transaction, keys: Iterable[str]) -> None:
        """Remove sources; their memories stay until the next scan."""
        source_paths.forget(txn, self._name, keys)

    def elsewhere(self, connection: Connection) -> Callable[[str], bool]:
        """Return a predicate: whether another root in this store has the file of a key in one of its sources."""
        others: defaultdict[Path, list[str]] = defaultdict(list)
        for root, path in source_paths.other_sources(connection, self._name):
            others[self._store.parent / root].append(path)
        return lambda key: any(
            any(below(key, folder) for folder in folders) and may_exist(root / key) for root, folders in others.items()
        )


def may_exist(path: Path) -> bool:
    """Whether a file exists or cannot be checked: only files known to be gone count as missing."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _storable(key: str) -> bool:
    return displayable_name(key) == key
