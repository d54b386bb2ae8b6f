"""Caches, between processes, facts about the bundled model's files that take time to compute (P10).

The cache is valid for the file state: writing to or replacing a file changes its inode, size or times, and the facts
are computed again.
"""

from __future__ import annotations

import json
import time
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from speckit_memory.memory.models.embedders import user_cache
from speckit_memory.memory.models.embedders.merge_table import MergeTable

VERSION = 1
"""Version of the cache format; part of the file name."""
SETTLED_NS = 2_000_000_000
"""Minimum age of a file's last change: a later change within the precision of file times would go unnoticed."""


class ModelFacts(NamedTuple):
    """The SHA-256 of the concatenated files, and the table that tokenises short texts without the library.

    The table is None if the tokeniser's kind is not supported, or if it cannot be cached: then the library is faster.
    """

    digest: str
    table: MergeTable | None


def facts_of(weights: Path, tokeniser: Path) -> ModelFacts:
    """Return the facts of these two files, cached or computed. Raises OSError if one cannot be read."""
    files = [path.resolve() for path in (weights, tokeniser)]
    began = time.time_ns()  # taken before the files are examined, so that later changes have later times
    seen = [_look(path) for path in files]
    name = f"model-{VERSION}-{sha256(repr(files).encode()).hexdigest()[:16]}"
    looked = json.dumps([[str(path) for path in files], seen]).encode()
    if found := _cached_facts(name, looked):
        return found
    whole = sha256()
    for path in files:
        read = path.read_bytes()
        whole.update(read)
    digest = whole.hexdigest()
    settled = began - max(max(times) for *_, times in seen) > SETTLED_NS
    if not (settled and user_cache.ready()):
        return ModelFacts(digest, None)
    table = _table(read)
    # Cache only if the files did not change while they were read.
    if [_look(path) for path in files] == seen:
        # Format: JSON of the file states, digest, table, with one line end between them.
        user_cache.keep(name, b"\n".join((looked, digest.encode(), table.to_bytes() if table else b"")))
    return ModelFacts(digest, table)


def _cached_facts(name: str, looked: bytes) -> ModelFacts | None:
    found = user_cache.load(name)
    if found is None:
        return None
    try:
        # At most two splits: the bytes of the table may contain line ends.
        files, digest, table = found.split(b"\n", 2)
        if files != looked:
            return None
        return ModelFacts(digest.decode(), MergeTable.from_bytes(table) if table else None)
    except (ValueError, TypeError, LookupError):
        return None


def _table(tokeniser: bytes) -> MergeTable | None:
    try:
        return MergeTable.of(json.loads(tokeniser))
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError):
        return None  # the library reports the error


def _look(path: Path) -> tuple[int, int, int, tuple[int, int]]:
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, (found.st_mtime_ns, found.st_ctime_ns)
