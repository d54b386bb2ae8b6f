"""Quick test whether any installed distribution may have entry points of a group, before the slow full search.

`importlib.metadata` reads and sorts the entry points of everything that is installed. Most environments have no
extension, which a look at the files of plain folders is enough to see.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder

INFORMATION = (".dist-info", ".egg-info")
"""Suffixes of the metadata folders of distributions."""
FILE = "entry_points.txt"


def may_be_offered(group: str) -> bool:
    """False only if no distribution can have such entry points; imports nothing."""
    if any(hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path):
        return True
    if not all(isinstance(folder, str) for folder in sys.path):  # imports ignore such entries, the full search does not
        return True
    wanted = group.encode()
    return any(_holds(folder or ".", wanted) for folder in dict.fromkeys(sys.path))


def _holds(folder: str, wanted: bytes) -> bool:
    if folder.lower().endswith(".egg"):
        return True
    try:
        with os.scandir(folder) as entries:
            found = [entry.path for entry in entries if entry.name.lower().endswith(INFORMATION)]
        return any(wanted in _said(information) for information in found)
    except (FileNotFoundError, ValueError):
        return False
    except OSError:  # for example an archive, which may hold distributions
        return True


def _said(information: str) -> bytes:
    # most have no such file: for a hundred of them, creating path objects took longer than the reads
    try:
        with open(f"{information}/{FILE}", "rb", buffering=0) as file:  # noqa: PTH123
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return b""  # no entry points
