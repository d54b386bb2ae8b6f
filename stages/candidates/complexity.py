"""Classifies queries by the effort they need: simple, moderate or complex."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from pydantic import Field

from speckit_memory.pipeline.model.columns import Complexity as Tier
from speckit_memory.pipeline.model.columns import Confidence, Plan, Query
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import About, Params, PipelineContext

_STOP_WORDS = """
    a an and are as at be by can did do does for from how i in is it me my of on or the that this to was what when where
    which who why with you
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""37 words without content; they only affect the confidence of the classification."""

_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class ComplexityParams(Params):
    """The thresholds of the classification."""

    simple: int = Field(3, ge=1, le=100, description="Maximum number of terms of a simple query.")
    complex: int = Field(8, ge=1, le=100, description="Queries with more terms than this are complex.")


class Complexity:
    """Classifies the query as simple (at most 3 terms, or exactly a trigger phrase), complex (more than 8) or moderate.

    Terms are separated by blanks; in scripts without blanks two characters count as one term. The confidence is high
    for an exact trigger phrase or a count well away from the thresholds, and low if most terms are stop words. If this
    step is missing or fails, every query counts as complex, so that nothing is left out, and the confidence is
    fallback. Feature C9.
    """

    about = About(features=("C9",), before=("router", "embedding_expansion"))
    Params = ComplexityParams

    def __init__(self, params: ComplexityParams) -> None:
        self._params = params

    @classmethod
    def check(cls, params: ComplexityParams, _: PipelineContext) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """The thresholds are in order."""
        if params.complex <= params.simple:
            yield ("complex",), f"must be above 'simple' ({params.simple}); found {params.complex}"

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:
        """The plan with the complexity and the reason for it."""
        terms = query.text.split()
        # CJK: ceil(characters / 2) terms; any other word is one term
        count = sum(-(-len(_CJK.findall(term)) // 2) or 1 for term in terms)
        if store.triggers.exact(query.text):
            return self._planned(plan, "simple", "high", "the query is a trigger phrase")
        tier: Tier = "complex" if count > self._params.complex else "moderate"
        if count <= self._params.simple:
            tier = "simple"
        stopped = sum(term.casefold().strip("?!.,;:\"'()") in STOP_WORDS for term in terms)
        label: Confidence
        if stopped > len(terms) / 2:
            label = "low"
        else:
            # The distance to the nearest threshold, which lies between two counts.
            border = min(abs(count - self._params.simple - 0.5), abs(count - self._params.complex - 0.5))
            label = "high" if border > 1 else "medium"
        return self._planned(plan, tier, label, f"{count} terms, {stopped} of them stop words")

    @staticmethod
    def _planned(plan: Plan, tier: Tier, label: Confidence, why: str) -> Plan:
        reason = f"complexity: {tier} (confidence {label}): {why}"
        return replace(plan, complexity=tier, complexity_confidence=label, reasons=plan.because(reason))
