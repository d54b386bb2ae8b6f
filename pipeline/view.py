"""What one search sees of a store."""

from __future__ import annotations

from typing import final

from speckit_memory.pipeline.ports import (
    Attributes,
    CausalGraph,
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


@final
class StoreView:
    """A store as the components of one search see it; made for the search and dropped with it. Implements `Store`.

    A state of the store serves many searches at the same time, and what a component does to the object in its hands
    must not reach the others. Nothing here can be assigned to, and what the ports answer is the asker's own or cannot
    be changed. Names with an underscore and the classes themselves are out of bounds: nothing keeps code of the same
    process from these.
    """

    __slots__ = ("_store",)

    def __init__(self, store: Store) -> None:
        self._store: Store = store._store if isinstance(store, StoreView) else store

    @property
    def attributes(self) -> Attributes:
        """Facts about the memories."""
        return self._store.attributes

    @property
    def passages(self) -> Passages:
        """The texts."""
        return self._store.passages

    @property
    def vectors(self) -> VectorSpace:
        """The embeddings of all chunks."""
        return self._store.vectors

    @property
    def lexicon(self) -> Lexicon:
        """The inverted indexes."""
        return self._store.lexicon

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
        return self._store.tokens

    @property
    def relevance(self) -> RelevanceModel:
        """The cross-encoder."""
        return self._store.relevance
