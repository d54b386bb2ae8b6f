"""Stage 1: understand the query, run the channels, try again if they find nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.guards.checks import check_asked, check_hits, check_memories, check_plan, check_source
from speckit_memory.pipeline.guards.defensive_copies import DefensiveCopies
from speckit_memory.pipeline.model.columns import Candidates, Hits, Plan, Query
from speckit_memory.pipeline.ports import Ids, Scope, Store, Unavailable
from speckit_memory.pipeline.roles.composition import BoundStep, CandidateStage
from speckit_memory.pipeline.roles.contracts import Channel, ChannelParams, Recoverer, Understander
from speckit_memory.pipeline.roles.hooks import ABOUT_CONCEPT, ConceptJudge
from speckit_memory.pipeline.running.apply import ChannelSearch, union
from speckit_memory.pipeline.running.demands import with_demands
from speckit_memory.pipeline.running.journal import StepRunner
from speckit_memory.pipeline.running.lookup import left_unsearched, memories_with_all, searchable

# Queries with several concepts: determines which memories are about all of them (feature C1).
#
# A memory is about a concept if it holds all of its words, in any fields, or if a channel judges it so by its own
# evidence, as the vector channel does above a certain similarity. The memories that are about every concept become the
# scope of the query, so that no channel can return others, even one that does not know of concepts.


def about_all(stage: CandidateStage, query: Query, store: Store, journal: StepRunner) -> tuple[int, ...] | None:
    """The memories that are about every concept of the query, ascending; None for a query without concepts.

    If a channel cannot judge, this is recorded as a degradation, and the words alone decide.

    Args:
        stage: The stage whose channels may judge concepts.
        query: The query with its concepts and filter.
        store: The store to search.
        journal: Runs the judges and records their failures.
    """
    if not query.concepts:
        return None
    judges = [(step, judge) for step in stage.channels if (judge := ABOUT_CONCEPT.of(step.component))]
    scope = store.attributes.scope(query.wanted, query.now)
    memories: Ids | None = None
    for number, concept in enumerate(query.concepts):
        about = memories_with_all(concept, store.lexicon)
        for step, judge in judges:
            work = partial(_judged, judge, step.id, concept, query, scope, store, journal.shown)
            judged = journal.call(
                "candidates", step, len(about), work, "the words of the concepts alone", branch=number
            )
            if judged is not None:
                about = np.union1d(about, judged)
        memories = about if memories is None else np.intersect1d(memories, about)
    journal.join()
    assert memories is not None  # a query reaches this with at least one concept
    return tuple(memories[scope.admits(memories)].tolist())


def _judged(
    judge: ConceptJudge, step: str, concept: str, query: Query, scope: Scope, store: Store, shown: DefensiveCopies
) -> Ids | Unavailable:
    answer = judge.about_concept(concept, shown.query(query), store)
    return check_memories(answer, scope, store.attributes, step)


MAX_ATTEMPTS = 3
"""Maximum number of further searches with a more generous plan if the channels find nothing (feature C14)."""

MAX_CHANNEL_LIMIT = 1000

_FIXED = ("memories", "warnings", "asked_similarity", "attempt")
"""Fields of a plan that no step may change."""


def understand(stage: CandidateStage, query: Query, store: Store, journal: StepRunner) -> Query:
    """The query with the plan that the understanding steps make.

    Args:
        stage: The candidate stage.
        query: The query, not yet planned.
        store: The store to search.
        journal: Runs the steps and records them.
    """
    memories = about_all(stage, query, store, journal)
    unsearched = left_unsearched(query.terms, query.text, store.lexicon)
    plan = Plan(variants=(query.text,), memories=memories, warnings=unsearched)
    if query.intent:
        plan = replace(plan, intent=query.intent, intent_confidence=1.0, reasons=(f"intent: {query.intent}, as asked",))
    query = query.planned(with_demands(plan, query, store))
    for step in stage.understand:
        # The caller's intent takes precedence over a detected one.
        if step.about.finds_intent and query.intent is not None:
            continue
        work = partial(_understood, step, stage, query, store, journal.shown)
        changed = journal.call("candidates", step, 0, work, "the plan without this step", fits=partial(_fits, stage))
        before = query.plan
        query = query if changed is None or changed is before else query.planned(changed)
        journal.reached(step, before, query.plan)
    journal.understood(query.plan)
    return query


def _understood(
    step: BoundStep[Understander], stage: CandidateStage, query: Query, store: Store, shown: DefensiveCopies
) -> Plan | Unavailable:
    asked = shown.query(query)
    return _planned(step.component.understand(asked, asked.plan, store), step.id, stage, query)


def _recovered(
    step: BoundStep[Recoverer], stage: CandidateStage, query: Query, store: Store, shown: DefensiveCopies
) -> Plan | Unavailable:
    asked = shown.query(query)
    return _planned(step.component.recover(asked, asked.plan, store), step.id, stage, query)


def _planned(answer: object, step: str, stage: CandidateStage, query: Query) -> Plan | Unavailable:
    """The plan returned by a step, with the fields restored that a step may not change. Raises ContractError."""
    plan = check_plan(answer, query, step)
    before = query.plan
    if isinstance(plan, Plan) and any(getattr(plan, name) is not getattr(before, name) for name in _FIXED):
        plan = replace(
            plan,
            memories=before.memories,
            warnings=before.warnings,
            asked_similarity=before.asked_similarity,
            attempt=before.attempt,
        )
    return check_asked(plan, [channel.id for channel in stage.channels], step)


def gather(stage: CandidateStage, query: Query, store: Store, journal: StepRunner) -> tuple[Query, Candidates]:
    """The query with the final plan, and the candidates of all channels.

    Hits of unconditional channels do not count as found: otherwise a store with one constitutional memory would never
    be searched again.

    Args:
        stage: The candidate stage.
        query: The query with its plan.
        store: The store to search.
        journal: Runs the steps and records them.

    Raises:
        SpeckitError: E040 if no channel answered at all.
    """
    unconditional = {step.id for step in stage.channels if step.about.unconditional}
    searches = _ask(stage, query, store, journal)
    for step in stage.recover:
        while _silent(searches, unconditional) and query.plan.attempt < MAX_ATTEMPTS:
            query = query.planned(replace(query.plan, asked_similarity=_similarity(stage, searches)))
            work = partial(_recovered, step, stage, query, store, journal.shown)
            plan = journal.call("candidates", step, 0, work, "the empty answer", fits=partial(_fits, stage))
            journal.reached(step, query.plan, query.plan if plan is None else plan)
            # A recoverer gives up by returning the plan unchanged.
            if plan is None or plan == query.plan:
                break
            query = query.planned(replace(plan, attempt=query.plan.attempt + 1))
            searches = _ask(stage, query, store, journal)
    return query, union(searches, store.attributes)


def _fits(stage: CandidateStage, plan: Plan) -> bool:
    """Whether a plan made for another pipeline uses a channel of this stage."""
    return plan.channels is None or any(channel.id in plan.channels for channel in stage.channels)


def _similarity(stage: CandidateStage, searches: list[ChannelSearch]) -> float:
    """The highest `min_similarity` among the parameters of the channels that answered, 0 if there is none."""
    answered = {search.channel for search in searches}
    asked = (getattr(step.params, "min_similarity", 0.0) for step in stage.channels if step.id in answered)
    # an extension may use that name for something else
    return max((value for value in asked if type(value) is float and math.isfinite(value)), default=0.0)


def _silent(searches: list[ChannelSearch], unconditional: set[str]) -> bool:
    return all(len(search.hits) == 0 or search.channel in unconditional for search in searches)


def _ask(stage: CandidateStage, query: Query, store: Store, journal: StepRunner) -> list[ChannelSearch]:
    plan = query.plan
    searches: list[ChannelSearch] = []
    searched = False
    channels = [channel for channel in stage.channels if plan.channels is None or channel.id in plan.channels]
    scope = unbound = store.attributes.scope(query.wanted, query.now)
    if query.wanted.of_the_tier != query.wanted:
        unbound = store.attributes.scope(query.wanted.of_the_tier, query.now)
    for variant, text in enumerate(plan.variants):
        asked = query if variant == 0 else _variant(query, text, store)
        # Variants are the outer loop: the query itself is searched first by all channels.
        for step in channels:
            limit = channel_limit(step, asked)
            bounds = unbound if step.about.unconditional else scope
            work = partial(channel_hits, step, asked, limit, bounds, store, journal.shown)
            # the first search runs even after the deadline: an empty answer is of no use
            due = not searched
            hits = journal.call("candidates", step, 0, work, "the other channels", due=due, branch=variant)
            journal.reached(step, None, hits)
            if hits is not None:
                searches.append(ChannelSearch(step.id, variant, hits, limit))
                searched = searched or step.about.costly
    if not searches:
        reasons = "; ".join(f"{part.part}: {part.reason}" for part in journal.degraded)
        raise SpeckitError("E040", f"no channel could answer ({reasons})")
    journal.join()
    return searches


def _variant(query: Query, text: str, store: Store) -> Query:
    return replace(query, text=text, terms=searchable(text, store.lexicon)).planned(query.plan)


def channel_hits(
    step: BoundStep[Channel], query: Query, limit: int, scope: Scope, store: Store, shown: DefensiveCopies
) -> Hits | Unavailable:
    """At most `limit` hits of a channel within a scope, as a private copy.

    Args:
        step: The channel.
        query: The query with its plan.
        limit: Maximum number of hits.
        scope: The memories that the query's filter admits.
        store: The store to search.
        shown: Makes the copy of the query that the channel is given.

    Raises:
        ContractError: If the answer violates the contract of channels.
    """
    hits = check_hits(step.component.search(shown.query(query), limit, store), limit, step.id)
    return hits if isinstance(hits, Unavailable) else check_source(hits, step, scope, store.attributes)


def channel_limit(step: BoundStep[Channel], query: Query) -> int:
    """The maximum number of hits of a channel for this query."""
    assert isinstance(step.params, ChannelParams)  # the registry accepts no other class
    limit = query.plan.limits.get(step.id, step.params.limit)
    return int(min(limit * query.plan.limit_factor, MAX_CHANNEL_LIMIT))
