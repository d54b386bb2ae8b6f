"""What a process finds in a folder that was left in the midst of a change: equal states need one look only.

A transaction that is not committed is not there for the next process, and a page that is in the write-ahead log does
not count a second time when it is copied into the file. Of a file whose name says that it is partial, nobody reads how
far it has come. All else counts by its bytes, names, modes and times.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path

_LOG, _SHARED, _PARTIAL = "-wal", "-shm", ".partial"
_HEADER, _FRAME = 32, 24
"""Bytes of the header of a write-ahead log, and of each frame before its page: https://sqlite.org/fileformat2.html"""


def found_in(root: Path) -> bytes:
    """A digest of what the next process finds below a folder."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(root.rglob("*")):
        if path.name.endswith((_LOG, _SHARED)):
            continue
        about = path.lstat()
        digest.update(repr((str(path.relative_to(root)), about.st_mode)).encode())
        if path.is_symlink():
            digest.update(os.fsencode(path.readlink()))
        elif path.is_file() and _PARTIAL not in path.name:
            content, log = path.read_bytes(), path.with_name(path.name + _LOG)
            if not content.startswith(b"SQLite format 3"):
                digest.update(repr(about.st_mtime_ns).encode())
            digest.update(with_log(content, log.read_bytes()) if log.exists() else content)
    return digest.digest()


def with_log(content: bytes, log: bytes) -> bytes:
    """A file of SQLite with the transactions that its write-ahead log has to the end."""
    pages: dict[int, bytes] = {}
    whole: dict[int, bytes] = {}
    length = 0
    for number, pages_after, page in _frames(log):
        pages[number] = page
        if pages_after:
            whole |= pages
            pages.clear()
            length = pages_after * len(page)
    if not whole:
        return content
    made = bytearray(content[:length].ljust(length, b"\0"))
    for number, page in whole.items():
        made[(number - 1) * len(page) : number * len(page)] = page
    return bytes(made)


def _frames(log: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Number of the page, pages of the file if the frame ends a transaction, and the page, up to an older log."""
    if len(log) < _HEADER:
        return
    (size,), salt = struct.unpack(">I", log[8:12]), log[16:24]
    for begins in range(_HEADER, len(log) - _FRAME - size + 1, _FRAME + size):
        head = log[begins : begins + _FRAME]
        if head[8:16] != salt:
            return
        number, pages_after = struct.unpack(">II", head[:8])
        yield number, pages_after, log[begins + _FRAME : begins + _FRAME + size]
