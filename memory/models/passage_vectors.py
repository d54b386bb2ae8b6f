"""Embeds passages, through the cache, and queries (features C1, I6, I7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from speckit_memory.memory.models.embedders.protocol import (
    Embedder,
    FingerprintedEmbedder,
    PoolingModel,
    Provenance,
    TokenModel,
)
from speckit_memory.memory.models.embedders.static import StaticEmbedder
from speckit_memory.memory.parsing.markdown.anchors import without_tags
from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import integers, rows
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.tables.vectors import embedding_cache, embedding_models
from speckit_memory.memory.store.tables.vectors.embedding_models import ModelFingerprint
from speckit_memory.memory.store.tables.words import token_sets
from speckit_memory.pipeline.ports import Column, Ids, Tokens, Vectors

TITLE_REPEATS = 3
"""How often the title is repeated before each passage for models that average tokens, so that it outweighs the
passage's own words (measured). Sentence encoders get it once."""


GROUP = 64
GROUP_CHARACTERS = 50_000
"""Limits of one group of texts embedded at a time; the characters may be exceeded by the last text."""


def embedding_text(title: str, heading: str, text: str, repeats: int = TITLE_REPEATS) -> str:
    """Return the text to embed for a passage: document title, headings above it, then the passage.

    Args:
        title: The title of the document, "" to omit it.
        heading: The path of headings above the passage, "" to omit it.
        text: The passage; ANCHOR tags are removed.
        repeats: How often the title is repeated.
    """
    return "\n".join([*[title] * (repeats if title else 0), *([heading] if heading else []), without_tags(text)])


def title_repeats(embedder: Embedder) -> int:
    """Return how often the title is repeated for this model."""
    return TITLE_REPEATS if isinstance(embedder, PoolingModel) else 1


def texts_of(connection: Connection, chunks: Sequence[int], repeats: int) -> dict[int, str]:
    """Return the text to embed of each passage, by chunk id; deleted passages are missing."""
    found = rows(
        connection,
        # A title equal to the key is a stand-in, which says nothing about the content.
        "SELECT c.id, CASE m.title WHEN m.key THEN '' ELSE m.title END, c.heading, c.text FROM chunks c "
        "JOIN memories m ON m.id = c.memory_id WHERE c.id IN (SELECT value FROM carray(?))",
        (integers(chunks),),
    )
    return {chunk: embedding_text(title, heading, text, repeats) for chunk, title, heading, text in found}


@dataclass(frozen=True, slots=True)
class EmbeddedTexts:
    """Vectors in the order of their texts, shape (n, dimensions), and the changes to make to the cache.

    `tokens` are the distinct token ids of each text, ascending, by the tokeniser `token_model_id`; None if the embedder
    has no tokens. `computed` maps text hashes to new vectors; `used` lists the hashes of cache hits. `kept` says
    whether the cache keeps the new ones: a model that pools the vectors of tokens makes them as fast as a cache is
    read.
    """

    rows: Vectors
    tokens: list[Tokens] | None
    token_model_id: str
    computed: dict[str, Vectors]
    used: tuple[str, ...]
    provenance: Provenance | None = None
    kept: bool = True

    def note(self, txn: Transaction, model_id: str, now: float) -> None:
        """Store the new vectors and the cache hits in the cache, and the model's provenance.

        Raises E002 if the store's tokens belong to another token model.
        """
        if self.provenance and self.rows.size:
            embedding_models.note(txn, ModelFingerprint(model_id, *self.provenance, self.rows.shape[1]), now)
        if self.tokens:
            token_sets.claim(txn, self.token_model_id)
        if self.kept:
            embedding_cache.store(txn, model_id, self.computed, now)
            embedding_cache.touch(txn, model_id, self.used, now)


@dataclass(frozen=True, slots=True)
class PassageBatch:
    """The passages of one document: hashes of their embedded texts, vectors of shape (n, dimensions), and the distinct
    token ids of each, ascending."""

    hashes: tuple[str, ...]
    rows: Vectors
    tokens: list[Tokens]


def document_texts(document: Document, embedder: Embedder) -> list[str]:
    """Return the text that this model embeds for each passage of a document."""
    title = "" if document.title == document.key else document.title
    repeats = title_repeats(embedder)
    return [embedding_text(title, chunk.heading, chunk.text, repeats) for chunk in document.chunks]


def passages_of(embedder: StaticEmbedder, documents: Sequence[Sequence[str]]) -> list[PassageBatch]:
    """Embed the passages of documents, given the texts of each document's passages."""
    texts = [text for document in documents for text in document]
    sequences = embedder.tokenise(texts)
    rows = embedder.pool_documents(sequences)
    found, start = [], 0
    for document in documents:
        end = start + len(document)
        hashes = tuple(sha256(text.encode()).hexdigest() for text in document)
        # rows[start:end] is a view of (n, dimensions) float32; np.unique gives ascending token ids for the set
        # operations.
        found.append(PassageBatch(hashes, rows[start:end], [np.unique(sequence) for sequence in sequences[start:end]]))
        start = end
    return found


def known(embedder: StaticEmbedder, passages: Sequence[PassageBatch]) -> EmbeddedTexts:
    """Return the result of `embed` for passages embedded already."""
    hashes = [each for document in passages for each in document.hashes]
    if not hashes:
        return EmbeddedTexts(np.empty((0, 0), np.float32), [], embedder.token_model_id, {}, ())
    rows = np.concatenate([document.rows for document in passages])
    tokens = [each for document in passages for each in document.tokens]
    computed = dict(zip(hashes, rows, strict=True))
    return EmbeddedTexts(rows, tokens, embedder.token_model_id, computed, (), embedder.provenance, kept=False)


def embed(
    connection: Connection,
    embedder: Embedder,
    texts: Iterable[str],
    keep: Callable[[Mapping[str, Vectors]], None] | None = None,
) -> EmbeddedTexts:
    """Embed texts, each distinct one at most once and only if it is not in the cache. Writes nothing itself.

    The cache holds no vectors of a model that pools the vectors of tokens.

    Texts are processed in groups, to bound the texts and token sequences held in memory.

    Args:
        connection: Reads the cache.
        embedder: The model.
        texts: The texts, consumed lazily.
        keep: Receives the new vectors of each group by text hash and must store them in the cache; they then count as
            cache hits, and survive a failure in a later group.
    """
    waiting = iter(texts)
    hashes: list[str] = []
    tokens: list[Tokens] | None = [] if isinstance(embedder, TokenModel) else None
    cached: dict[str, Vectors] = {}
    computed: dict[str, Vectors] = {}
    kept = not isinstance(embedder, PoolingModel)
    while group := _group(waiting):
        keys = [sha256(text.encode()).hexdigest() for text in group]
        if kept:
            cached |= embedding_cache.lookup(connection, embedder.model_id, set(keys))
        # Text hash to its place in the group; equal texts of a group share one entry.
        # `computed` is checked too: equal texts in different groups are embedded once.
        missing = {key: at for at, key in enumerate(keys) if key not in cached and key not in computed}
        sequences = embedder.tokenise(group) if isinstance(embedder, TokenModel) else None
        if sequences is not None and isinstance(embedder, PoolingModel):
            # The tokens are needed anyway, so pooling them saves tokenising the texts twice.
            found = embedder.pool_documents([sequences[at] for at in missing.values()])
        elif missing:
            found = embedder.embed_documents([group[at] for at in missing.values()])
        else:
            found = np.empty((0, 0), np.float32)  # without missing texts the model is not loaded
        new = dict(zip(missing, found, strict=True))
        if keep is None or not kept:
            computed |= new
        elif new:
            keep(new)
            cached |= new
        hashes += keys
        if tokens is not None and sequences is not None:
            tokens += [np.unique(sequence) for sequence in sequences]
    vectors = cached | computed
    # One array from rows of cache and model; equal texts have equal rows, not shared ones.
    rows = np.array([vectors[key] for key in hashes], np.float32) if hashes else np.empty((0, 0), np.float32)
    computed = {key: row for key, row in zip(hashes, rows, strict=True) if key in computed}  # views of `rows`: one copy
    token_model = embedder.token_model_id if isinstance(embedder, TokenModel) else ""
    provenance = _provenance(embedder) if hashes else None
    return EmbeddedTexts(rows, tokens, token_model, computed, tuple(cached), provenance, kept)


def _provenance(embedder: Embedder) -> Provenance | None:
    return embedder.provenance if isinstance(embedder, FingerprintedEmbedder) else None


def _group(texts: Iterator[str]) -> list[str]:
    group: list[str] = []
    characters = 0
    while len(group) < GROUP and characters < GROUP_CHARACTERS and (text := next(texts, None)) is not None:
        group.append(text)
        characters += len(text)
    return group


def weighted_query(model: PoolingModel, tokens: Tokens, rarity: Callable[[Ids], Column]) -> Vectors:
    """Return the unit vector of a query of these tokens, shape (dimensions,).

    The model's token weights reflect general language; in a query each is multiplied by the square root of its inverse
    document frequency `rarity` in this store. Passage vectors do not depend on it, so they never go stale.
    """
    # tokens are (m,) of the tokeniser's integers; rarity needs int64 ids and returns (m,) float64.
    return model.pool_query(tokens, np.sqrt(rarity(tokens.astype(np.int64))))
