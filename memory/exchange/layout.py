"""Where the files of an export lie, whatever the keys of its memories are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from pathlib import PurePosixPath

TEXTS = "memories"
LEARNED = "learned"
MANIFEST = "speckit-export.json"
STORE = "store.json"
"""What belongs to no single memory."""
IGNORE = ".speckitignore"
"""Keeps index runs from taking an export that lies in a workspace for documents of it."""
OTHER = "other-names"
"""The folder of memories whose keys cannot be the names of files, or not of files beside the others."""

LONGEST_PART = 200
"""Bytes of a name; systems allow 255, and others are made of it."""
LONGEST_PATH = 1000
_UNUSABLE = re.compile(r'[\x00-\x1f\x7f-\x9f\\:*?"<>|\ud800-\udfff]')
"""What names cannot hold on one system or another."""


def places(memories: Iterable[tuple[str, bool]]) -> dict[str, str]:
    """By key the path of each text below `TEXTS`, given the keys and whether each is that of a file.

    A file lies at its key. Where systems that do not tell cases apart would take two for one, the later key lies among
    the others. It does not matter in which order they are given.
    """
    found: dict[str, str] = {}
    names: set[str] = set()
    folders: set[str] = set()
    for key, is_file in sorted(memories, key=lambda each: (not each[1], each[0])):
        suffix = PurePosixPath(key).suffix if is_file else ".md"
        path = key if is_file or key.lower().endswith(".md") else f"{key}.md"
        above = {str(parent).casefold() for parent in PurePosixPath(path).parents}
        if not usable(path) or path.casefold() in names | folders or above & names or path.startswith(f"{OTHER}/"):
            plain = suffix if usable(f"x{suffix}") else ".md"
            path = f"{OTHER}/{sha256(key.encode()).hexdigest()[:32]}{plain}"
            above = {OTHER}
        names.add(path.casefold())
        folders |= above
        found[key] = path
    return found


def usable(path: str) -> bool:
    """Whether a relative path can be that of a file on every system, and leads nowhere else."""
    parts = path.split("/")
    return (
        not _UNUSABLE.search(path)
        and len(path.encode()) <= LONGEST_PATH
        and all(part not in ("", ".", "..") and len(part.encode()) <= LONGEST_PART for part in parts)
        and not any(part.endswith((".", " ")) for part in parts)
    )


def record_of(path: str) -> str:
    """The path of what was learned of the memory whose text has this one, from the folder of the export."""
    return f"{LEARNED}/{path}.json"
