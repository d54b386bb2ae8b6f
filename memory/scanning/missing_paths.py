"""Reports a path that does not exist and suggests a similar one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path

from speckit_memory.errors import Problem
from speckit_memory.errors.echo import abridge
from speckit_memory.errors.problems import closest
from speckit_memory.memory.parsing.keys import with_folders

MOST_NAMES = 1_000
"""Names of a folder to compare at most."""


def missing_path(typed: str, root: Path, known: Iterable[str] = ()) -> Problem:
    """Return E010 for a path below the root, given as typed or as a key; `known` are the keys of memories."""
    key = typed.replace("\\", "/").strip().strip("/")
    near = _on_disk(key, root) or _ending(key, known)
    perhaps = f"; did you mean '{abridge(near)}'?" if near else ""
    told = typed if typed == typed.strip() else f"'{typed}'"
    return Problem("E010", f"{told}: there is no such file or folder{perhaps}")


def _on_disk(key: str, root: Path) -> str:
    """Return the existing path with the most similar names, folder by folder; "" if a name has no similar one."""
    found: list[str] = []
    for part in key.split("/"):
        names = _names(root.joinpath(*found))
        near = part if part in names else closest(part, names)
        if not near:
            return ""
        found.append(near)
    return "/".join(found)


def _names(folder: Path) -> list[str]:
    """Return the names in a folder that are not hidden; none for a link, which may lead out of the workspace."""
    with suppress(OSError, ValueError):
        if not folder.is_symlink():
            with os.scandir(folder) as entries:
                shown = (entry.name for entry in entries if not entry.name.startswith("."))
                return sorted(islice(shown, MOST_NAMES))
    return []


def _ending(key: str, known: Iterable[str]) -> str:
    """Return the only folder with memories that ends with the key (`docs/storage` for `storage`), else ""."""
    folders = {place for each in known for place in with_folders(each) if key and place.endswith(f"/{key}")}
    return folders.pop() if len(folders) == 1 else ""
