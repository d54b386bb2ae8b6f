"""Errors for a memory that is not in the store, and for a folder without memories."""

from __future__ import annotations

from speckit_memory.errors import NotFoundError


class MissingMemoryError(NotFoundError):
    """E080: no memory has this id or key."""

    def __init__(self, name: int | str) -> None:
        super().__init__("E080", f"there is no memory with the {'id' if isinstance(name, int) else 'key'} {name!r}")
        self.name = name


class EmptyFolderError(NotFoundError):
    """E080: neither this folder nor its subfolders hold a memory."""

    def __init__(self, folder: str) -> None:
        super().__init__(
            "E080",
            f"no memory is in the folder '{folder}'",
            hint="Give the folder relative to the workspace root, as in the keys of its memories.",
            actions=("`memory_stats` names the folders", "`speckit-memory stats` names the folders"),
        )
