"""The file behind a memory: read once, and written only where nobody has changed it since (features T4 and T8)."""

from __future__ import annotations

import os
import secrets
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import EEXIST, ENOENT, ENOTSUP, EPERM
from pathlib import Path

from speckit_memory.config.files.file_lock import locked
from speckit_memory.config.files.regular_file import NO_LINK
from speckit_memory.config.files.written_file import written
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing import inside
from speckit_memory.memory.indexing.documents import content_hash
from speckit_memory.memory.indexing.encoding import decode
from speckit_memory.memory.indexing.scanner import FORBIDDEN_FOLDERS, LARGEST_FILE

_MARK = BOM_UTF8.decode()
_WHERE_A_FILE_IS = ("add to it (--append, `edit`) or replace a section of it", "choose another name, or give a folder")


@dataclass(frozen=True, slots=True)
class DocumentFile:
    """A document as it was read. `text` has the line ends of the file, and no byte order mark."""

    root: Path
    key: str
    path: Path
    """Where it lies, links followed: inside the root."""
    data: bytes

    @property
    def text(self) -> str:
        """The whole text."""
        return self.data.decode("utf-8-sig")

    def replace(self, text: str) -> DocumentFile:
        """Writes another text in its place, whole or not at all; mode and owner stay.

        Raises E100 when the file is not what was read any more, and E101 when it cannot be written.
        """
        mark = _MARK if self.data.startswith(BOM_UTF8) else ""
        try:
            with locked(self.path), written(self.path) as stream:
                stream.write(mark + text)
                # read at the last moment: an editor that saves now is not written over
                if _read(self.root, self.key) != self.data:
                    raise SpeckitError("E100", f"{self.key} changed while it was edited")
        except (OSError, TimeoutError) as error:
            raise SpeckitError("E101", f"{self.key} cannot be written: {_reason(error)}") from error
        return DocumentFile(self.root, self.key, self.path, (mark + text).encode())


def opened(root: Path, key: str, stored_hash: str = "") -> DocumentFile:
    """The file with this key below the root, to be edited.

    Raises E010 when it is gone, E100 when it does not hold what is stored (a content hash), E101 when it may not be
    written, is not UTF-8 or lies where programs keep their files, and E014 when a link leads out of the root.
    """
    if FORBIDDEN_FOLDERS & set(Path(key).parts):
        raise SpeckitError("E101", f"{key} lies where programs keep their files")
    data = _read(root, key)
    path = Path(os.path.realpath(root / key))
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpeckitError("E101", f"{key} is not UTF-8", actions=("convert the file to UTF-8",)) from error
    if stored_hash and content_hash(decode(data, key)) != stored_hash:
        raise SpeckitError("E100", f"{key} has changed since it was indexed")
    if not path.stat().st_mode & 0o222 or not os.access(path, os.W_OK):  # an administrator may write anything
        raise SpeckitError("E101", f"{key} is read-only", actions=("make the file writable",))
    return DocumentFile(root, key, path, data)


def create(root: Path, key: str, text: str) -> DocumentFile:
    """A new file below the root, and the folders on its way, written whole or not at all.

    Raises E101 when it cannot be made or something has that name already, and E014 when a link leads out of the root.
    """
    path = root / key
    top = Path(os.path.realpath(root))
    if not Path(os.path.realpath(path.parent)).is_relative_to(top):
        raise SpeckitError("E014", f"{key}: {inside.LEADS_OUT}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _temporary(path.parent, text.encode()) as temporary:
            try:
                os.link(temporary, path)  # fails where something has the name, unlike a renaming
            except OSError as error:
                if error.errno not in (EPERM, ENOTSUP):
                    raise
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))  # no hard links here
                temporary.replace(path)
    except OSError as error:
        if error.errno == EEXIST:
            message = f"{key} cannot be made: there is a file of that name"
            raise SpeckitError("E101", message, actions=_WHERE_A_FILE_IS) from error
        raise SpeckitError("E101", f"{key} cannot be made: {_reason(error)}") from error
    return DocumentFile(root, key, Path(os.path.realpath(path)), text.encode())


@contextmanager
def _temporary(folder: Path, data: bytes) -> Iterator[Path]:
    """A file with this content, gone afterwards unless it was renamed."""
    path = folder / f".speckit-{secrets.token_hex(8)}.tmp"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK | getattr(os, "O_CLOEXEC", 0), 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        yield path
    finally:
        with suppress(OSError):
            path.unlink()


def _read(root: Path, key: str) -> bytes:
    try:
        return inside.read(root, key, LARGEST_FILE).data
    except OSError as error:
        code = "E010" if error.errno == ENOENT else "E014"
        raise SpeckitError(code, f"{key}: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
