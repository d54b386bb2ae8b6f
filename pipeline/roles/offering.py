"""Whether any installed distribution may have entry points of a group: asked before the search that takes long.

`importlib.metadata` reads and sorts the entry points of everything that is installed. Most environments have no
extension, and to see that a look at the files is enough, where they lie in plain folders.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder

INFORMATION = (".dist-info", ".egg-info")
"""How the names of folders end in which a distribution says what it offers."""
FILE = "entry_points.txt"


def may_be_offered(group: str) -> bool:
    """False only where no distribution can have such entry points; nothing is imported."""
    if any(hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path):
        return True
    if not all(isinstance(folder, str) for folder in sys.path):  # imports pass it over, the search does not
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
    except OSError:  # an archive among others, which may hold distributions
        return True


def _said(information: str) -> bytes:
    # most have no such file: of a hundred of them paths took longer than looking
    try:
        with open(f"{information}/{FILE}", "rb", buffering=0) as file:  # noqa: PTH123
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return b""  # it offers nothing
