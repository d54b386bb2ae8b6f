"""The bundled model: one fixed vector per token, no network, no inference (feature I6).

The vectors (32,000 tokens × 256, half precision) and the tokeniser are data files of the installed wordllama package,
whose code is never imported. The vector of a text is the normalised weighted mean of its tokens. Frequent tokens weigh
less: a / (a + p), with the token's probability p estimated from its rank in the vocabulary (Zipf), after Arora, Liang
and Ma, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings" (2017). The weights do not depend on the stored
documents, so vectors never go stale.
"""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders.merge_table import LONGEST_TEXT
from speckit_memory.memory.models.embedders.model_facts import ModelFacts, facts_of
from speckit_memory.memory.models.embedders.protocol import Provenance
from speckit_memory.memory.models.embedders.token_rows import TokenRows
from speckit_memory.pipeline.ports import Column, Ids, Tokens, Vectors
from speckit_memory.pipeline.process.clock import opening

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

    from speckit_memory.memory.models.embedders.pieces import Pieces

NAME = "bundled"
"""The name of the model in settings."""
DIMENSIONS = 256
FREQUENT_TOKEN = 1e-3
"""The constant a: tokens with a higher probability lose most of their weight."""
BATCH = 256
"""Texts tokenised at a time."""

_SCHEME = "sif2"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_FIRST_RANKED_TOKEN = 258  # special tokens and single bytes come first; then ids follow the frequency rank
_RANK_OFFSET = 10


@dataclass(frozen=True)
class _Library:
    """The tokeniser as loaded by its library."""

    tokenizer: Tokenizer

    @cached_property
    def pieces(self) -> Pieces | None:
        """The tokeniser by pieces; None if it would not give the tokens of the whole text."""
        from speckit_memory.memory.models.embedders.pieces import Pieces, divisible

        return Pieces(self.tokenizer) if divisible(self.tokenizer) else None


class StaticEmbedder:
    """The bundled token vectors. `folder` contains the data files; None finds the installed package.

    Files are loaded once, at first use. Raises E001 if they are missing or damaged.
    """

    dimensions = DIMENSIONS

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._bundled = folder is None
        self._lock = threading.Lock()
        self._rows: TokenRows | None = None
        self._library: _Library | None = None
        self._facts: ModelFacts | None = None
        self._counts = False

    @property
    def is_bundled(self) -> bool:
        """Whether its files are those of the installed package."""
        return self._bundled

    @property
    def model_id(self) -> str:
        """The weighting scheme and a digest of both data files."""
        return f"static-{DIMENSIONS}-{_SCHEME}-{self._known().digest[:12]}"

    @property
    def provenance(self) -> Provenance:
        """The name, revision and pooling of the model."""
        return Provenance(NAME, self._known().digest[:12], f"weighted mean of tokens ({_SCHEME})")

    @property
    def token_model_id(self) -> str:
        """The id of the model, since the vectors of texts are computed only from those of tokens."""
        return self.model_id

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit rows, shape (len(texts), dimensions); zeros only for an empty text, since single bytes are
        tokens."""
        return self.pool_documents(self.tokenise(texts))

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of the text as a document, shape (dimensions,)."""
        row: Vectors = self.embed_documents([text])[0]
        return row

    def tokenise(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the token ids of each text in text order, including repeats."""
        if len(texts) == 1 and (cut_by_table := self._cut(texts)) is not None:
            return cut_by_table
        return self._tokens(texts, by_pieces=len(texts) > 1)  # preparing the pieces does not pay off for one text

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text. Loads only the tokeniser, not the vectors."""
        if self._library is None and sum(map(len, texts)) <= LONGEST_TEXT and (cut := self._cut(texts)) is not None:
            return list(map(len, cut))
        pieces = self._read_tokeniser().pieces if self._counts else None
        self._counts = True  # pieces pay off for a process that counts repeatedly
        counts = [pieces.count(text) if pieces else None for text in texts]
        whole = [text for text, count in zip(texts, counts, strict=True) if count is None]
        others = map(len, self._tokens(whole, by_pieces=False))
        return [next(others) if count is None else count for count in counts]

    def _tokens(self, texts: Sequence[str], *, by_pieces: bool) -> list[Tokens]:
        """The token ids of each text by the library."""
        library = self._read_tokeniser()
        pieces = library.pieces if by_pieces else None
        if pieces is None:
            return [np.array(encoding.ids, np.uint16) for encoding in _encoded(library.tokenizer, texts)]
        cut = [pieces.tokens(text) for text in texts]
        whole = _encoded(library.tokenizer, [text for text, tokens in zip(texts, cut, strict=True) if tokens is None])
        # `whole` yields the encodings of the texts without pieces, in order; next() takes them one by one.
        return [np.array(next(whole).ids, np.uint16) if tokens is None else tokens for tokens in cut]

    def pool_documents(self, texts: Sequence[Tokens]) -> Vectors:
        """Return unit rows, shape (len(texts), dimensions); zeros for a text without tokens."""
        rows = self._loaded()
        pooled = np.zeros((len(texts), DIMENSIONS), np.float32)
        # rows.weighted: (tokens, dimensions) float32; pooled: (n, dimensions) float32
        many = len(texts) > 1
        for row, tokens in enumerate(texts):
            # equal results; the matrix of all weighted rows only pays off for many texts
            # units (m, dimensions) times weights (m, 1), for the m tokens of the text with repeats.
            pooled[row] = _unit_sum(
                rows.weighted.take(tokens, axis=0) if many else rows.units(tokens) * rows.weights(tokens)[:, None]
            )
        return pooled

    def pool_query(self, tokens: Tokens, factors: Column) -> Vectors:
        """Return the unit vector of a query, shape (dimensions,); each token's weight is multiplied by its factor."""
        rows = self._loaded()
        # weights: (n,) float32; units: (n, dimensions)
        weights = rows.weights(tokens) * factors.astype(np.float32)
        return _unit_sum(rows.units(tokens) * weights[:, None])

    def token_vectors(self, tokens: Ids) -> Vectors:
        """Return unit rows, shape (n, dimensions)."""
        return self._loaded().units(np.asarray(tokens))

    def _cut(self, texts: Sequence[str]) -> list[Tokens] | None:
        """Tokenise short texts by the merge table; None if the library must do it."""
        try:
            table = self._known().table
        except SpeckitError:
            return None  # the library reports errors of the tokeniser, and does not need the vectors
        cut = [tokens for text in texts if table and (tokens := table.cut(text)) is not None]
        return cut if len(cut) == len(texts) else None

    def _known(self) -> ModelFacts:
        facts = self._facts
        if facts is None:
            # Checked twice, the second time under the lock; the same in `_loaded` and `_read_tokeniser`.
            with opening(), self._lock:
                facts = self._facts = self._facts or _facts(self._data())
        return facts

    def _loaded(self) -> TokenRows:
        rows = self._rows
        if rows is None:
            with opening():
                # Before the lock is taken: it may read the tokeniser, which takes the lock itself, and the lock is
                # not re-entrant.
                size = self._vocabulary_size()
                with self._lock:
                    load = _bundled_rows if self._bundled else _load
                    rows = self._rows = self._rows or load(self._data(), size)
        return rows

    def _vocabulary_size(self) -> int:
        facts = self._facts
        if facts is not None and facts.table is not None:
            return facts.table.tokens
        return self._read_tokeniser().tokenizer.get_vocab_size()

    def _read_tokeniser(self) -> _Library:
        library = self._library
        if library is None:
            with opening(), self._lock:
                read = _bundled_library if self._bundled else _read_library
                library = self._library = self._library or read(self._data())
        return library

    def _data(self) -> Path:
        if self._folder is None:
            package = importlib.util.find_spec("wordllama")
            if package is None or package.origin is None:
                raise SpeckitError("E001", "the package wordllama, which holds the token vectors, is not installed")
            self._folder = Path(package.origin).parent
        return self._folder


def _encoded(tokenizer: Tokenizer, texts: Sequence[str]) -> Iterator[Encoding]:
    for start in range(0, len(texts), BATCH):
        yield from tokenizer.encode_batch_fast(list(texts[start : start + BATCH]), add_special_tokens=False)


def _read_library(folder: Path) -> _Library:
    return _Library(_load_tokenizer(folder))


@cache
def _bundled_library(folder: Path) -> _Library:
    """Return the tokeniser of the installed package, shared by all workspaces of a process."""
    return _read_library(folder)


@cache
def _bundled_rows(folder: Path, tokens: int) -> TokenRows:
    """Return the vectors of the installed package, one matrix for all workspaces of a process."""
    return _load(folder, tokens)


def _load_tokenizer(folder: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
    except Exception as error:  # the tokenizers library raises bare Exception
        raise SpeckitError("E001", f"the token vectors in {folder} cannot be read: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _load(folder: Path, tokens: int) -> TokenRows:
    """Map the vectors of a vocabulary of `tokens` tokens; weights are vector lengths times a / (a + p)."""
    # safetensors: uint64 header length, JSON header, data; the file has a single tensor, shape (tokens, DIMENSIONS)
    try:
        path = folder / _WEIGHTS
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(size))
        # Unpacking one element raises for a file with several tensors.
        (tensor,) = (entry for name, entry in header.items() if name != "__metadata__")
        # Mapped, not read: pages of rows that no search needs never enter memory.
        vectors = np.memmap(path, np.float16, "r", 8 + size + tensor["data_offsets"][0], tuple(tensor["shape"]))
        if tensor["dtype"] != "F16" or vectors.shape != (tokens, DIMENSIONS):
            raise ValueError(f"unexpected tensor: {tensor}")
    except Exception as error:  # a damaged file can raise many types
        raise SpeckitError("E001", f"the token vectors in {folder} cannot be read: {error}") from error
    # Id minus the first ranked id is the frequency rank; special tokens and bytes count as the most frequent word.
    ranks = np.maximum(np.arange(len(vectors)) - _FIRST_RANKED_TOKEN, 1)
    probability = 1.0 / (ranks + _RANK_OFFSET)  # Zipf-Mandelbrot with exponent 1, normalised below
    probability /= probability.sum()
    # a / (a + p) is computed in float64 and stored as float32, (tokens,).
    weights = (FREQUENT_TOKEN / (FREQUENT_TOKEN + probability)).astype(np.float32)
    return TokenRows(np.asarray(vectors), weights)


def _unit_sum(vectors: Vectors) -> Vectors:
    """Return the sum of the rows normalised to length one; zeros if it is zero."""
    # The order of these additions is fixed; that of a matrix product would depend on the BLAS library.
    total: Vectors = vectors.sum(axis=0)
    length = np.sqrt(np.square(total).sum())
    return total / length if length > 0 else total


def _facts(folder: Path) -> ModelFacts:
    try:
        return facts_of(folder / _WEIGHTS, folder / _TOKENIZER)
    except OSError as error:
        raise SpeckitError("E001", f"the token vectors in {folder} cannot be read: {error.strerror}") from error
