"""Whether a file may be a store, told without SQLite: a server looks before it loads anything (feature T27)."""

from __future__ import annotations

import os
from pathlib import Path

from config.errors import SpeckitError
from config.settings import FOLDER

IGNORED = """\
# What speckit-memory keeps here is made from your files: leave it out of version control.
*
# These are written by people.
!.gitignore
!config.yaml
!flags.yaml
!pipeline.yaml
"""
"""What the folder of the stores tells Git. Whatever is added to it later is left out without a further line."""

_HEADER = b"SQLite format 3\0"


def require_file(path: Path, create: bool) -> None:
    """Refuses what is not a store by looking at the file alone, so that no foreign file is ever touched.

    Makes the folder of a new file if `create` allows one. Raises E010, E011, E014, E020 and E024.
    """
    if path.is_dir():
        raise SpeckitError("E014", f"{path} is a folder, not a file")
    if not path.exists():
        if not create:
            raise SpeckitError("E010", f"there is no store at {path}", actions=("run `speckit-memory index PATH`",))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SpeckitError("E020", f"the folder {path.parent} could not be created: {error.strerror}") from error
        return
    if not os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
        raise SpeckitError("E011", f"{path} may not be read")
    if not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise SpeckitError("E020", f"{path} may only be read", actions=("make the file and its folder writable",))
    with path.open("rb") as file:
        start = file.read(len(_HEADER))
    if start != _HEADER and (start or not create):
        raise SpeckitError("E024", f"{path} is not a SQLite file" if start else f"{path} is empty")


def keep_out_of_git(folder: Path) -> bool:
    """Gives a folder `.speckit` a `.gitignore` unless it has one; returns whether it was written. Raises E020."""
    if folder.name != FOLDER:
        return False
    try:
        with (folder / ".gitignore").open("x", encoding="utf-8") as file:
            file.write(IGNORED)
    except FileExistsError:
        return False
    except OSError as error:
        raise SpeckitError("E020", f"{folder / '.gitignore'} could not be written: {error.strerror}") from error
    return True
