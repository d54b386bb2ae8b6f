"""Reads the file of a memory, and writes it only if it has not been changed meanwhile (features T4 and T8)."""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from dataclasses import dataclass
from errno import EDQUOT, EEXIST, EFBIG, ENOENT, ENOSPC, EXDEV
from pathlib import Path

from speckit_memory.config.files.file_lock import locked
from speckit_memory.config.files.written_file import written
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.editing import placed_file
from speckit_memory.memory.indexing.documents import content_hash
from speckit_memory.memory.parsing.encoding import decode
from speckit_memory.memory.scanning import inside
from speckit_memory.memory.scanning.scanner import FORBIDDEN_FOLDERS, LARGEST_FILE

_MARK = BOM_UTF8.decode()
_WHERE_A_FILE_IS = ("append to it, or replace a section of it", "choose another name, or give a folder")


@dataclass(frozen=True, slots=True)
class DocumentFile:
    """A document as it was read. `text` has the line endings of the file, without a byte order mark."""

    root: Path
    key: str
    path: Path
    """The resolved path, inside the root."""
    data: bytes

    @property
    def text(self) -> str:
        """The whole text."""
        return self.data.decode("utf-8-sig")

    def replace(self, text: str) -> DocumentFile:
        """Replace the contents atomically; mode and owner are kept.

        Raises E100 when the file has been changed since it was read, E101 when it cannot be written.
        """
        mark = _MARK if self.data.startswith(BOM_UTF8) else ""
        try:
            # The lock excludes our own processes; the comparison below detects other programs.
            with locked(self.path), written(self.path) as stream:
                stream.write(mark + text)
                # read as late as possible, so that a concurrent save by an editor is not overwritten
                if _read(self.root, self.key) != self.data:
                    raise SpeckitError("E100", f"{self.key} was changed by another program during the edit")
        except (OSError, TimeoutError) as error:
            message = f"{self.key} cannot be written: {inside.reason(error)}"
            raise SpeckitError("E101", message, actions=_ways_out(error)) from error
        placed_file.clear_left(self.path.parent)
        return DocumentFile(self.root, self.key, self.path, (mark + text).encode())


def open_document(root: Path, key: str, stored_hash: str = "") -> DocumentFile:
    """The file with this key below the root, for editing.

    Raises E010 when it is missing, E100 when its content hash is not the stored one, E101 when it is not writable, not
    UTF-8 or in a folder where programs keep their files, and E014 when a link leads out of the root.
    """
    if FORBIDDEN_FOLDERS & set(Path(key).parts):
        raise SpeckitError("E101", f"{key} is in a folder where programs keep their files")
    data = _read(root, key)
    path = Path(os.path.realpath(root / key))
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpeckitError("E101", f"{key} is not UTF-8", actions=("convert the file to UTF-8",)) from error
    if stored_hash and content_hash(decode(data, key)) != stored_hash:
        raise SpeckitError("E100", f"{key} has changed since it was indexed")
    if not path.stat().st_mode & 0o222 or not os.access(path, os.W_OK):  # access() allows root everything
        raise SpeckitError("E101", f"{key} is read-only", actions=("make the file writable",))
    return DocumentFile(root, key, path, data)


def create(root: Path, key: str, text: str) -> DocumentFile:
    """Create a file below the root, with its parent folders, atomically.

    Raises E101 when it cannot be created or the name is taken, E014 when a link leads out of the root.
    """
    data = text.encode()
    try:
        placed_file.put_file(root, key, data, over=False, sync=True)
    except OSError as error:
        if error.errno == EXDEV:
            raise SpeckitError("E014", f"{key}: {inside.LEADS_OUT}") from error
        if error.errno == EEXIST:
            message = f"{key} cannot be created: a file of that name exists"
            raise SpeckitError("E101", message, actions=_WHERE_A_FILE_IS) from error
        message = f"{key} cannot be created: {inside.reason(error)}"
        raise SpeckitError("E101", message, actions=_ways_out(error)) from error
    path = Path(os.path.realpath(root / key))
    placed_file.clear_left(path.parent)
    return DocumentFile(root, key, path, data)


def _read(root: Path, key: str) -> bytes:
    try:
        return inside.read(root, key, LARGEST_FILE).data
    except OSError as error:
        code = "E010" if error.errno == ENOENT else "E014"
        raise SpeckitError(code, f"{key}: {inside.reason(error)}") from error


def _ways_out(error: OSError) -> tuple[str, ...]:
    """Remedies for a full disk or quota; none, so that the default ones apply, for other errors."""
    full = error.errno in (ENOSPC, EDQUOT, EFBIG)
    return ("free disk space, or raise the limit that keeps the file from being written", "try again") if full else ()
