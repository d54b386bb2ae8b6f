"""How much effort a query deserves: simple, moderate or complex."""

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
"""37 words that carry no content; they only tell how sure the tier is."""

_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class ComplexityParams(Params):
    """Parameters of complexity classification; the defaults are the catalogue's."""

    simple: int = Field(3, ge=1, le=100, description="Queries of at most so many terms are simple.")
    complex: int = Field(8, ge=1, le=100, description="Queries of more terms than this are complex.")


class Complexity:
    """Classifies the query as simple (at most 3 terms, or exactly a trigger phrase), complex (more than 8) or moderate.

    Terms are separated by blanks; of scripts without blanks two characters count as a term. A confidence label says how
    sure that is: high for an exact trigger phrase or a count clear of the borders, low when most terms are stop words.
    Without this step, or when it fails, every query is complex, which leaves nothing out, and the label says fallback.
    Feature C9.
    """

    about = About(features=("C9",), before=("router", "embedding_expansion"))
    Params = ComplexityParams

    def __init__(self, params: ComplexityParams) -> None:
        self._params = params

    @classmethod
    def check(cls, params: ComplexityParams, _: PipelineContext) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """The borders are in order."""
        if params.complex <= params.simple:
            yield ("complex",), f"must be above 'simple' ({params.simple}); found {params.complex}"

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:
        """The plan with the complexity and why."""
        terms = query.text.split()
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
            border = min(abs(count - self._params.simple - 0.5), abs(count - self._params.complex - 0.5))
            label = "high" if border > 1 else "medium"
        return self._planned(plan, tier, label, f"{count} terms, {stopped} of them stop words")

    @staticmethod
    def _planned(plan: Plan, tier: Tier, label: Confidence, why: str) -> Plan:
        reason = f"complexity: {tier} (confidence {label}): {why}"
        return replace(plan, complexity=tier, complexity_confidence=label, reasons=plan.because(reason))
