"""Files being written: each is in the folder of the file whose name it gets in the end."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from speckit_memory.config.files.regular_file import NO_LINK

PREFIX = ".speckit-"
_NAME = re.compile(re.escape(PREFIX) + r"[0-9a-f]{16}\.tmp")


@contextmanager
def partial_file(folder: Path, mode: int) -> Iterator[tuple[BinaryIO, Path]]:
    """A new file to write and rename, with its path; afterwards it is removed if it still has that name.

    The path is unpredictable: at a predictable one, an attacker could place a link to another file.
    """
    path = folder / f"{PREFIX}{secrets.token_hex(8)}.tmp"

    def opened(name: str, flags: int) -> int:
        return os.open(name, flags | NO_LINK, mode)

    with open(path, "xb", opener=opened) as stream:  # fails if the name is taken
        try:
            yield stream, path
        finally:
            stream.close()
            with suppress(OSError):
                path.unlink()


def complete(stream: BinaryIO, *, sync: bool = True) -> None:
    """Closes a file that is about to be renamed; with `sync` its data reaches the disk before its name does."""
    stream.flush()
    if sync:
        os.fsync(stream.fileno())
    stream.close()  # Windows cannot rename an open file


def is_partial(name: str) -> bool:
    """Whether a file has such a name."""
    return _NAME.fullmatch(name) is not None
