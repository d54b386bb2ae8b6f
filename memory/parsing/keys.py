"""Returns parts of keys as `PurePosixPath` does, without the cost of creating one (feature I4)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath


def folder_of(key: str) -> str:
    """Return the folder part of a key, "" if it has none."""
    if _is_plain(key):
        return key.rpartition("/")[0]
    folder = str(PurePosixPath(key).parent)
    return "" if folder == "." else folder


def with_folders(key: str) -> Iterator[str]:
    """Yield the key, then its parent folders from the nearest to "", the root."""
    while key:
        yield key
        key = key.rpartition("/")[0]
    yield ""


def without_suffix(key: str) -> str:
    """Return the key without the suffix of its last name. Raises ValueError for a key without a name."""
    if not _is_plain(key):
        return str(PurePosixPath(key).with_suffix(""))
    name = key.rpartition("/")[2]
    dot = name.rfind(".")
    return key[: dot - len(name)] if 0 < dot < len(name) - 1 else key


def _is_plain(key: str) -> bool:
    """Whether a path is already normalised: none of its names is empty or a single dot."""
    return "" not in (names := key.split("/")) and "." not in names
