"""What the pipeline needs from a store, as small protocols. The store implements them; the frame never imports it.

Ids are memory ids and chunk ids, drawn from one sequence, so that no number means two things. A memory that is short
enough to be one passage is its own chunk: the two ids are equal. Every method that takes ids accepts both kinds.
All that a search reads from its `Store`, in the thread that runs it, describes one state of the data, whatever other
threads and processes write meanwhile. Other threads, and whoever holds a `Store` outside of a search, read what is not
in memory in the latest state: texts, full-text search, edges, sessions, and indexes that nobody has asked for before.
An answer belongs to whoever asked: it is a copy, or nothing can change it. What is asked is not kept, unless as a copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.ports.rereading import EncoderModel, RelevanceModel
from speckit_memory.pipeline.ports.values import (
    Column,
    Field,
    Filter,
    FolderDescription,
    Ids,
    Level,
    MemoryName,
    Neighbours,
    Passage,
    Postings,
    Unavailable,
    Vectors,
)


class Scope(Protocol):
    """The set of memories that a query may see."""

    @property
    def size(self) -> int:
        """How many memories are admitted."""

    @property
    def complete(self) -> bool:
        """True when every stored memory is admitted, so that a channel may skip the test."""

    def admits(self, ids: Ids) -> NDArray[np.bool_]:
        """Which of these ids (memories or chunks) are admitted; unknown ids are not."""


class Attributes(Protocol):
    """Facts about memories, as columns aligned with the ids asked for. A chunk answers for its memory."""

    def parents(self, ids: Ids) -> Ids:
        """The memory of each id; a memory is its own parent."""

    def number(self, name: str, ids: Ids) -> Column:
        """A numeric fact, NaN where unknown: created_at, updated_at, last_accessed (epoch seconds), last_review,
        access_count, stability (days), difficulty, confidence, validation_count, importance_weight,
        interference, characters, spec_level, expires_at."""

    def label(self, name: str, ids: Ids) -> NDArray[np.object_]:
        """A textual fact: key, title, folder, tier, context_type, document_type, memory_type, content_hash."""

    def neighbours(self, ids: Ids) -> tuple[Ids, Ids]:
        """The memories just before and just after each by key (numbers in keys by value), -1 for none. Only short notes
        (below 600 characters) of one folder, other than the root, have neighbours."""

    def scope(self, wanted: Filter, now: float) -> Scope:
        """The memories a filter admits at the time `now` (epoch seconds)."""

    def of_tier(self, tier: str) -> Ids:
        """All memories of a tier, ascending."""

    def oldest_first(self, scope: Scope) -> Ids:
        """All admitted memories of which it is known when they were made, by that time, then by id."""

    def in_folder(self, folder: str) -> Ids:
        """All memories whose folder is exactly this one, ascending."""

    @property
    def count(self) -> int:
        """How many memories the store holds."""


class Passages(Protocol):
    """The texts behind the ids."""

    def passages(self, ids: Sequence[int]) -> list[Passage]:
        """The passage of each id, in the order asked; a memory of several chunks answers with its first."""

    def of_memory(self, memory: int) -> list[Passage]:
        """All passages of a memory in document order."""

    def in_sections(self, names: Sequence[str]) -> list[Passage]:
        """All passages in sections of these names (feature I2), by id, and short memories that may hold one."""

    def headed(self, slugs: Sequence[str], memories: Ids) -> list[Passage]:
        """All passages of these memories that may begin a section by a heading that these slugs spell (feature I11),
        by id."""

    def names(self, patterns: Sequence[str]) -> list[MemoryName]:
        """What those memories are called of which the key, the title or the front matter that nothing interprets holds
        one of these patterns (`%` for any text, whatever the case), by id."""

    def summaries(self, memories: Sequence[int]) -> dict[int, Passage]:
        """What memories say in few sentences of their own, with the lines of their whole texts, of those that have a
        summary (feature I11)."""

    def body(self, memory: int) -> str:
        """The whole text of a memory."""


class VectorSpace(Protocol):
    """Unit vectors of all chunks, and the model that makes them."""

    @property
    def dimensions(self) -> int:
        """Length of a vector; 0 when the store holds none."""

    @property
    def static(self) -> bool:
        """Whether vectors are means of static token vectors; a sentence encoder makes others."""

    def embed(self, text: str) -> Vectors | Unavailable:
        """The unit vector of a query, shape (dimensions,); a zero vector when nothing of the text is known."""

    def nearest(self, query: Vectors, limit: int, scope: Scope, level: Level) -> tuple[Ids, Column, Ids]:
        """Ids, cosine similarities in [-1, 1] and best chunks, in total order (similarity descending, id ascending).

        At level "memory" a memory scores as its best chunk. Exact, not approximate.
        """

    def vectors(self, ids: Ids) -> Vectors:
        """The vectors of these chunks, shape (n, dimensions); of a memory with several chunks the mean direction;
        rows of zeros where there is none."""


class TermIndex(Protocol):
    """An inverted index over one field at one level. Rows are dense numbers; `ids` translates them.

    Rows of removed entries stay as holes with length 0 that no posting mentions, until the index is compacted.
    """

    @property
    def ids(self) -> Ids:
        """Id of each row."""

    @property
    def lengths(self) -> NDArray[np.float32]:
        """Number of tokens of each row."""

    @property
    def count(self) -> int:
        """Number of entries, holes not counted."""

    def rows_of(self, ids: Ids) -> NDArray[np.int32]:
        """The row of each id, -1 for an id without an entry."""

    def postings(self, term: str) -> Postings:
        """Empty when the term is unknown."""

    def holders(self, term: str) -> int:
        """How many entries hold a term; costs far less than its postings."""

    def holding(self, term: str, rows: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which of these rows hold a term, -1 never; for a few rows far cheaper than its postings."""

    def adjacent(self, first: str, second: str) -> NDArray[np.int32]:
        """The rows in which the second term stands right after the first, ascending.

        Only the indexes of passages and of titles know; others raise ValueError.
        """


class Bags(Protocol):
    """The words of each memory, or of each passage, as one bag in which fields count by weight; BM25 over these bags.

    Rows are dense numbers; `ids` translates them. Rows of removed entries are holes, which score 0.
    """

    @property
    def ids(self) -> Ids:
        """The memory or chunk of each row, -1 for a hole."""

    @property
    def parents(self) -> NDArray[np.intp]:
        """The row of each row's memory among the bags of memories, -1 for a hole."""

    @property
    def neighbours(self) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
        """The rows, among the bags of memories, of the memories just before and just after each row's memory, -1 for
        none (see `Attributes.neighbours`). None when no memory has a neighbour."""

    @property
    def height(self) -> int:
        """How many rows there are, holes included."""

    def ids_of(self, rows: NDArray[np.intp]) -> Ids:
        """`ids` of these rows alone: of a large store a copy of all takes longer than a search may."""

    def parents_of(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """`parents` of these rows alone."""

    def better_neighbour(self, values: Column) -> Column | None:
        """The greater of the values of the memories just before and just after each row's memory. `values` belong to
        the rows of the bags of memories, and a last one stands for a neighbour that is not there. None when no memory
        has a neighbour."""

    def scores(self, terms: Mapping[str, float]) -> Column:
        """BM25F of every row, Σ weight · idf · tf·(k1+1) / (tf + k1·(1 - b + b·length/mean)) over the weighted terms,
        with idf = log((N - df + 0.5)/(df + 0.5) + 1); ≥ 0."""

    def coverage(self, terms: Mapping[str, float]) -> Column:
        """The share of the information of the terms, Σ weight · idf, that each row holds; in [0, 1]."""


class Lexicon(Protocol):
    """The analysed words of the store."""

    def analyse(self, text: str) -> tuple[str, ...]:
        """The tokens of a query, in order, made by the analyser that made the index."""

    def index(self, field: Field, level: Level = "memory") -> TermIndex:
        """The inverted index of a field. Only "body" exists at level "chunk"."""

    def bags(self, weights: tuple[float, float, float, float], k1: float, b: float, level: Level = "memory") -> Bags:
        """The bags of words in which the fields count by these weights (of `FIELDS`, in that order; 0 leaves one out).

        At level "chunk" the body is the passage's own, and the other fields are those of its memory. Raises ValueError
        for weights and `k1` below 0 or not finite, weights that are all 0, and `b` outside of [0, 1]. The store keeps
        the bags of the settings last asked for, and what it has calculated of them, as long as its words stay the same:
        who asks need not keep anything between searches.
        """

    def words(self) -> AbstractSet[str]:
        """All terms that titles, triggers, paths and texts hold; some that they have held may be there."""

    def near(self, term: str, edits: int) -> AbstractSet[str]:
        """Of `words` all that are at most so many edits away from a term, and perhaps some that are not.

        An edit is a character put in, left out or replaced, or two neighbours exchanged ("optimal string alignment").
        Who wants to know how far each is compares these few, and not all words.
        """


class FullText(Protocol):
    """SQLite's FTS5 tables, each with one row per memory: one of analysed words, one of words as they are written."""

    def match(
        self, tokens: Sequence[str], weights: tuple[float, float, float, float], limit: int, scope: Scope
    ) -> tuple[Ids, Column]:
        """Memories that hold any of the tokens, with positive BM25 scores, in total order.

        Weights are those of `FIELDS`, in that order.
        """

    def holding(self, phrases: Sequence[str], limit: int, scope: Scope) -> Ids:
        """The first `limit` memories, by id, whose title or text holds the words of each phrase in a row.

        Words are compared as they are written, endings and stop words included; case and what stands between words do
        not count. A word is a run of letters and digits.
        """


class CausalGraph(Protocol):
    """The causal edges between memories."""

    @property
    def edge_count(self) -> int:
        """Number of edges."""

    def neighbours(self, seeds: Ids, hops: int, relation_weights: dict[str, float]) -> Neighbours:
        """Everything within `hops` edges of the seeds, in either direction, seeds themselves left out (feature M8).

        A relation that `relation_weights` leaves out counts 1.
        """

    def in_edges(self, ids: Ids, relation: str) -> tuple[Ids, Ids]:
        """Sources and targets (memories) of every edge of this relation that leads to one of `ids`, in that order."""

    def regions(self, ids: Ids) -> Ids:
        """The connected component of the graph that each id lies in, named by its smallest memory id; -1 for none."""

    def degrees(self, relation_weights: dict[str, float]) -> tuple[Ids, Column]:
        """Every connected memory (ascending) and its Σ weight × strength over all its edges."""

    def ranks(self, ids: Ids) -> tuple[Column, float]:
        """The PageRank of each in multiples of the mean, 0 where it has none, and the greatest of the store: 0 when
        nothing is ranked, as in a store whose graph is not dense (feature M10)."""

    def community(self, memory: int, limit: int) -> Ids:
        """The `limit` highest ranked other members of the community of a memory, best first (feature M10)."""


AUTHORED = 1.0
"""The weight of a phrase that a document declares; learned ones weigh less."""


class Triggers(Protocol):
    """The trigger phrases of memories."""

    def exact(self, text: str) -> bool:
        """True when the text, case-folded and NFC-normalised, is a whole phrase that some document declares."""

    def matches(self, text: str, now: float) -> tuple[Ids, Column]:
        """Every trigger phrase that stands in the text as a whole phrase, one row each: the memory and the weight.

        Weights are 1.0 (`AUTHORED`) for authored phrases and 0.7 for learned ones; expired ones are left out. Rows
        ascend by memory; a memory appears once per matching phrase (feature C7).
        """


class Folders(Protocol):
    """The folders that hold memories."""

    def described(self) -> tuple[FolderDescription, ...]:
        """One description per folder, by folder name (feature C13)."""


class Sessions(Protocol):
    """What is known of a conversation. The empty session knows nothing."""

    def attention(self, session: str, ids: Ids, now: float) -> Column:
        """Working-memory attention [0, 1] of each memory; 0 where it has none or the session is over (feature M4)."""

    def texts_sent(self, session: str, memories: Ids, now: float) -> list[list[str]]:
        """What this session was sent of each memory within its life: the digests of texts (feature A2)."""


class TokenSpace(Protocol):
    """Tokens: static vectors of single ones, for late interaction (feature R1), and how many a text has."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text costs its reader (feature A6)."""

    def of_text(self, text: str) -> Ids | Unavailable:
        """Distinct token numbers of a query, ascending; Unavailable without a token model."""

    def of_passages(self, ids: Ids) -> list[Ids]:
        """Distinct token numbers of each chunk with its title and headings, ascending; empty for an unknown id.

        A memory of several chunks answers with its first.
        """

    def vectors(self, tokens: Ids) -> Vectors:
        """Unit rows, shape (n, dimensions)."""

    def weights(self, tokens: Ids) -> Column:
        """Inverse document frequency of each token over the passages of the store, > 0; near 0 for stop words."""


class Store(Protocol):
    """One consistent, read-only view of everything remembered: see above for who may rely on it."""

    @property
    def attributes(self) -> Attributes:
        """Facts about the memories."""

    @property
    def passages(self) -> Passages:
        """The texts."""

    @property
    def vectors(self) -> VectorSpace:
        """The embeddings of all chunks."""

    @property
    def lexicon(self) -> Lexicon:
        """The inverted indexes."""

    @property
    def fulltext(self) -> FullText:
        """The FTS5 table."""

    @property
    def graph(self) -> CausalGraph:
        """The causal edges."""

    @property
    def triggers(self) -> Triggers:
        """The trigger phrases."""

    @property
    def folders(self) -> Folders:
        """The folders and what they are about."""

    @property
    def sessions(self) -> Sessions:
        """What is known of conversations."""

    @property
    def tokens(self) -> TokenSpace:
        """Static token vectors."""

    @property
    def relevance(self) -> RelevanceModel:
        """The cross-encoder."""

    @property
    def encoder(self) -> EncoderModel:
        """The sentence encoder of the second look."""
