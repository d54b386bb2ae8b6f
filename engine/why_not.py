""" "Why not X?": the step that lost a memory, and the smallest change that would have kept it (feature P8)."""

from __future__ import annotations

from functools import partial
from time import perf_counter_ns

import numpy as np

from speckit_memory.engine.results import SearchResult
from speckit_memory.memory.store.records import MemoryRecord
from speckit_memory.pipeline.boundary import Journal
from speckit_memory.pipeline.demands import unmet
from speckit_memory.pipeline.gathering import channel_limit
from speckit_memory.pipeline.gathering import found as found_by
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.runner import Runner

DEEP_LIMIT = 1000
"""How far down each channel is searched for the lost memory."""


def why_not(runner: Runner, result: SearchResult, memory: MemoryRecord, store: Store) -> str:
    """A sentence or two about one memory and one answer."""
    place = next((at for at, row in enumerate(result.results, start=1) if row.id == memory.id), None)
    if place is not None:
        return f"'{memory.key}' is result {place} of {len(result.results)}."
    query = result.outcome.query
    if not store.attributes.scope(query.wanted, query.now).admits(np.array([memory.id]))[0]:
        return f"'{memory.key}' is outside the scope of this query: {_restriction(result, memory, store)}."
    for loss in result.outcome.trace.losses:
        lost = np.flatnonzero(store.attributes.parents(loss.ids) == memory.id)
        if len(lost):
            if loss.step == "limit":
                rank = query.limit + int(lost[0]) + 1
                return f"'{memory.key}' is ranked {_ordinal(rank)}, below the limit of {query.limit}; raise the limit."
            return f"'{memory.key}' was found, but the step '{loss.step}' took it out."
    return f"'{memory.key}' was found by no channel: {_how_far(runner, result, memory, store)}"


def _restriction(result: SearchResult, memory: MemoryRecord, store: Store) -> str:
    wanted = result.outcome.query.wanted
    inside = memory.folder == wanted.folder or memory.folder.startswith(wanted.folder + "/")
    if wanted.folder and not inside:
        return f"it lies in the folder '{memory.folder}', not in '{wanted.folder}'"
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
    return "it has expired"


def _how_far(runner: Runner, result: SearchResult, memory: MemoryRecord, store: Store) -> str:
    query = result.outcome.query
    asked = query.plan.channels
    remarks = []
    for step in runner.pipeline.candidates.channels:
        if asked is not None and step.id not in asked:
            remarks.append(f"{step.id} was not asked for a {query.plan.complexity} query")
            continue
        limit = channel_limit(step, query)
        wanted = query.wanted.of_the_tier if step.about.unconditional else query.wanted
        scope = store.attributes.scope(wanted, query.now)
        with Journal(perf_counter_ns, None, strict=False) as journal:
            work = partial(found_by, step, query, DEEP_LIMIT, scope, store, journal.shown)
            hits = journal.call("candidates", step, 0, work, "")
        if hits is None:  # as in the search itself: a channel that fails is named
            [record] = journal.records
            remarks.append(f"{step.id} {'failed' if record.state == 'failed' else 'is unavailable'} ({record.reason})")
            continue
        found = np.flatnonzero(store.attributes.parents(hits.ids) == memory.id)
        if len(found):
            remarks.append(f"{step.id} has it at rank {int(found[0]) + 1}, beyond its limit of {limit}")
        else:
            remarks.append(f"{step.id} does not match it")
    return "; ".join(remarks) + "."


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
