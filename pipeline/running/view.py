"""The view of a store that one search uses."""

from __future__ import annotations

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

    Repeated requests of several components are answered from a cache (see `pipeline.running.memoised_store`), so that
    no component needs to keep anything between two queries, and nothing is kept for longer than the search.

    One state of the store serves many concurrent searches, and changes that a component makes to its objects must not
    affect the others. No attribute here can be assigned, and results of the ports are private to the caller or
    immutable. Private names and the classes themselves are out of bounds: code of the same process cannot be kept from
    using them.
    """

    __slots__ = ("_attributes", "_lexicon", "_store", "_tokens", "_vectors")

    def __init__(self, store: Store) -> None:
        """A view of a view is a view of the underlying store, and does not share the other's cache."""
        self._store: Store = store._store if isinstance(store, StoreView) else store
        # The caching parts are created on first use: many searches need only some of them.
        self._attributes: SearchAttributes | None = None
        self._lexicon: SearchLexicon | None = None
        self._vectors: SearchVectors | None = None
        self._tokens: SearchTokens | None = None

    @property
    def attributes(self) -> Attributes:
        """Facts about the memories."""
        if self._attributes is None:
            self._attributes = SearchAttributes(self._store.attributes)
        return self._attributes

    @property
    def passages(self) -> Passages:
        """The texts."""
        return self._store.passages

    @property
    def vectors(self) -> VectorSpace:
        """The embeddings of all chunks."""
        if self._vectors is None:
            self._vectors = SearchVectors(self._store.vectors)
        return self._vectors

    @property
    def lexicon(self) -> Lexicon:
        """The inverted indexes."""
        if self._lexicon is None:
            self._lexicon = SearchLexicon(self._store.lexicon)
        return self._lexicon

    @property
    def fulltext(self) -> FullText:
        """The FTS5 table."""
        return self._store.fulltext

    @property
    def graph(self) -> CausalGraph:
        """The causal edges."""
        return self._store.graph

    @property
    def triggers(self) -> Triggers:
        """The trigger phrases."""
        return self._store.triggers

    @property
    def folders(self) -> Folders:
        """The folders and their descriptions."""
        return self._store.folders

    @property
    def sessions(self) -> Sessions:
        """The state of sessions."""
        return self._store.sessions

    @property
    def tokens(self) -> TokenSpace:
        """Static token vectors."""
        if self._tokens is None:
            self._tokens = SearchTokens(self._store.tokens)
        return self._tokens

    @property
    def relevance(self) -> RelevanceModel:
        """The cross-encoder."""
        return self._store.relevance

    @property
    def encoder(self) -> EncoderModel:
        """The sentence encoder for reranking."""
        return self._store.encoder
