"""The file system of a folder, and whether processes can share memory through its files.

SQLite in WAL mode and mapped files need shared memory. Network file systems, and those served by another machine or by
the host of a virtual machine, lack it: the WAL index becomes inconsistent there and the store is damaged.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MOUNT_TABLE = Path("/proc/self/mountinfo")
"""The mounts that this process sees (proc_pid_mountinfo(5)); exists on Linux only."""
_REMOTE = frozenset(
    {
        *("nfs", "nfs3", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "afpfs", "afs", "ncpfs", "coda", "davfs"),
        *("webdav", "ceph", "glusterfs", "lustre", "beegfs", "gpfs", "gfs2", "ocfs2", "orangefs", "pvfs2", "panfs"),
        *("9p", "virtiofs", "vboxsf", "vmhgfs", "prl_fs", "osxfs"),
    }
)
_LOCAL_FUSE = frozenset({"fuseblk", "fuse.bindfs", "fuse.fuse-overlayfs"})
"""FUSE file systems that serve local disks through the page cache; nothing can be assumed of the others."""
_ESCAPED = re.compile(r"\\([0-7]{3})")
_STATFS_BYTES, _TYPE_AT = 4096, slice(72, 88)
"""On macOS: a buffer larger than `struct statfs`, and the position of `f_fstypename` in it."""


class FileSystem(NamedTuple):
    """A file system's kind, as the mount table names it, and its mount point ("" where unknown)."""

    kind: str
    mounted_at: str = ""

    @property
    def shares_memory(self) -> bool:
        """Whether all processes that map a file see the same bytes. True for unknown kinds: most are local."""
        kind = self.kind.lower()
        return kind in _LOCAL_FUSE or not (kind in _REMOTE or kind.split(".")[0] in ("fuse", "macfuse", "osxfuse"))

    def __str__(self) -> str:
        return f"{self.kind} at {self.mounted_at}" if self.mounted_at else self.kind


def file_system_of(path: Path) -> FileSystem:
    """The file system of a path, or of its nearest existing parent; its kind is "" if it cannot be determined."""
    real = os.path.realpath(path)
    if sys.platform == "darwin":
        return FileSystem(_type_by_statfs(real))
    with suppress(OSError):
        return _mounted(MOUNT_TABLE.read_text(encoding="utf-8", errors="surrogateescape"), real)
    return FileSystem("")


def _mounted(table: str, path: str) -> FileSystem:
    """The mount whose path is the longest prefix of this one; of several at one path, the last hides the others."""
    found, length = FileSystem(""), -1
    for line in table.splitlines():
        # "36 35 98:0 /mnt1 /mnt/parent rw,noatime master:1 - ext3 /dev/root rw": field 5 is the mount point, in which
        # blanks and backslashes are octal escapes; the file system's type follows the " - ".
        mount, _, source = line.partition(" - ")
        fields = mount.split(" ")
        if len(fields) < 5 or not source:
            continue
        place = _ESCAPED.sub(lambda match: chr(int(match[1], 8)), fields[4])
        inside = path == place or path.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= length:
            found, length = FileSystem(source.split(" ")[0], place), len(place)
    return found


def _type_by_statfs(path: str) -> str:
    import ctypes

    libc = ctypes.CDLL(None)
    statfs = getattr(libc, "statfs$INODE64", None) or libc.statfs
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    for place in (Path(path), *Path(path).parents):
        if not statfs(os.fsencode(place), buffer):
            break
    return buffer.raw[_TYPE_AT].partition(b"\0")[0].decode(errors="replace")
