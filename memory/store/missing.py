"""The errors for a memory that is not in the store, and for a folder without any."""

from __future__ import annotations

from speckit_memory.errors import NotFoundError


class MissingMemoryError(NotFoundError):
    """E080: no memory has this id or key."""

    def __init__(self, name: int | str) -> None:
        super().__init__("E080", f"there is no memory with the {'id' if isinstance(name, int) else 'key'} {name!r}")
        self.name = name


class EmptyFolderError(NotFoundError):
    """E080: no memory is in this folder or below."""

    def __init__(self, folder: str) -> None:
        super().__init__(
            "E080",
            f"no memory is in the folder '{folder}'",
            hint="A folder is named from that of the workspace on, as the keys of its memories begin.",
            actions=("`memory_stats` names the folders", "`speckit-memory stats` names the folders"),
        )
