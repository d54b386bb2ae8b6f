"""Keeps the answer within a number of tokens."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Notes, Query
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params


class TokenBudgetParams(Params):
    """The budget, and what is sent of each row."""

    budget: Annotated[int, Field(ge=100)] | Literal["by_complexity"] = Field(
        2000, description="Tokens that all rows together may take, or 'by_complexity'."
    )
    simple: int = Field(1500, ge=100, description="Budget of simple queries, for 'by_complexity'.")
    moderate: int = Field(2500, ge=100, description="Budget of moderate queries, for 'by_complexity'.")
    complex: int = Field(4000, ge=100, description="Budget of complex queries, for 'by_complexity'.")
    sent: Literal["snippet", "content"] = Field(
        "snippet", description="What an answer holds of each row: the matched passage, or the whole memory."
    )
    characters_per_token: float | None = Field(
        None, ge=0.5, le=10, description="Characters that make one token; counted by the tokeniser when left out."
    )
    snippet: int = Field(400, ge=20, description="Characters of a passage that are sent at most.")


class TokenBudget:
    """Keeps rows from the top as long as they fit, counting tokens as the answers of tools do.

    The catalogue counts four characters as one token, rounded up per row (`characters_per_token: 4`); code, tables
    and most scripts but the Latin one cost more than that. Stops at the first row that does not fit, so that nothing
    stands below a row that is missing. The first row always stays. Only what is sent is counted, and only the rows
    that the query's limit lets through. What was left out stands in the notes. Feature A6.
    """

    about = About(features=("A6",))
    Params = TokenBudgetParams

    def __init__(self, params: TokenBudgetParams) -> None:
        self._params = params

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:
        """Which rows fit, and what the others would have taken."""
        p = self._params
        budget = getattr(p, query.plan.complexity) if p.budget == "by_complexity" else p.budget
        shown = min(query.limit, len(ranking))
        tokens = self._tokens(ranking, shown, store)
        fits = np.cumsum(tokens) <= budget
        fits[:1] = True
        kept = int(np.argmin(fits)) if not fits.all() else shown
        overall = {"token_budget": budget, "tokens": int(tokens[:kept].sum())}
        if kept == shown:
            return Notes(overall=overall)
        keep = np.arange(len(ranking)) < kept
        overflow = {"rows": shown, "kept": kept, "tokens_wanted": int(tokens.sum())}
        return Notes(overall={**overall, "overflow": overflow}, keep=keep)

    def _tokens(self, ranking: Ranking, shown: int, store: Store) -> Column:
        if self._params.sent == "content":
            bodies = [store.passages.body(memory) for memory in store.attributes.parents(ranking.ids[:shown]).tolist()]
            return self._counted(bodies, store)
        texts = store.passages.passages(ranking.matched[:shown].tolist())
        return self._counted([passage.text[: self._params.snippet] for passage in texts], store)

    def _counted(self, texts: list[str], store: Store) -> Column:
        characters = self._params.characters_per_token
        if characters is None:
            return np.array(store.tokens.count(texts), np.float64)
        return np.ceil(np.array([len(text) for text in texts], np.float64) / characters)
