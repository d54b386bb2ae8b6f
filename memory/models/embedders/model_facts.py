"""What follows from the files of the bundled model and takes time to work out, kept from process to process (P10).

It holds for the files as the file system shows them: whatever writes to one, or puts another in its place, changes its
number, its size or its times, and then it is worked out anew.
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
"""Of what is kept. Another one has a file of its own."""
SETTLED_NS = 2_000_000_000
"""So long ago a file was changed last: within the precision of its times it could change once more unseen."""


class ModelFacts(NamedTuple):
    """The SHA-256 of the files together, as they follow one another, and how short texts are cut without the library.

    The table is None for a tokeniser of another kind, and where it could not be kept: then the library is faster.
    """

    digest: str
    table: MergeTable | None


def facts_of(weights: Path, tokeniser: Path) -> ModelFacts:
    """What is kept of these two files, or else follows from them. Raises OSError when one cannot be read."""
    files = [path.resolve() for path in (weights, tokeniser)]
    began = time.time_ns()  # before the look: a change after it then has other times
    seen = [_look(path) for path in files]
    name = f"model-{VERSION}-{sha256(repr(files).encode()).hexdigest()[:16]}"
    looked = json.dumps([[str(path) for path in files], seen]).encode()
    if found := _kept(name, looked):
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
    if [_look(path) for path in files] == seen:
        user_cache.keep(name, b"\n".join((looked, digest.encode(), table.to_bytes() if table else b"")))
    return ModelFacts(digest, table)


def _kept(name: str, looked: bytes) -> ModelFacts | None:
    found = user_cache.load(name)
    if found is None:
        return None
    try:
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
        return None  # the library says what is wrong with it


def _look(path: Path) -> tuple[int, int, int, tuple[int, int]]:
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, (found.st_mtime_ns, found.st_ctime_ns)
