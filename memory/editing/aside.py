"""Moves the files of deleted memories aside, where they are not indexed, and back (features T9 and T11)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress
from os.path import lexists
from pathlib import Path, PurePosixPath

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.scanning import inside
from speckit_memory.memory.store.checkpoints import deletions


def move_aside(root: Path, keys: Sequence[str], aside: Path) -> list[str]:
    """Move the files with these keys below the root into a folder, under the same paths; returns the keys that existed.
    A link itself is moved, not its target.

    Raises E101, and E014 when a parent folder leads out of the root; every file is then back in its place.
    """
    moved: list[str] = []
    try:
        for key in keys:
            if lexists(root / key):
                _require_inside(root, key)
                _move(root / key, aside / key)
                moved.append(key)
    except (OSError, SpeckitError) as error:
        _put_back(moved, aside, root)
        if isinstance(error, SpeckitError):
            raise
        message = f"{key} cannot be moved aside: {inside.reason(error)}; nothing was deleted"
        raise SpeckitError("E101", message) from error
    return moved


def remove_emptied(root: Path, keys: Sequence[str], folder: str) -> None:
    """Remove the folders that contained these files, up to and including `folder`, if they are empty."""
    top = PurePosixPath(folder)
    held = {above for key in keys for above in PurePosixPath(key).parents if above.is_relative_to(top)}
    for each in sorted(held, key=lambda path: len(path.parts), reverse=True):
        with suppress(OSError):  # not empty, or a link
            (root / each).rmdir()


def lying_aside(aside: Path) -> list[str]:
    """The keys of the files in a folder, in order."""
    return sorted(
        Path(folder, name).relative_to(aside).as_posix() for folder, _, names in os.walk(aside) for name in names
    )


def move_back(root: Path, keys: Sequence[str], aside: Path) -> None:
    """Move files from the folder back to their places below the root, and remove the folder if it becomes empty.

    Raises E101, and E014 as `move_aside`; every file is then still aside. Files are never overwritten.
    """
    moved: list[str] = []
    try:
        for key in keys:
            _require_inside(root, key)
            if lexists(root / key):
                raise SpeckitError("E101", f"{key} cannot be moved back: a file of that name exists")
            _move(aside / key, root / key)
            moved.append(key)
    except (OSError, SpeckitError) as error:
        _put_back(moved, root, aside)
        if isinstance(error, SpeckitError):
            raise
        message = f"{key} cannot be moved back: {inside.reason(error)}"
        raise SpeckitError("E101", message) from error
    if not lying_aside(aside):
        shutil.rmtree(aside, ignore_errors=True)


def kept_by(store: Path, keys: Collection[str]) -> tuple[str, ...]:
    """The names of the deletions that moved files with these keys aside, latest first."""
    wanted = frozenset(keys)
    return tuple(gone.name for gone in deletions.deletions(store) if not wanted.isdisjoint(lying_aside(gone.files)))


def _require_inside(root: Path, key: str) -> None:
    top = Path(os.path.realpath(root))
    if not Path(os.path.realpath((root / key).parent)).is_relative_to(top):
        raise SpeckitError("E014", f"{key}: {inside.LEADS_OUT}")


def _move(old: Path, new: Path) -> None:
    new.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(old, new)  # the store may be on another file system


def _put_back(keys: Sequence[str], where: Path, home: Path) -> None:
    for key in keys:
        with suppress(OSError):
            _move(where / key, home / key)
