"""Files that commands write: whole or not at all, never through a link, and over nothing but what they have made."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from speckit_memory.config.files.partial_file import partial_in
from speckit_memory.config.files.paths import is_folder
from speckit_memory.config.files.regular_file import NO_LINK, beginning
from speckit_memory.errors import SpeckitError

_BEGINNING = 65_536
"""Bytes that are looked at to tell who made a file."""


def check_target(file: Path, is_ours: Callable[[str], bool], what: str = "the file") -> None:
    """Raises SpeckitError (E014) where nothing may be written: better before an hour of work than after it.

    A file that is there is overwritten when `is_ours`, given how it begins, says that a command has made it.
    """
    if is_folder(file):
        raise SpeckitError("E014", f"{what} '{file}' is a folder; the name of a file is needed")
    if not is_folder(file.absolute().parent):
        raise SpeckitError("E014", f"{what} '{file}' cannot be written: the folder '{file.parent}' does not exist")
    try:
        if file.is_symlink():
            hint, action = "What it leads to would be overwritten.", "name the file that is meant"
            raise SpeckitError("E014", f"{what} '{file}' is a link", hint=hint, actions=(action,))
        if not file.exists():
            return
        ours = is_ours(beginning(file, _BEGINNING).decode(errors="replace"))
    except OSError as error:  # a folder that may not be entered
        raise SpeckitError("E014", f"{what} '{file}' cannot be written: {(error.strerror or '').lower()}") from error
    if not ours:
        hint = "Only what this command has made is overwritten."
        message = f"{what} '{file}' is there already and holds something else"
        raise SpeckitError("E014", message, hint=hint, actions=("give another name", "remove the file"))


@contextmanager
def written(file: Path) -> Iterator[TextIO]:
    """A UTF-8 file that takes its name when all of it is written; until then what had the name stays. Raises OSError.

    It takes the place of a link, and never what the link leads to. Of a file it keeps the mode, and the owner and the
    group as far as this process may give them.
    """
    temporary = partial_in(file.absolute().parent)
    before = _replaced(file)
    mode = stat.S_IMODE(before.st_mode) & 0o777 if before else 0o666  # no moment at which more people may read it
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK | getattr(os, "O_CLOEXEC", 0), mode)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
            if before is not None and sys.platform != "win32":
                for owner, group in ((-1, before.st_gid), (before.st_uid, -1)):
                    with suppress(OSError):
                        os.fchown(stream.fileno(), owner, group)
                os.fchmod(stream.fileno(), mode)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(file)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _replaced(file: Path) -> os.stat_result | None:
    """The regular file that has the name now, None where there is none."""
    with suppress(OSError):
        found = file.lstat()
        return found if stat.S_ISREG(found.st_mode) else None
    return None
