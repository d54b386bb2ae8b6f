"""The view of a store that one search uses: filters, words, query vectors and tokens are remembered while it runs.

Several steps of a search make the same request. Answers are kept in objects that exist for one search only, so they
neither outlive the state of the store nor are shared by threads. Every other request is that of the store itself.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

from speckit_memory.pipeline.ports import (
    Attributes,
    CausalGraph,
    EncoderModel,
    Filter,
    Folders,
    FullText,
    Ids,
    Lexicon,
    Passages,
    RelevanceModel,
    Scope,
    Sessions,
    Store,
    TokenSpace,
    Triggers,
    Unavailable,
    Vectors,
    VectorSpace,
)


@final
class SearchAttributes:
    """Facts about the memories; each filter is evaluated once. Implements `Attributes`."""

    def __init__(self, of_store: Attributes) -> None:
        self._scope = of_store.scope
        self._scopes: dict[tuple[Filter, float], Scope] = {}
        self.parents = of_store.parents
        self.number = of_store.number
        self.label = of_store.label
        self.neighbours = of_store.neighbours
        self.of_tier = of_store.of_tier
        self.oldest_first = of_store.oldest_first
        self.in_folder = of_store.in_folder
        self.count = of_store.count

    def scope(self, wanted: Filter, now: float) -> Scope:
        """The memories that a filter admits at the time `now`."""
        found = self._scopes.get((wanted, now))
        if found is None:
            found = self._scopes[wanted, now] = self._scope(wanted, now)
        return found


@final
class SearchLexicon:
    """The analysed words of the store; each text is analysed once. Implements `Lexicon`."""

    def __init__(self, of_store: Lexicon) -> None:
        self._analyse, self.word_tokens = of_store.analyse, of_store.word_tokens
        self._tokens: dict[str, tuple[str, ...]] = {}
        self.index = of_store.index
        self.prefetch = of_store.prefetch
        self.bags = of_store.bags
        self.words = of_store.words
        self.near = of_store.near

    def analyse(self, text: str) -> tuple[str, ...]:
        """The tokens of a query, in order."""
        found = self._tokens.get(text)
        if found is None:
            found = self._tokens[text] = self._analyse(text)
        return found


@final
class SearchVectors:
    """The embeddings of all chunks; each query is embedded once. Implements `VectorSpace`."""

    def __init__(self, of_store: VectorSpace) -> None:
        self._of_store = of_store
        self._embedded: dict[str, Vectors | Unavailable] = {}
        self.nearest = of_store.nearest
        self.vectors = of_store.vectors

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return self._of_store.dimensions

    @property
    def static(self) -> bool:
        """Whether vectors are means of static token vectors."""
        return self._of_store.static

    def embed(self, text: str) -> Vectors | Unavailable:
        """The unit vector of a query. A copy: `np.add.at` writes even to read-only arrays."""
        found = self._embedded.get(text)
        if found is None:
            found = self._embedded[text] = self._of_store.embed(text)
        return found if isinstance(found, Unavailable) else found.copy()


@final
class SearchTokens:
    """Token vectors; each query is tokenised once. Implements `TokenSpace`."""

    def __init__(self, of_store: TokenSpace) -> None:
        self._of_text = of_store.of_text
        self._cut: dict[str, Ids | Unavailable] = {}
        self.count = of_store.count
        self.of_passages = of_store.of_passages
        self.vectors = of_store.vectors
        self.weights = of_store.weights

    def of_text(self, text: str) -> Ids | Unavailable:
        """Distinct token numbers of a query, ascending. A copy, as that of `embed`."""
        found = self._cut.get(text)
        if found is None:
            found = self._cut[text] = self._of_text(text)
        return found if isinstance(found, Unavailable) else found.copy()


@final
class StoreView:
    """A view of a store for the components of one search, discarded with it. Implements `Store`.

    Repeated requests of several components are answered from memory, so that no component needs to keep anything
    between two queries.
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

    passages: Passages
    fulltext: FullText
    graph: CausalGraph
    triggers: Triggers
    folders: Folders
    sessions: Sessions
    relevance: RelevanceModel
    encoder: EncoderModel

    def __getattr__(self, name: str) -> Any:
        """One of these parts: that of the store itself, looked up once."""
        part = getattr(self._store, name)
        setattr(self, name, part)
        return part
