"""Assigns paths in an export to memories, for keys of any form."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from pathlib import PurePosixPath

TEXTS = "memories"
LEARNED = "learned"
MANIFEST = "speckit-export.json"
STORE = "store.json"
"""The file for data that belongs to no single memory."""
IGNORE = ".speckitignore"
"""Keeps index runs from treating an export inside a workspace as documents of it."""
OTHER = "other-names"
"""The folder of memories whose keys are invalid or ambiguous as file names."""

LONGEST_PART = 200
"""Bytes of a name; file systems allow 255, and longer names are derived from it."""
LONGEST_PATH = 1000
_UNUSABLE = re.compile(r'[\x00-\x1f\x7f-\x9f\\:*?"<>|\ud800-\udfff]')
"""Characters that are invalid in file names on some system."""


def places(memories: Iterable[tuple[str, bool]]) -> dict[str, str]:
    """The path of each text below `TEXTS` by key, given keys and whether each is that of a file.

    A file's path is its key. If case-insensitive file systems would confuse two keys, the later one goes to `OTHER`.
    The order of the input does not matter.
    """
    found: dict[str, str] = {}
    names: set[str] = set()
    folders: set[str] = set()
    # Files first: they keep their paths, other memories make way.
    for key, is_file in sorted(memories, key=lambda each: (not each[1], each[0])):
        suffix = PurePosixPath(key).suffix if is_file else ".md"
        path = key if is_file or key.lower().endswith(".md") else f"{key}.md"
        above = {str(parent).casefold() for parent in PurePosixPath(path).parents}
        if not usable(path) or path.casefold() in names | folders or above & names or path.startswith(f"{OTHER}/"):
            plain = suffix if usable(f"x{suffix}") else ".md"
            # The hash depends on the key alone, so that repeated exports use the same path.
            path = f"{OTHER}/{sha256(key.encode()).hexdigest()[:32]}{plain}"
            above = {OTHER}
        names.add(path.casefold())
        folders |= above
        found[key] = path
    return found


def usable(path: str) -> bool:
    """Whether a relative path is valid on every system and stays inside the folder."""
    parts = path.split("/")
    return (
        not _UNUSABLE.search(path)
        and len(path.encode()) <= LONGEST_PATH
        and all(part not in ("", ".", "..") and len(part.encode()) <= LONGEST_PART for part in parts)
        and not any(part.endswith((".", " ")) for part in parts)
    )


def record_of(path: str) -> str:
    """The path of the learned data of the memory whose text has this path, relative to the export."""
    return f"{LEARNED}/{path}.json"
