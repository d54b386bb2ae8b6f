"""Detects cheaply whether the contents of watched files have changed since they were read."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from speckit_memory.config.files.regular_file import read_text

SURE_SECONDS = 2.0
"""File-system clocks advance in steps: after a change this recent, another change may only be visible in the contents
of the file."""

MISSING = "missing"
Stamp = tuple[int, ...]
_NO_STAMP: Stamp = (-1,)


@dataclass(frozen=True, slots=True)
class _Seen:
    """The contents and metadata of a file when it was read; `sure` if any change would show in the metadata."""

    content: str
    stamp: Stamp = _NO_STAMP
    sure: bool = False


class WatchedFiles:
    """Some files, existing or not, with the contents of each. Used by one thread at a time."""

    def __init__(self, files: Iterable[Path]) -> None:
        """Read the files. Users of their contents read them after this, so that no change is missed."""
        self._seen: dict[Path, _Seen] = {}
        self.look_at(files)

    def look_at(self, files: Iterable[Path]) -> None:
        """Watch further files."""
        self._seen |= {file: _looked(file) for file in files if file not in self._seen}

    def know(self, texts: Mapping[Path, str]) -> None:
        """Record texts already read with `read_text` as the contents of these files."""
        # Without a stamp: the first check reads the file and remembers its metadata then.
        self._seen |= {file: _Seen(_digest(text)) for file, text in texts.items()}

    def distrust(self, since: float) -> None:
        """Count files as changed that were modified after `since` (epoch seconds)."""
        for file, seen in self._seen.items():
            if seen.stamp and seen.stamp != _NO_STAMP and _changed_ns(seen.stamp) > since * 1e9:
                # No file has an empty digest, so the next check finds a change.
                self._seen[file] = _Seen("")

    def changed(self) -> bool:
        """Whether the contents of some file have changed. Only touched files are read."""
        for file, seen in self._seen.items():
            if seen.sure and _stamp(file) == seen.stamp:
                continue
            now = _looked(file)
            if now.content != seen.content:
                # At the first changed file; the caller reads all of them anyway.
                return True
            # Same contents with other metadata: remember them, so that the next check need not read the file.
            self._seen[file] = now
        return False

    def stamps(self) -> tuple[Stamp, ...]:
        """The present metadata of the files: equal to earlier metadata unless a file is being written."""
        return tuple(map(_stamp, self._seen))

    def age(self, stamps: Iterable[Stamp], now: float) -> float:
        """Seconds since the latest change in `stamps`; 0 if a file has vanished, whose time is unknown."""
        ages = [
            now - _changed_ns(stamp) / 1e9 if stamp else 0.0
            for stamp, seen in zip(stamps, self._seen.values(), strict=True)
            # Left out: a file that was missing and still is, which has no age.
            if stamp or seen.content != MISSING
        ]
        return min(ages, default=math.inf)


def _stamp(file: Path) -> Stamp:
    """Metadata that differ between two states of a file; () for no file."""
    try:
        found = file.stat()
    except (OSError, ValueError):
        return ()
    # ctime as well: replacing a file by an older one keeps its mtime, but not its ctime and inode.
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _changed_ns(stamp: Stamp) -> int:
    return max(stamp[-2:])


def _looked(file: Path) -> _Seen:
    stamp = _stamp(file)
    try:
        content = _digest(read_text(file))
    except FileNotFoundError:
        content = MISSING
    except (OSError, ValueError) as error:  # ValueError: the bytes are not text
        content = f"unreadable: {error}"
    # The metadata are reliable if the change is old enough and nothing changed during the read.
    settled = not stamp or time.time() - _changed_ns(stamp) / 1e9 > SURE_SECONDS
    return _Seen(content, stamp, settled and stamp == _stamp(file))


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
