"""A dry run: what a query would do, and what that costs, without doing it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from pipeline.boundary import Journal
from pipeline.gathering import channel_limit, understand
from pipeline.model import Mode, Query
from pipeline.ports import Store
from pipeline.runner import Runner


@dataclass(frozen=True, slots=True)
class PlannedChannel:
    """A channel, whether it would be asked, and for how many hits."""

    id: str
    use: str
    asked: bool
    limit: int


@dataclass(frozen=True, slots=True)
class PlanReport:
    """What a search would do. `work` counts what would be read, so that the cost can be judged before it is paid."""

    query: str
    intent: str
    intent_confidence: float
    complexity: str
    mode: Mode
    budget_ms: float
    variants: tuple[str, ...]
    reasons: tuple[str, ...]
    channels: tuple[PlannedChannel, ...]
    steps: dict[str, tuple[str, ...]]
    terms: tuple[tuple[str, int], ...]
    work: dict[str, int]

    def as_json(self) -> dict[str, Any]:
        """The plan as plain data."""
        return {
            "query": self.query,
            "plan": {
                "intent": self.intent,
                "intent_confidence": round(self.intent_confidence, 4),
                "complexity": self.complexity,
                "mode": self.mode,
                "variants": list(self.variants),
                "reasons": list(self.reasons),
                "channels": [{"id": c.id, "use": c.use, "asked": c.asked, "limit": c.limit} for c in self.channels],
            },
            "steps": {stage: list(steps) for stage, steps in self.steps.items()},
            "terms": [{"term": term, "memories": count} for term, count in self.terms],
            "work": self.work,
            "budget_ms": self.budget_ms,
        }


def plan_report(runner: Runner, query: Query, store: Store) -> PlanReport:
    """Runs query understanding alone, and counts what the rest would read."""
    journal = Journal(time.perf_counter_ns, None, strict=False)
    pipeline = runner.pipeline
    query = understand(pipeline.candidates, query, store, journal)
    plan = query.plan
    channels = []
    for step in pipeline.candidates.channels:
        asked = plan.channels is None or step.id in plan.channels
        channels.append(PlannedChannel(step.id, step.use, asked, channel_limit(step, query)))
    body = store.lexicon.index("body")
    terms = tuple((term, len(body.postings(term).rows)) for term in dict.fromkeys(query.terms))
    scope = store.attributes.scope(query.wanted, query.now)
    return PlanReport(
        query=query.text,
        intent=plan.intent,
        intent_confidence=plan.intent_confidence,
        complexity=plan.complexity,
        mode=query.running_mode,
        budget_ms=pipeline.budgets_ms[plan.complexity],
        variants=plan.variants,
        reasons=plan.reasons,
        channels=tuple(channels),
        steps={
            "fusion": (pipeline.fusion.fuser.id, *(step.id for step in pipeline.fusion.signals)),
            "rerank": tuple(step.id for step in pipeline.rerank),
            "annotate": tuple(step.id for step in pipeline.annotate),
        },
        terms=terms,
        work={
            "memories_in_scope": scope.size,
            "postings": sum(count for _, count in terms),
            "edges": store.graph.edge_count,
            "candidates_at_most": sum(c.limit for c in channels if c.asked) * len(plan.variants),
        },
    )
