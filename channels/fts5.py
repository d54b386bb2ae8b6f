"""Memories matched by SQLite's full-text index."""

from __future__ import annotations

from pydantic import Field

from speckit_memory.pipeline.model.columns import Hits, Query
from speckit_memory.pipeline.model.costs import StepCostEstimate
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import About, ChannelParams, Params
from speckit_memory.pipeline.running.lookup import memories_with


class FieldWeights(Params):
    """Weights of the columns of the full-text index."""

    title: float = Field(default=10.0, ge=0, le=100, description="Weight of the title.")
    triggers: float = Field(default=5.0, ge=0, le=100, description="Weight of the trigger phrases.")
    path: float = Field(default=2.0, ge=0, le=100, description="Weight of the file path.")
    body: float = Field(default=1.0, ge=0, le=100, description="Weight of the text.")


class Fts5Params(ChannelParams):
    """Parameters of the FTS5 channel."""

    weights: FieldWeights = Field(FieldWeights(), description="Weight of each column.")


class Fts5:
    """FTS5's BM25 over whole memories, the words of the query joined by OR.

    SQLite reports better matches as more negative; scores here are positive, on the BM25 scale. Feature C2.
    """

    about = About(features=("C2",), gives=Scale.BM25, costly=True)
    Params = Fts5Params

    def __init__(self, params: Fts5Params) -> None:
        weights = params.weights
        self._weights = (weights.title, weights.triggers, weights.path, weights.body)

    def search(self, query: Query, limit: int, store: Store) -> Hits:
        """The `limit` best admitted memories that hold any word of the query."""
        scope = store.attributes.scope(query.wanted, query.now)
        ids, scores = store.fulltext.match(query.terms, self._weights, limit, scope)
        return Hits(ids, scores, Scale.BM25)

    def cost(self, query: Query, rows: int, store: Store) -> StepCostEstimate:  # noqa: ARG002
        """The memories that hold each word, counted as one index."""
        return StepCostEstimate(postings=sum(len(memories_with(term, store.lexicon)) for term in set(query.terms)))
