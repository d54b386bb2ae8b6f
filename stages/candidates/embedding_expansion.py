"""Expands the query with words of its nearest passages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Plan, Query
from speckit_memory.pipeline.ports import Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params, PipelineContext

SHORTEST = 3
"""Minimum length of added words."""

_WORD = re.compile(r"[^\W\d_]+")


class EmbeddingExpansionParams(Params):
    """Parameters of expansion by nearest passages."""

    neighbours: int = Field(5, ge=1, le=20, description="Number of nearest passages from which words are taken.")
    terms: int = Field(8, ge=1, le=30, description="Maximum number of added words.")


class EmbeddingExpansion:
    """Adds a variant: the query followed by the most frequent words of the passages nearest to it.

    Stop words and words of the query are not added; among equally frequent words the alphabetically first are. Simple
    queries are not expanded: that would contradict their classification. Feature C12.
    """

    about = About(features=("C12",), costly=True)
    Params = EmbeddingExpansionParams

    def __init__(self, params: EmbeddingExpansionParams) -> None:
        self._params = params

    @classmethod
    def check(
        cls, _: EmbeddingExpansionParams, context: PipelineContext
    ) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """A step distinguishes simple queries from others."""
        if "complexity" not in context.uses:
            yield (), "must not expand simple queries, but no step finds them; add 'complexity' before it"

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan | Unavailable:
        """The plan with one more variant."""
        if plan.complexity == "simple":
            return replace(plan, reasons=plan.because("embedding_expansion: not for simple queries"))
        vector = store.vectors.embed(query.text)
        if isinstance(vector, Unavailable):
            return vector
        words = self._words(query, vector, store) if np.any(vector) else []
        if not words:
            return plan
        variants = (*plan.variants, " ".join((query.text, *words)))
        return replace(plan, variants=variants, reasons=plan.because(f"embedding_expansion: added {' '.join(words)}"))

    def _words(
        self, query: Query, vector: np.ndarray[tuple[int, ...], np.dtype[np.float32]], store: Store
    ) -> list[str]:
        scope = store.attributes.scope(query.wanted, query.now)
        ids, _, _ = store.vectors.nearest(vector, self._params.neighbours, scope, "chunk")
        counted: Counter[str] = Counter()
        for passage in store.passages.passages(ids.tolist()):
            # The analyser drops stop words from running text; the query's own terms are already searched.
            new_terms = set(store.lexicon.analyse(passage.text)) - set(query.terms)
            for word, count in Counter(_WORD.findall(passage.text.casefold())).items():
                if len(word) >= SHORTEST and not new_terms.isdisjoint(store.lexicon.analyse(word)):
                    counted[word] += count
        return sorted(counted, key=lambda word: (-counted[word], word))[: self._params.terms]
