"""What would bring a lost memory in: the same question, asked with one thing changed after another (feature P8)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from speckit_memory.engine.absence import absence, sightings
from speckit_memory.engine.assembly import OpenStore
from speckit_memory.engine.change_candidates import candidates
from speckit_memory.engine.changes import Change
from speckit_memory.engine.questions import Asked
from speckit_memory.engine.results import SearchResult
from speckit_memory.engine.searching import Searching
from speckit_memory.engine.smallest_change import SmallestChange, smallest_change
from speckit_memory.engine.step_removal import with_file
from speckit_memory.engine.why_not import beyond_reach
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.records import MemoryRecord
from speckit_memory.pipeline.effective import Effective
from speckit_memory.pipeline.ports import Store


def why_not_change(
    searching: Searching, opened: OpenStore, result: SearchResult, memory: MemoryRecord, store: Store
) -> SmallestChange | None:
    """What would bring a memory into an answer of this pipeline; None when it is there.

    Only reads: what is tried counts as no use, and no session is told.
    """
    asked, checked = result.asked, searching.checked
    assert asked is not None and checked is not None  # or nothing could be asked again
    lost, pipeline = absence(result, memory.id, store), searching.answering(result).pipeline
    if lost.where == "served":
        return None
    if never := beyond_reach(result, memory, store):
        return SmallestChange(never=never)
    # the preset of hand-overs is not the pipeline that a call can change
    settable = checked if pipeline is searching.runner.pipeline else replace(checked, bound=())
    seen = tuple(sightings(pipeline, result, memory.id, store))
    steps = tuple(step.id for step in (*pipeline.rerank, *pipeline.annotate))
    tried = candidates(lost, settable, asked, result, memory, seen)
    run = partial(_asked_again, searching, opened, asked, checked.effective)
    found = smallest_change(tried, run, result, memory.id, store, steps)
    return replace(found, change=found.change and with_file(found.change, checked, searching.config))


def _asked_again(
    searching: Searching, opened: OpenStore, asked: Asked, present: Effective, change: Change
) -> SearchResult | None:
    """The answer with one thing changed, as a call with that change gets it; None when it gets an error."""
    asked, whole = change.applied(asked, present)
    try:
        through = searching if whole is present else searching.changed(whole)
        return through.search(
            opened, asked.question, now=asked.now, allowed_ms=asked.allowed_ms, snippet=0, content=False
        )
    except SpeckitError:
        return None
