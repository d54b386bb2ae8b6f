"""Tells cheaply whether the content of files that people edit has changed since it was read."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from speckit_memory.config.files.regular_file import read_text

SURE_SECONDS = 2.0
"""The clocks of file systems advance in steps: of a file that was changed so recently, a further change may leave no
trace but its content."""

MISSING = "missing"
Stamp = tuple[int, ...]
_NO_STAMP: Stamp = (-1,)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a file held, and what the system said of it then; `sure` when a change would show in that."""

    content: str
    stamp: Stamp = _NO_STAMP
    sure: bool = False


class WatchedFiles:
    """Some files, whether or not they are there, with the content that each had. Used by one thread at a time."""

    def __init__(self, files: Iterable[Path]) -> None:
        """Reads the files: whoever uses what they say reads them after this, so that no change is missed."""
        self._seen: dict[Path, _Seen] = {}
        self.look_at(files)

    def look_at(self, files: Iterable[Path]) -> None:
        """Watches further files."""
        self._seen |= {file: _looked(file) for file in files if file not in self._seen}

    def know(self, texts: Mapping[Path, str]) -> None:
        """Takes the texts that somebody has read, as `read_text` gives them, for what these files held."""
        self._seen |= {file: _Seen(_digest(text)) for file, text in texts.items()}

    def distrust(self, since: float) -> None:
        """Counts those as changed that were changed after a moment (epoch seconds)."""
        for file, seen in self._seen.items():
            if seen.stamp and seen.stamp != _NO_STAMP and _changed_ns(seen.stamp) > since * 1e9:
                self._seen[file] = _Seen("")

    def changed(self) -> bool:
        """Whether some file holds something else. Files are read only if they were touched."""
        for file, seen in self._seen.items():
            if seen.sure and _stamp(file) == seen.stamp:
                continue
            now = _looked(file)
            if now.content != seen.content:
                return True
            self._seen[file] = now
        return False

    def stamps(self) -> tuple[Stamp, ...]:
        """What the system says of the files now: equal to what it said before unless somebody is writing."""
        return tuple(map(_stamp, self._seen))

    def age(self, stamps: Iterable[Stamp], now: float) -> float:
        """Seconds since the last change that shows in `stamps`; 0 when a file has vanished, which tells no time."""
        ages = [
            now - _changed_ns(stamp) / 1e9 if stamp else 0.0
            for stamp, seen in zip(stamps, self._seen.values(), strict=True)
            if stamp or seen.content != MISSING
        ]
        return min(ages, default=math.inf)


def _stamp(file: Path) -> Stamp:
    """What tells two states of a file apart without reading it; () for none."""
    try:
        found = file.stat()
    except (OSError, ValueError):
        return ()
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _changed_ns(stamp: Stamp) -> int:
    return max(stamp[-2:])


def _looked(file: Path) -> _Seen:
    stamp = _stamp(file)
    try:
        content = _digest(read_text(file))
    except FileNotFoundError:
        content = MISSING
    except (OSError, ValueError) as error:  # a ValueError is bytes that are no text
        content = f"unreadable: {error}"
    settled = not stamp or time.time() - _changed_ns(stamp) / 1e9 > SURE_SECONDS
    return _Seen(content, stamp, settled and stamp == _stamp(file))


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
