"""What the steps of a pipeline would read for a query, counted from the inverted indexes without searching."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from speckit_memory.channels.bm25 import Bm25Params, informative_terms
from speckit_memory.channels.degree import DegreeParams
from speckit_memory.channels.fts5 import Fts5Params
from speckit_memory.channels.graph import GraphParams
from speckit_memory.channels.identifier import IdentifierParams, identifiers
from speckit_memory.channels.vector import VectorParams
from speckit_memory.memory.store.read_model.matrix import GATHERED_SHARE
from speckit_memory.pipeline.composition import BoundStep
from speckit_memory.pipeline.contracts import Channel, Reranker
from speckit_memory.pipeline.lookup import memories_with
from speckit_memory.pipeline.model import Query
from speckit_memory.pipeline.ports import FIELDS, Ids, Scope, Store, TermIndex, Unavailable
from speckit_memory.stages.rerank.cross_encoder import CrossEncoderParams
from speckit_memory.stages.rerank.maxsim import MaxsimParams

SEEDS = Bm25Params.model_validate({})
"""How the channels of the graph look for the memories that they start from."""


@dataclass(frozen=True, slots=True)
class Work:
    """Counts over all wordings of a query. What depends on what is found is an upper bound, and named so.

    `postings` counts one for each memory or passage that holds a word, in every index that a channel reads, as often as
    it is read; SQLite's full-text index counts as one. `vectors` are the rows that the query is compared with.
    `edges_at_most` are causal edges that a walk or a degree looks at, `feedback_words_at_most` further words that BM25
    takes from its first hits and searches as well. `passages_compared_at_most` are compared token by token,
    `cross_encoder_pairs_at_most` read together with the query by the cross-encoder, should one be configured.
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
) -> Work:
    """The work of these channels, each with its limit of hits, for each wording, and of the rerank steps after them."""
    passages = store.lexicon.index("body", "chunk").ids
    passages = passages[passages >= 0]
    edges = store.graph.edge_count
    postings = vectors = walked = feedback = hits = 0
    asked = tuple(channels)
    for query in wordings:
        for step, limit in asked:
            hits += limit
            match step.params:
                case Bm25Params() as params:
                    postings += _bm25(params, query, store)
                    if params.feedback.model != "none" and query.plan.complexity != "simple":
                        feedback += params.feedback.terms
                case GraphParams() as params if edges:
                    postings += _bm25(SEEDS, query, store)
                    walked += edges * params.hops
                case DegreeParams():
                    postings += _bm25(SEEDS, query, store)
                    walked += edges
                case Fts5Params():
                    postings += sum(len(memories_with(term, store.lexicon)) for term in set(query.terms))
                case IdentifierParams():
                    indexes = [store.lexicon.index(field) for field in FIELDS]
                    postings += _read(indexes, identifiers(query.text, store))
                case VectorParams() if store.vectors.dimensions:
                    vectors += _compared(passages, scope, store)
    candidates = min(hits, len(passages))
    pools = [step.params for step in rerank]
    by_token = [params.pool for params in pools if isinstance(params, MaxsimParams)]
    if by_token and isinstance(store.tokens.of_text(""), Unavailable):
        by_token = []
    pairs = [params.pool for params in pools if isinstance(params, CrossEncoderParams)]
    return Work(
        memories_in_scope=scope.size,
        postings=postings,
        vectors=vectors,
        edges_at_most=walked,
        feedback_words_at_most=feedback,
        candidates_at_most=candidates,
        passages_compared_at_most=sum(min(pool, candidates) for pool in by_token),
        cross_encoder_pairs_at_most=sum(min(pool, candidates) for pool in pairs),
    )


def _read(indexes: Iterable[TermIndex], terms: Iterable[str]) -> int:
    terms = tuple(terms)
    return sum(index.holders(term) for index in indexes for term in terms)


def _bm25(params: Bm25Params, query: Query, store: Store) -> int:
    """The postings behind the indexes of words of the channel; of a long query, of the words that tell most."""
    weighed = [*params.fields.model_dump().items(), *params.single.model_dump().items()]
    indexes = [store.lexicon.index(field) for field in FIELDS for name, weight in weighed if name == field and weight]
    if params.passage:
        indexes.append(store.lexicon.index("body", "chunk"))
        indexes += [store.lexicon.index("title")] if params.passage_title else []
    return _read(indexes, informative_terms(params, query, store))


def _compared(passages: Ids, scope: Scope, store: Store) -> int:
    """How many vectors one query is compared with: all, unless the filter admits only a small share of the store."""
    if scope.size > GATHERED_SHARE * store.attributes.count:
        return len(passages)
    return int(np.count_nonzero(scope.admits(passages)))
