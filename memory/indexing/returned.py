"""Files that a scan missed because somebody was writing them anew: a checkout takes a file away and makes it again.

Such a file is not gone. What is stored of it stays, with its id and all that was learned of it, and the next run reads
it: whoever watches is told of it, as it has changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from unicodedata import normalize

from speckit_memory.config.workspace_file import SourcePatterns
from speckit_memory.memory.indexing.scanner import Scan
from speckit_memory.memory.indexing.selection import reason_to_leave_out


def returned(keys: Iterable[str], found: Scan, root: Path, patterns: SourcePatterns) -> list[str]:
    """Those of the keys, at which a scan found nothing, that are files now which it would take.

    What was left out is none of them, nor what the scan took by another name: that of another link, or another spelling
    where the file system makes no difference.
    """
    taken: frozenset[str] | None = None
    back: list[str] = []
    for key in keys:
        with suppress(OSError):  # what may not be looked at was so for the scan as well
            if not (root / key).is_file():
                continue
            taken = _taken(found) if taken is None else taken
            by_itself = Path(os.path.realpath(root / key)) == Path(os.path.realpath(root)) / key
            if by_itself and _spelled(key) not in taken and not reason_to_leave_out(root / key, root, patterns):
                back.append(key)
    return back


def _taken(found: Scan) -> frozenset[str]:
    return frozenset(map(_spelled, (*found.files, *(other for _, other in found.links))))


def _spelled(key: str) -> str:
    return normalize("NFC", key).casefold()
