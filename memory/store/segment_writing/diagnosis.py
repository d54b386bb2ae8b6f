"""The report of `doctor` on a segment: reads all of it and lists every problem that prevents its use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from speckit_memory.errors.echo import plural
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.segment_files import segment_store
from speckit_memory.memory.store.segment_files.findings import Finding
from speckit_memory.memory.store.segment_files.segment_store import SegmentStatus, SegmentStore, catch_up_cost
from speckit_memory.memory.store.segment_writing import writing

_MENDED = frozenset({"missing", "stale", "behind", "torn", "version", "foreign", "unread"})
"""Kinds that a writer at work will fix."""
_NAMED = 3
"""Leftover files listed by name."""


@dataclass(frozen=True, slots=True)
class SegmentReport:
    """A one-line description of a store's segment, and its problems."""

    detail: str
    findings: tuple[Finding, ...]


def findings(database: Database) -> SegmentReport:
    """Check everything. Raises SpeckitError if the store itself cannot be read."""
    segments = SegmentStore(database)
    with database.snapshot_read() as connection:
        memories = segments.memories()
        held = segments.status(thorough=True)
        failure = segments.last_failure()
        lag = catch_up_cost(connection, held.trusted) if held.trusted and held.behind is not None else 0
    found = [*_of_the_file(database.path, memories, held, lag), *_of_the_folder(database, segments)]
    if failure and not any(one.kind == "blocked" for one in found):  # which is why the last writer failed
        found.append(failure)
    found = list(dict.fromkeys(found))
    if any(one.kind in _MENDED for one in found) and writing.being_written(database):
        at_work = Finding("written", f"another one is being written for the {memories:,} memories of {database.path}")
        found = [at_work, *(one for one in found if one.kind not in _MENDED)]
    if held.segment is not None:
        size = f"{held.segment.bytes / 1e6:,.1f} MB, read and intact"
        return SegmentReport(f"{size}, {held.behind:,} changes behind the store", tuple(found))
    few = f"{plural(memories, 'memory')} need{'s' * (memories == 1)} none"
    return SegmentReport("no segment is in use" if memories >= segment_store.FEWEST else few, tuple(found))


def _of_the_file(store: Path, memories: int, held: SegmentStatus, lag: int) -> Iterator[Finding]:
    if held.finding is not None:
        yield held.finding
    elif held.trusted is None and memories >= segment_store.FEWEST:
        yield Finding("missing", f"none has been written yet for the {memories:,} memories of {store}")
    elif lag > (most := segment_store.most_behind(memories)):
        told = f"{held.behind:,} changes came since it was written, as much as {lag:,} documents"
        yield Finding("behind", f"{told}; it is rewritten after {most:,}")


def _of_the_folder(database: Database, segments: SegmentStore) -> Iterator[Finding]:
    if database.only_read:  # the check of the store reports it
        return
    folder = segments.folder
    if in_the_way := segments.blocking_file():
        yield in_the_way
        return
    where = folder if folder.exists() else folder.parent
    if not os.access(where, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        yield Finding("failed", f"no permission to write to {where}")
        return
    left = writing.leftovers(database)
    if left and not writing.being_written(database):
        names = ", ".join(file.name for file in left[:_NAMED])
        more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
        yield Finding("leftover", f"{folder} contains {names}{more} left by earlier writers")
