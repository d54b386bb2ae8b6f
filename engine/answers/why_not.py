""" "Why not X?": the step that lost a memory, and what would have kept it, in a sentence or two (feature P8)."""

from __future__ import annotations

import numpy as np

from speckit_memory.engine.answers.absence import absence, sightings
from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.memory.store.records import MemoryRecord
from speckit_memory.pipeline.ports import Filter, Store
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.running.demands import unmet

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
