"""Dry runs: what a query would do, and its cost, without running it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from speckit_memory.engine.answers.answer import coverage
from speckit_memory.engine.answers.result_parts import Coverage
from speckit_memory.pipeline.configuration.checked_variants import CheckedVariant
from speckit_memory.pipeline.configuration.variants import VariantMode
from speckit_memory.pipeline.model.columns import Mode, Query
from speckit_memory.pipeline.model.costs import StepCostEstimate
from speckit_memory.pipeline.ports import Scope, Store
from speckit_memory.pipeline.process.interrupts import call_guarded
from speckit_memory.pipeline.roles.composition import BoundStep
from speckit_memory.pipeline.roles.contracts import Channel, Reranker
from speckit_memory.pipeline.roles.hooks import COST
from speckit_memory.pipeline.running.gathering import channel_limit, understand
from speckit_memory.pipeline.running.journal import StepRunner
from speckit_memory.pipeline.running.lookup import memories_with, searchable
from speckit_memory.pipeline.running.runner import Runner


@dataclass(frozen=True, slots=True)
class SearchCost:
    """Counts over all query variants. Those that depend on retrieved rows are upper bounds, and named so.

    See `pipeline.model.costs.StepCostEstimate` for the meaning of each; SQLite's full-text index counts as one index.
    """

    memories_in_scope: int
    postings: int
    vectors: int
    edges_at_most: int
    feedback_words_at_most: int
    candidates_at_most: int
    passages_compared_at_most: int
    cross_encoder_pairs_at_most: int


def work(
    wordings: Iterable[Query],
    channels: Iterable[tuple[BoundStep[Channel], int]],
    rerank: Iterable[BoundStep[Reranker]],
    scope: Scope,
    store: Store,
) -> SearchCost:
    """The work of the channels for each query variant, and of the rerankers.

    Args:
        wordings: The query variants.
        channels: The channels, each with its limit of hits.
        rerank: The rerankers.
        scope: The memories that the filters admit.
        store: The store.
    """
    cost, hits, query = StepCostEstimate(), 0, None
    asked = tuple(channels)
    for query in wordings:
        for channel, limit in asked:
            hits += limit
            cost += _cost(channel.component, query, limit, store)
    # an upper bound: there are no more candidates than hits, or than passages in the store
    candidates = min(hits, int(np.count_nonzero(store.lexicon.index("body", "chunk").ids >= 0)))
    if query is not None:
        for step in rerank:
            cost += _cost(step.component, query, candidates, store)
    return SearchCost(
        memories_in_scope=scope.size,
        postings=cost.postings,
        vectors=cost.vectors,
        edges_at_most=cost.edges,
        feedback_words_at_most=cost.feedback_words,
        candidates_at_most=candidates,
        passages_compared_at_most=cost.compared_passages,
        cross_encoder_pairs_at_most=cost.read_pairs,
    )


def _cost(component: object, query: Query, rows: int, store: Store) -> StepCostEstimate:
    """The estimate of a component; zero if it has none, or fails."""
    estimate = COST.of(component)
    if estimate is None:
        return StepCostEstimate()
    found, _ = call_guarded(lambda: estimate.cost(query, rows, store))
    return found if type(found) is StepCostEstimate else StepCostEstimate()


@dataclass(frozen=True, slots=True)
class PlannedChannel:
    """A channel, whether it would be queried, and its limit of hits."""

    id: str
    use: str
    asked: bool
    limit: int


@dataclass(frozen=True, slots=True)
class PlannedVariant:
    """A variant that would run with the pipeline, for the share `sample` of queries."""

    name: str
    mode: VariantMode
    flag: str
    hash: str
    sample: float


@dataclass(frozen=True, slots=True)
class PlanReport:
    """What a search would do. `work` counts what it would read, so that its cost is known in advance.

    `terms` are the terms of all query variants, each with its document frequency over all fields. Time is not
    estimated, as it depends on the machine; `budget_ms` is the budget for the query's complexity.
    """

    query: str
    intent: str
    intent_confidence: float
    complexity: str
    complexity_confidence: str
    coverage: Coverage | None
    mode: Mode
    budget_ms: float
    variants: tuple[str, ...]
    required: tuple[str, ...]
    excluded: tuple[str, ...]
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    channels: tuple[PlannedChannel, ...]
    steps: dict[str, tuple[str, ...]]
    terms: tuple[tuple[str, int], ...]
    work: SearchCost
    beside: tuple[PlannedVariant, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The plan as plain data."""
        return {
            "query": self.query,
            "plan": {
                "intent": self.intent,
                "intent_confidence": round(self.intent_confidence, 4),
                "complexity": self.complexity,
                "complexity_confidence": self.complexity_confidence,
                "coverage": self.coverage.as_json() if self.coverage else None,
                "mode": self.mode,
                "variants": list(self.variants),
                "required": list(self.required),
                "excluded": list(self.excluded),
                "reasons": list(self.reasons),
                "warnings": list(self.warnings),
                "channels": [{"id": c.id, "use": c.use, "asked": c.asked, "limit": c.limit} for c in self.channels],
            },
            "steps": {stage: list(steps) for stage, steps in self.steps.items()},
            "terms": [{"term": term, "memories": count} for term, count in self.terms],
            "work": asdict(self.work),
            "budget_ms": self.budget_ms,
            "beside": [asdict(variant) for variant in self.beside],
        }


def plan_report(runner: Runner, query: Query, store: Store, variants: Sequence[CheckedVariant] = ()) -> PlanReport:
    """Runs query understanding alone and counts what the other stages would read.

    Args:
        runner: The pipeline.
        query: The query.
        store: The store.
        variants: The variants to list in the report.
    """
    pipeline = runner.pipeline
    journal = StepRunner(time.perf_counter_ns, None, strict=False)
    query = understand(pipeline.candidates, query, store, journal)
    plan = query.plan
    declared = [(step, channel_limit(step, query)) for step in pipeline.candidates.channels]
    asked = [(step, limit) for step, limit in declared if plan.channels is None or step.id in plan.channels]
    names = {step.id for step, _ in asked}
    wordings = [replace(query, text=text, terms=searchable(text, store.lexicon)) for text in plan.variants]
    # In order of first use, each term once.
    terms = dict.fromkeys(term for wording in wordings for term in wording.terms)
    scope = store.attributes.scope(query.wanted, query.now)
    return PlanReport(
        query=query.text,
        intent=plan.intent,
        intent_confidence=plan.intent_confidence,
        complexity=plan.complexity,
        complexity_confidence=plan.complexity_confidence,
        coverage=coverage(plan),
        mode=query.running_mode,
        budget_ms=pipeline.budgets_ms[plan.complexity],
        variants=plan.variants,
        required=query.required,
        excluded=query.excluded,
        reasons=plan.reasons,
        warnings=plan.warnings,
        channels=tuple(PlannedChannel(step.id, step.use, step.id in names, limit) for step, limit in declared),
        steps={
            "fusion": (pipeline.fusion.fuser.id, *(step.id for step in pipeline.fusion.signals)),
            "rerank": tuple(step.id for step in pipeline.rerank),
            "annotate": tuple(step.id for step in pipeline.annotate),
        },
        terms=tuple((term, len(memories_with(term, store.lexicon))) for term in terms),
        work=work(wordings, asked, pipeline.rerank, scope, store),
        beside=tuple(
            PlannedVariant(one.variant.name, one.variant.mode, one.variant.flag, one.checked.hash, one.variant.sample)
            for one in variants
        ),
    )
