"""Vectors of passages, through the cache (features I6, I7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import apsw
import numpy as np

from config.exchange import Vectors
from memory.indexing.anchors import without_tags
from memory.indexing.embedders.protocol import Embedder
from memory.store import embedding_cache
from memory.store.connection import Transaction

TITLE_REPEATS = 3
"""How often the title stands before each passage: it weighs more than a passage's own words (measured)."""


def embedding_text(title: str, heading: str, text: str) -> str:
    """What is embedded for a passage: the title of its document, the headings above it, then its words."""
    return "\n".join([*[title] * (TITLE_REPEATS if title else 0), *([heading] if heading else []), without_tags(text)])


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors in the order of their texts, shape (n, dimensions), and what has to be noted in the cache.

    `computed` and `used` hold hashes of texts: new vectors to store, entries that were of use.
    """

    rows: Vectors
    computed: dict[str, Vectors]
    used: tuple[str, ...]

    def note(self, txn: Transaction, model_id: str, now: float) -> None:
        """Writes to the cache what this run has learned about it."""
        embedding_cache.store(txn, model_id, self.computed, now)
        embedding_cache.touch(txn, model_id, self.used, now)


def embed(connection: apsw.Connection, embedder: Embedder, texts: Sequence[str]) -> Embedded:
    """The vectors of texts; each distinct text that is not in the cache is embedded once. Writes nothing."""
    hashes = [sha256(text.encode()).hexdigest() for text in texts]
    cached = embedding_cache.lookup(connection, embedder.model_id, set(hashes))
    missing = {key: text for key, text in zip(hashes, texts, strict=True) if key not in cached}
    computed = dict(zip(missing, embedder.embed_documents(list(missing.values())), strict=True)) if missing else {}
    vectors = cached | computed
    rows = np.zeros((len(texts), embedder.dimensions), np.float32)
    for row, key in zip(rows, hashes, strict=True):
        row[:] = vectors[key]
    return Embedded(rows, computed, tuple(cached))
