"""What one search sees of a store."""

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
    """A store as the components of one search see it; made for the search and dropped with it. Implements `Store`.

    What several of them ask for is looked up once (see `pipeline.running.memoised_store`), so that no component has a reason to
    keep anything between two questions, and nothing is kept for longer than the search.

    A state of the store serves many searches at the same time, and what a component does to the object in its hands
    must not reach the others. Nothing here can be assigned to, and what the ports answer is the asker's own or cannot
    be changed. Names with an underscore and the classes themselves are out of bounds: nothing keeps code of the same
    process from these.
    """

    __slots__ = ("_attributes", "_lexicon", "_store", "_tokens", "_vectors")

    def __init__(self, store: Store) -> None:
        """A view of a view is one of the store behind it, and shares nothing that was asked through the other."""
        self._store: Store = store._store if isinstance(store, StoreView) else store
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
        """The folders and what they are about."""
        return self._store.folders

    @property
    def sessions(self) -> Sessions:
        """What is known of conversations."""
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
        """The sentence encoder of the second look."""
        return self._store.encoder
