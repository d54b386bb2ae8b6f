"""The protocols by which the pipeline accesses a store. The store implements them; the frame never imports it.

Ids are memory ids and chunk ids, drawn from one sequence, so that every number is unique. A memory that is short enough
to be one passage is its own chunk: the two ids are equal. Every method that takes ids accepts both kinds. A search
reads one snapshot: everything that it reads from its `Store`, in its own thread, describes the same state of the data,
independent of concurrent writes by other threads and processes. Other threads, and holders of a `Store` outside of a
search, read data that is not in memory in its latest state: texts, full-text search, edges, sessions, and indexes not
used before. Results are private to the caller: each is a copy, or immutable. Arguments are not retained, except as
copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
        """The number of admitted memories."""

    @property
    def complete(self) -> bool:
        """True if every stored memory is admitted, so that a channel may skip the test."""

    def admits(self, ids: Ids) -> NDArray[np.bool_]:
        """Which of these ids (memories or chunks) are admitted, bool[n]; unknown ids are not."""


class Attributes(Protocol):
    """Facts about memories, as columns aligned with the given ids. For a chunk they are those of its memory."""

    def parents(self, ids: Ids) -> Ids:
        """The memory of each id; a memory is its own parent."""

    def number(self, name: str, ids: Ids) -> Column:
        """A numeric fact, float64[n], NaN if unknown.

        Names: created_at, updated_at, last_accessed (epoch seconds), last_review, access_count, stability (days),
        difficulty, confidence, validation_count, importance_weight, interference, characters, spec_level, expires_at.
        """

    def label(self, name: str, ids: Ids) -> NDArray[np.object_]:
        """A textual fact: key, title, folder, tier, context_type, document_type, memory_type, content_hash."""

    def neighbours(self, ids: Ids) -> tuple[Ids, Ids]:
        """The memories just before and just after each in key order (numbers in keys by value), -1 for none.

        Only short notes (below 600 characters) of one folder, other than the root, have neighbours.
        """

    def scope(self, wanted: Filter, now: float) -> Scope:
        """The memories that a filter admits at the time `now` (epoch seconds)."""

    def of_tier(self, tier: str) -> Ids:
        """All memories of a tier, ascending."""

    def oldest_first(self, scope: Scope) -> Ids:
        """All admitted memories with a known creation time, by that time, then by id."""

    def in_folder(self, folder: str) -> Ids:
        """All memories whose folder is exactly this one, ascending."""

    @property
    def count(self) -> int:
        """The number of memories in the store."""


class Passages(Protocol):
    """The texts of memories and chunks."""

    def prefetch(self, ids: Sequence[int], whole: Sequence[int], summed_up: Sequence[int]) -> None:
        """Says that `passages`, `bodies` and `summaries` will be asked for these, so that a store on a server reads
        them at once."""

    def passages(self, ids: Sequence[int]) -> list[Passage]:
        """The passage of each id, in order; for a memory of several chunks its first."""

    def of_memory(self, memory: int) -> list[Passage]:
        """All passages of a memory in document order."""

    def in_sections(self, names: Sequence[str]) -> list[Passage]:
        """All passages in sections with these names (feature I2), by id, and short memories that may contain one."""

    def headed(self, slugs: Sequence[str], memories: Ids) -> list[Passage]:
        """All passages of these memories that may begin a section with such a heading slug (feature I11), by id."""

    def names(self, patterns: Sequence[str]) -> list[MemoryName]:
        """The names of memories whose key, title or uninterpreted front matter matches a pattern, by id.

        `%` matches any text; case is ignored.
        """

    def summaries(self, memories: Sequence[int]) -> dict[int, Passage]:
        """The summaries contained in these memories, each with the line range of the whole text (feature I11)."""

    def body(self, memory: int) -> str:
        """The whole text of a memory."""

    def bodies(self, memories: Sequence[int]) -> dict[int, str]:
        """The whole text of each of these memories."""


class VectorSpace(Protocol):
    """Unit vectors of all chunks, and the model that computes them."""

    @property
    def dimensions(self) -> int:
        """Length of a vector; 0 if the store holds none."""

    @property
    def static(self) -> bool:
        """Whether vectors are means of static token vectors, as opposed to those of a sentence encoder."""

    def embed(self, text: str) -> Vectors | Unavailable:
        """The unit vector of a query, shape (dimensions,); a zero vector if no token of the text is known."""

    def nearest(self, query: Vectors, limit: int, scope: Scope, level: Level) -> tuple[Ids, Column, Ids]:
        """The nearest memories or chunks by exact search, in total order (similarity descending, id ascending).

        Args:
            query: Unit vector, shape (dimensions,).
            limit: Maximum number of results.
            scope: The memories that the filter admits.
            level: "memory" scores each memory by its best chunk; "chunk" returns chunks.

        Returns:
            Ids, cosine similarities in [-1, 1], and the best chunk of each.
        """

    def vectors(self, ids: Ids) -> Vectors:
        """Vectors of these chunks, (n, dimensions); a memory of several has their mean direction, unknown ids zeros."""


class TermIndex(Protocol):
    """An inverted index over one field at one level. Rows are dense numbers; `ids` maps them to ids.

    Rows of removed entries remain as holes with length 0 that occur in no postings, until the index is compacted.
    """

    @property
    def ids(self) -> Ids:
        """The id of each row."""

    def ids_of(self, rows: NDArray[np.integer]) -> Ids:
        """The ids of these rows; for few rows much cheaper than `ids`."""

    @property
    def lengths(self) -> NDArray[np.float32]:
        """The number of tokens of each row."""

    @property
    def count(self) -> int:
        """The number of entries, without holes."""

    def rows_of(self, ids: Ids) -> NDArray[np.int32]:
        """The row of each id, -1 for an id that is not in the index."""

    def postings(self, term: str) -> Postings:
        """The postings of a term; empty if it is unknown."""

    def holders(self, term: str) -> int:
        """The document frequency of a term; much cheaper than its postings."""

    def holding(self, term: str, rows: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which of these rows hold a term, False for -1; for few rows much cheaper than its postings."""

    def adjacent(self, first: str, second: str) -> NDArray[np.int32]:
        """The rows in which the second term directly follows the first, ascending.

        Only the indexes of passages and of titles store positions; others raise ValueError.
        """


class Bags(Protocol):
    """One bag of words per memory or passage, with weighted fields, scored by BM25.

    Rows are dense numbers; `ids` maps them to ids. Rows of removed entries are holes, which score 0.
    """

    @property
    def ids(self) -> Ids:
        """The memory or chunk of each row, -1 for a hole."""

    @property
    def parents(self) -> NDArray[np.intp]:
        """The row of each row's memory in the bags of memories, -1 for a hole."""

    @property
    def neighbours(self) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
        """Rows, in the bags of memories, of the memories just before and just after each row's memory, -1 for none.

        None if no memory has a neighbour; see `Attributes.neighbours`.
        """

    @property
    def height(self) -> int:
        """The number of rows, including holes."""

    def ids_of(self, rows: NDArray[np.intp]) -> Ids:
        """`ids` of these rows only: in a large store, copying all of them takes longer than a search may."""

    def parents_of(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """`parents` of these rows only."""

    def better_neighbour(self, values: Column) -> Column | None:
        """The greater of the values of each row's two neighbours, float64[rows]; None if no memory has a neighbour.

        `values` has one value per row of the bags of memories, followed by the value for a missing neighbour.
        """

    def scores(self, terms: Mapping[str, float]) -> Column:
        """BM25F of every row for the weighted terms, ≥ 0.

        Σ weight · idf · tf·(k1+1) / (tf + k1·(1 - b + b·length/mean)), with idf = log((N - df + 0.5)/(df + 0.5) + 1).
        """

    def coverage(self, terms: Mapping[str, float]) -> Column:
        """The share of the terms' information, Σ weight · idf, that each row holds; in [0, 1]."""


class Lexicon(Protocol):
    """The analysed words of the store, and its inverted indexes."""

    def analyse(self, text: str) -> tuple[str, ...]:
        """The tokens of a query, in order, from the same analyser as the index."""

    def word_tokens(self, words: Sequence[str]) -> list[str | None]:
        """The token of each word, None for a word that has none or several. Faster than one `analyse` per word."""

    def prefetch(self, terms: Iterable[str]) -> None:
        """Says that these terms will be looked up, so that a store without them in memory reads them at once."""

    def index(self, field: Field, level: Level = "memory") -> TermIndex:
        """The inverted index of a field. Only "body" exists at level "chunk"."""

    def bags(self, weights: tuple[float, float, float, float], k1: float, b: float, level: Level = "memory") -> Bags:
        """The bags of words with these field weights.

        The store caches the bags of recent settings and what it has computed from them while its words stay the same,
        so callers need not cache anything between searches.

        Args:
            weights: Weight of each field in the order of `FIELDS`, from 0 (left out); at least one above 0.
            k1: BM25 saturation, from 0.
            b: BM25 length normalisation, 0 to 1.
            level: At "chunk" the body is the passage's own; the other fields are those of its memory.

        Raises:
            ValueError: For other values.
        """

    def words(self) -> AbstractSet[str]:
        """All terms of titles, triggers, paths and texts; may include terms of removed memories."""

    def near(self, term: str, edits: int) -> AbstractSet[str]:
        """The `words` within `edits` edits of a term; may include others.

        An edit is an insertion, deletion or substitution of a character, or a transposition of neighbours ("optimal
        string alignment"). For exact distances, compare the few words returned.
        """


class FullText(Protocol):
    """SQLite's FTS5 tables, each with one row per memory: one of analysed words, one of words exactly as written."""

    def match(
        self, tokens: Sequence[str], weights: tuple[float, float, float, float], limit: int, scope: Scope
    ) -> tuple[Ids, Column]:
        """Memories that hold any of the tokens, with positive BM25 scores, in total order.

        Args:
            tokens: Analysed words.
            weights: Weight of each field in the order of `FIELDS`.
            limit: Maximum number of memories.
            scope: The memories that the filter admits.
        """

    def prefetch(self, words: Sequence[str]) -> None:
        """Says that `holding` will be asked for these words, so that a store on a server reads them at once."""

    def holding(self, phrases: Sequence[str], limit: int, scope: Scope) -> Ids:
        """The admitted memories whose title or text holds the words of each phrase in a row, ascending.

        If there are more than `limit`, any of them. Words are compared as written, including inflections and stop
        words; case and separators are ignored. A word is a run of letters and digits.
        """


class CausalGraph(Protocol):
    """The causal edges between memories."""

    @property
    def edge_count(self) -> int:
        """Number of edges."""

    def neighbours(self, seeds: Ids, hops: int, relation_weights: dict[str, float]) -> Neighbours:
        """All memories within `hops` edges of the seeds, in either direction, without the seeds (feature M8).

        A relation that is not in `relation_weights` has the weight 1.
        """

    def in_edges(self, ids: Ids, relation: str) -> tuple[Ids, Ids]:
        """Sources and targets (memories) of every edge of this relation whose target is one of `ids`."""

    def regions(self, ids: Ids) -> Ids:
        """The connected component of each id, named by its smallest memory id; -1 for none."""

    def degrees(self, relation_weights: dict[str, float]) -> tuple[Ids, Column]:
        """Every connected memory (ascending) and its weighted degree, Σ weight × strength over all its edges."""

    def ranks(self, ids: Ids) -> tuple[Column, float]:
        """PageRanks in multiples of the mean (0: unranked), and the greatest of the store, 0 if none (M10)."""

    def community(self, memory: int, limit: int) -> Ids:
        """The `limit` highest ranked other members of a memory's community, best first (feature M10)."""


AUTHORED = 1.0
"""The weight of a phrase that a document declares; learned ones weigh less."""


class Triggers(Protocol):
    """The trigger phrases of memories."""

    def exact(self, text: str) -> bool:
        """True if the text, case-folded and NFC-normalised, equals a phrase that some document declares."""

    def matches(self, text: str, now: float) -> tuple[Ids, Column]:
        """The trigger phrases that occur in the text as a whole phrase, one row each: the memory and the weight.

        Weights are 1.0 (`AUTHORED`) for authored phrases and 0.7 for learned ones; expired ones are left out. Rows
        ascend by memory; a memory occurs once per matching phrase (feature C7).
        """


class Folders(Protocol):
    """The folders that hold memories."""

    def described(self) -> tuple[FolderDescription, ...]:
        """One description per folder, by folder name (feature C13)."""


class Sessions(Protocol):
    """The state of sessions. The empty session has none."""

    def attention(self, session: str, ids: Ids, now: float) -> Column:
        """Working-memory attention [0, 1] of each memory; 0 if it has none or the session is over (feature M4)."""

    def texts_sent(self, session: str, memories: Ids, now: float) -> list[list[str]]:
        """The digests of the texts that this session was sent of each memory, until it expires (feature A2)."""


class TokenSpace(Protocol):
    """Tokens: static vectors for late interaction (feature R1), and token counts of texts."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text, its cost for the reader (feature A6)."""

    def of_text(self, text: str) -> Ids | Unavailable:
        """Distinct token numbers of a query, ascending; Unavailable without a token model."""

    def of_passages(self, ids: Ids) -> list[Ids]:
        """Distinct token numbers of each chunk with its title and headings, ascending; empty for an unknown id.

        For a memory of several chunks those of its first.
        """

    def vectors(self, tokens: Ids) -> Vectors:
        """Unit vectors of tokens, shape (n, dimensions)."""

    def weights(self, tokens: Ids) -> Column:
        """Inverse document frequency of each token over the passages of the store, > 0; near 0 for stop words."""


class Store(Protocol):
    """One consistent, read-only view of all memories; see the module for its guarantees."""

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
        """The folders and their descriptions."""

    @property
    def sessions(self) -> Sessions:
        """The state of sessions."""

    @property
    def tokens(self) -> TokenSpace:
        """Static token vectors."""

    @property
    def relevance(self) -> RelevanceModel:
        """The cross-encoder."""

    @property
    def encoder(self) -> EncoderModel:
        """The sentence encoder for reranking."""
