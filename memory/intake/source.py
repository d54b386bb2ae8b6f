"""A text to remember."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from speckit_memory.memory.scanning.commit_times import CommitTimes
from speckit_memory.memory.store.records import Tier


@dataclass(frozen=True, slots=True)
class Source:
    """A text to remember under a key. Values given here take precedence over the text's front matter.

    `title` None means "find one"; an empty title means that the document has none. `folder` None means the folder part
    of the key. `created_at` is in epoch seconds. `file`, `mtime_ns` and `committed` (its commit times) belong to the
    file from which the text was read.
    """

    key: str
    text: str
    title: str | None = None
    folder: str | None = None
    tier: Tier | None = None
    triggers: tuple[str, ...] = ()
    created_at: float | None = None
    file: Path | None = None
    mtime_ns: int | None = None
    committed: CommitTimes | None = None
