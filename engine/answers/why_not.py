""" "Why not X?": the step that lost a memory, and what would have kept it, in a sentence or two (feature P8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from time import perf_counter_ns
from typing import Literal

import numpy as np

from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.memory.store.records import MemoryRecord
from speckit_memory.pipeline.ports import Filter, Store
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.running.demands import unmet
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


_OVER = "it has expired or was archived"
"""Searches do not distinguish the two."""


def why_not(pipeline: Pipeline, result: SearchResult, memory: MemoryRecord, store: Store) -> str:
    """Explains why an answer of this pipeline lacks a memory, in a sentence or two.

    Args:
        pipeline: The pipeline that answered.
        result: The answer.
        memory: The memory.
        store: The store that was searched.
    """
    lost = absence(result, memory.id, store)
    match lost.where:
        case "served":
            return f"'{memory.key}' is result {lost.rank} of {len(result.results)}."
        case "scope":
            return f"'{memory.key}' is outside the scope of this query: {restriction(result, memory, store)}."
        case "limit":
            limit = result.outcome.query.limit
            return f"'{memory.key}' is ranked {ordinal(lost.rank)}, below the limit of {limit}; raise the limit."
        case "step":
            return f"'{memory.key}' was found, but the step '{lost.step}' took it out."
    return f"'{memory.key}' was found by no channel: {_how_far(pipeline, result, memory, store)}"


def restriction(result: SearchResult, memory: MemoryRecord, store: Store) -> str:
    """The filter that excludes a memory, as the end of a sentence."""
    wanted = result.outcome.query.wanted
    inside = memory.folder == wanted.folder or memory.folder.startswith(wanted.folder + "/")
    if wanted.folder and not inside:
        return f"it is in the folder '{memory.folder}', not in '{wanted.folder}'"
    if wanted.tier and memory.tier != wanted.tier:
        return f"its tier is {memory.tier}, not {wanted.tier}"
    if wanted.context_type and memory.context_type != wanted.context_type:
        return f"its context type is {memory.context_type}, not {wanted.context_type}"
    if memory.tier == "deprecated":
        return "it is deprecated"
    if wanted.memories is not None and (demand := unmet(result.outcome.query, memory.id, store)):
        return f"it {demand}"
    if wanted.memories is not None and memory.id not in wanted.memories:
        return "it is not about all of " + ", ".join(f"'{concept}'" for concept in result.outcome.query.concepts)
    if wanted.folders and not any(memory.folder == f or memory.folder.startswith(f + "/") for f in wanted.folders):
        return f"the plan looked only into {', '.join(wanted.folders)}"
    return _OVER


def beyond_reach(result: SearchResult, memory: MemoryRecord, store: Store) -> str:
    """Why no parameter of the search can bring the memory in, "" if one may."""
    query = result.outcome.query
    if not store.attributes.scope(Filter(), query.now).admits(np.array([memory.id]))[0]:
        if memory.tier == "deprecated":
            return "it is deprecated, and no search finds such memories"
        return f"{_OVER}, and no search finds such memories; reading it by its key shows how to restore it"
    demand = unmet(query, memory.id, store)
    return f"it {demand}; only other words of the query can change that" if demand else ""


def _how_far(pipeline: Pipeline, result: SearchResult, memory: MemoryRecord, store: Store) -> str:
    remarks = []
    for seen in sightings(pipeline, result, memory.id, store):
        if seen.remark:
            remarks.append(f"{seen.channel} {seen.remark}")
        elif seen.rank:
            remarks.append(f"{seen.channel} has it at rank {seen.rank}, beyond its limit of {seen.limit}")
        else:
            remarks.append(f"{seen.channel} does not match it")
    return "; ".join(remarks) + "."


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 11th."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
