"""Finds the step that lost a memory in a search, or the memory's rank (feature P8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from time import perf_counter_ns
from typing import Literal

import numpy as np

from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.running.gathering import channel_hits as found_by
from speckit_memory.pipeline.running.gathering import channel_limit
from speckit_memory.pipeline.running.journal import StepRunner

DEEP_LIMIT = 1000
"""How many hits of each channel are searched for a lost memory."""

Where = Literal["scope", "candidates", "step", "limit", "served"]


@dataclass(frozen=True, slots=True)
class Absence:
    """Where a memory was lost: out of scope, found by no channel, removed by a `step`, or below the limit.

    `rank` is its rank from 1, in the answer or below the limit; 0 if it has none.
    """

    where: Where
    step: str = ""
    rank: int = 0

    def progress(self, steps: tuple[str, ...]) -> tuple[int, int]:
        """A sort key: the number of steps a memory passed. Comparable between pipelines with these steps."""
        # A later place counts more; among rows below the limit, a smaller rank does.
        within = steps.index(self.step) if self.step in steps else 0
        return ("scope", "candidates", "step", "limit", "served").index(self.where), within - self.rank


@dataclass(frozen=True, slots=True)
class ChannelRank:
    """One channel's hit for a memory: its `rank` from 1 (0 for no match), and the limit of the channel.

    `remark` says why the rank is unknown, "" if it is known.
    """

    channel: str
    limit: int = 0
    rank: int = 0
    remark: str = ""


def absence(result: SearchResult, memory: int, store: Store) -> Absence:
    """Where an answer lost a memory, or its rank in the answer."""
    place = next((at for at, row in enumerate(result.results, start=1) if row.id == memory), 0)
    if place:
        return Absence("served", rank=place)
    query = result.outcome.query
    if not store.attributes.scope(query.wanted, query.now).admits(np.array([memory]))[0]:
        return Absence("scope")
    for loss in result.outcome.trace.losses:  # in running order; loss.ids: (n,) int64
        lost = np.flatnonzero(store.attributes.parents(loss.ids) == memory)
        if len(lost) and loss.step == "limit":
            # `limit` loses the tail of the ranking in order: its row 0 has the rank limit + 1.
            return Absence("limit", rank=query.limit + int(lost[0]) + 1)
        if len(lost):
            return Absence("step", loss.step)
    return Absence("candidates")


def sightings(pipeline: Pipeline, result: SearchResult, memory: int, store: Store) -> Iterator[ChannelRank]:
    """The rank of a memory in each channel, searched down to `DEEP_LIMIT`.

    Args:
        pipeline: The pipeline that answered.
        result: The answer.
        memory: The id of the memory.
        store: The store that was searched.
    """
    query = result.outcome.query
    asked = query.plan.channels
    for step in pipeline.candidates.channels:
        if asked is not None and step.id not in asked:
            yield ChannelRank(step.id, remark=f"was not asked for a {query.plan.complexity} query")
            continue
        limit = channel_limit(step, query)
        wanted = query.wanted.of_the_tier if step.about.unconditional else query.wanted
        scope = store.attributes.scope(wanted, query.now)
        journal = StepRunner(perf_counter_ns, None, strict=False)
        work = partial(found_by, step, query, DEEP_LIMIT, scope, store)
        hits = journal.call("candidates", step, 0, work, "")
        if hits is None:  # the channel failed, as it would in the search itself
            [record] = journal.records
            state = "failed" if record.state == "failed" else "is unavailable"
            yield ChannelRank(step.id, limit, remark=f"{state} ({record.reason})")
            continue
        # hits.ids are in order of rank; several passages of a memory may be among them, and the first is the best.
        found = np.flatnonzero(store.attributes.parents(hits.ids) == memory)
        yield ChannelRank(step.id, limit, int(found[0]) + 1 if len(found) else 0)
