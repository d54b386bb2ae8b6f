"""The view of a store that one search uses."""

from __future__ import annotations

from functools import cached_property
from typing import final

from speckit_memory.pipeline.ports import (
    Attributes,
    CausalGraph,
    EncoderModel,
    Folders,
    FullText,
    Lexicon,
    Passages,
    RelevanceModel,
    Sessions,
    Store,
    TokenSpace,
    Triggers,
    VectorSpace,
)
from speckit_memory.pipeline.running.memoised_store import SearchAttributes, SearchLexicon, SearchTokens, SearchVectors


@final
class StoreView:
    """A view of a store for the components of one search, discarded with it. Implements `Store`.

    Repeated requests of several components are answered from memory (`pipeline.running.memoised_store`),
    so that no component needs to keep anything between two queries, and nothing is kept for longer than the search.
    """

    def __init__(self, store: Store) -> None:
        """A view of a view is a view of the underlying store, and does not share what the other has found."""
        self._store: Store = store._store if isinstance(store, StoreView) else store

    @cached_property
    def attributes(self) -> Attributes:
        """Facts about the memories."""
        return SearchAttributes(self._store.attributes)

    @cached_property
    def vectors(self) -> VectorSpace:
        """The embeddings of all chunks."""
        return SearchVectors(self._store.vectors)

    @cached_property
    def lexicon(self) -> Lexicon:
        """The inverted indexes."""
        return SearchLexicon(self._store.lexicon)

    @cached_property
    def tokens(self) -> TokenSpace:
        """Static token vectors."""
        return SearchTokens(self._store.tokens)

    @cached_property
    def passages(self) -> Passages:
        """The texts."""
        return self._store.passages

    @cached_property
    def fulltext(self) -> FullText:
        """The FTS5 table."""
        return self._store.fulltext

    @cached_property
    def graph(self) -> CausalGraph:
        """The causal edges."""
        return self._store.graph

    @cached_property
    def triggers(self) -> Triggers:
        """The trigger phrases."""
        return self._store.triggers

    @cached_property
    def folders(self) -> Folders:
        """The folders and their descriptions."""
        return self._store.folders

    @cached_property
    def sessions(self) -> Sessions:
        """The state of sessions."""
        return self._store.sessions

    @cached_property
    def relevance(self) -> RelevanceModel:
        """The cross-encoder."""
        return self._store.relevance

    @cached_property
    def encoder(self) -> EncoderModel:
        """The sentence encoder for reranking."""
        return self._store.encoder
