"""Queries with several concepts: determines which memories are about all of them (feature C1).

A memory is about a concept if it holds all of its words, in any fields, or if a channel judges it so by its own
evidence, as the vector channel does above a certain similarity. The memories that are about every concept become the
scope of the query, so that no channel can return others, even one that does not know of concepts.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from speckit_memory.pipeline.guards.checks import check_memories
from speckit_memory.pipeline.guards.defensive_copies import DefensiveCopies
from speckit_memory.pipeline.model.columns import Query
from speckit_memory.pipeline.ports import Ids, Scope, Store, Unavailable
from speckit_memory.pipeline.roles.composition import CandidateStage
from speckit_memory.pipeline.roles.hooks import ABOUT_CONCEPT, ConceptJudge
from speckit_memory.pipeline.running.journal import StepRunner
from speckit_memory.pipeline.running.lookup import memories_with_all


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
    found: Ids | None = None
    for number, concept in enumerate(query.concepts):
        about = memories_with_all(concept, store.lexicon)
        for step, judge in judges:
            work = partial(_judged, judge, step.id, concept, query, scope, store, journal.shown)
            judged = journal.call(
                "candidates", step, len(about), work, "the words of the concepts alone", branch=number
            )
            if judged is not None:
                about = np.union1d(about, judged)
        found = about if found is None else np.intersect1d(found, about)
    journal.join()
    assert found is not None  # a query reaches this with at least one concept
    return tuple(found[scope.admits(found)].tolist())


def _judged(
    judge: ConceptJudge, step: str, concept: str, query: Query, scope: Scope, store: Store, shown: DefensiveCopies
) -> Ids | Unavailable:
    answer = judge.about_concept(concept, shown.query(query), store)
    return check_memories(answer, scope, store.attributes, step)
