"""Files that commands write: atomically, never through a link, and only over files made by the same command."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from speckit_memory.config.files.partial_file import complete, partial_file
from speckit_memory.config.files.paths import is_folder
from speckit_memory.config.files.regular_file import beginning
from speckit_memory.errors import SpeckitError

_BEGINNING = 65_536
"""Bytes read to recognise which program made a file."""


def check_target(file: Path, is_ours: Callable[[str], bool], what: str = "the file") -> None:
    """Raise SpeckitError (E014) if the file must not be written: better before an hour of work than after it.

    An existing file may be overwritten if `is_ours`, given its beginning, recognises it as made by a command.
    """
    if is_folder(file):
        raise SpeckitError("E014", f"{what} '{file}' is a folder; give the name of a file")
    if not is_folder(file.absolute().parent):
        raise SpeckitError("E014", f"{what} '{file}' cannot be written: the folder '{file.parent}' does not exist")
    try:
        if file.is_symlink():
            hint, action = "The target of the link would be overwritten.", "give the path of the target"
            raise SpeckitError("E014", f"{what} '{file}' is a link", hint=hint, actions=(action,))
        if not file.exists():
            return
        ours = is_ours(beginning(file, _BEGINNING).decode(errors="replace"))
    except OSError as error:  # a folder without permission to enter
        raise SpeckitError("E014", f"{what} '{file}' cannot be written: {(error.strerror or '').lower()}") from error
    if not ours:
        hint = "Only files made by this command are overwritten."
        message = f"{what} '{file}' exists and has other contents"
        raise SpeckitError("E014", message, hint=hint, actions=("give another name", "remove the file"))


@contextmanager
def written(file: Path) -> Iterator[TextIO]:
    """A UTF-8 file that appears under its name once it is complete; until then the old file stays. Raises OSError.

    It replaces a link, never the target of the link. The mode of an existing file is kept, and its owner and group as
    far as this process may set them.
    """
    before = _replaced(file)
    mode = stat.S_IMODE(before.st_mode) & 0o777 if before else 0o666  # never readable by more people than before
    # In the same folder, so that the last step is a rename within one file system, which is atomic.
    with partial_file(file.absolute().parent, mode) as (whole, path):
        if before is not None and sys.platform != "win32":
            # Separately, since a process may be allowed to set the group but not the owner.
            for owner, group in ((-1, before.st_gid), (before.st_uid, -1)):
                with suppress(OSError):
                    os.fchown(whole.fileno(), owner, group)
            # Set again: the umask may have reduced the mode given when it was opened.
            os.fchmod(whole.fileno(), mode)
        stream = io.TextIOWrapper(whole, encoding="utf-8", newline="\n")
        yield stream
        stream.flush()
        complete(whole)
        path.replace(file)


def _replaced(file: Path) -> os.stat_result | None:
    """The metadata of the regular file with this name, None without one."""
    with suppress(OSError):
        found = file.lstat()
        return found if stat.S_ISREG(found.st_mode) else None
    return None
