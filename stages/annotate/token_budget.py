"""Limits the answer to a number of tokens."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Notes, Query
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.roles.contracts import About, Params


class TokenBudgetParams(Params):
    """The budget, and the text that is sent of each row."""

    budget: Annotated[int, Field(ge=100)] | Literal["by_complexity"] = Field(
        2000, description="Maximum tokens of all rows together, or 'by_complexity'."
    )
    simple: int = Field(1500, ge=100, description="Budget of simple queries, for 'by_complexity'.")
    moderate: int = Field(2500, ge=100, description="Budget of moderate queries, for 'by_complexity'.")
    complex: int = Field(4000, ge=100, description="Budget of complex queries, for 'by_complexity'.")
    sent: Literal["snippet", "content"] = Field(
        "snippet", description="The text sent of each row: the matched passage, or the whole memory."
    )
    characters_per_token: float | None = Field(
        None, ge=0.5, le=10, description="Characters per token; by default the tokeniser counts."
    )
    snippet: int = Field(400, ge=20, description="Maximum characters sent of a passage.")


class TokenBudget:
    """Keeps rows from the top as long as they fit the budget, counting tokens as tool answers do.

    A fixed ratio such as four characters per token, rounded up per row (`characters_per_token: 4`), underestimates
    code, tables and most non-Latin scripts. It stops at the first row that does not fit, so that no row is shown below
    a missing one. The first row always remains. Only the sent text is counted, and only for rows within the query's
    limit. The notes report the omitted rows. Feature A6.
    """

    about = About(features=("A6",))
    Params = TokenBudgetParams

    def __init__(self, params: TokenBudgetParams) -> None:
        self._params = params

    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:
        """The mask of the rows that fit, and the tokens that all would have taken."""
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
            memories = store.attributes.parents(ranking.ids[:shown]).tolist()
            bodies = store.passages.bodies(memories)
            return self._counted([bodies[memory] for memory in memories], store)
        texts = store.passages.passages(ranking.matched[:shown].tolist())
        return self._counted([passage.text[: self._params.snippet] for passage in texts], store)

    def _counted(self, texts: list[str], store: Store) -> Column:
        characters = self._params.characters_per_token
        if characters is None:
            return np.array(store.tokens.count(texts), np.float64)
        return np.ceil(np.array([len(text) for text in texts], np.float64) / characters)
