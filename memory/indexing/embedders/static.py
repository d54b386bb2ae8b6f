"""The bundled model: one fixed vector per token, no network, no inference (feature I6).

The vectors (32,000 tokens × 256, half precision) and the tokeniser are data files of the installed wordllama package,
whose code is never imported. A text is the weighted mean of its tokens, brought to length one. Frequent tokens weigh
less: a / (a + p), with the token's probability p estimated from its rank in the vocabulary (Zipf), after Arora, Liang
and Ma, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings" (2017). The weights do not depend on the stored
documents, so a vector never goes stale.
"""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing.embedders.token_rows import TokenRows
from speckit_memory.pipeline.clock import opening
from speckit_memory.pipeline.ports import Column, Ids, Tokens, Vectors

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

    from speckit_memory.memory.indexing.embedders.pieces import Pieces

DIMENSIONS = 256
FREQUENT_TOKEN = 1e-3
"""The constant a: tokens more probable than this lose most of their weight."""
BATCH = 256
"""Texts tokenised at a time."""

_SCHEME = "sif2"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_FIRST_RANKED_TOKEN = 258  # special tokens and single bytes come first; then ids follow the frequency rank
_RANK_OFFSET = 10


@dataclass(frozen=True)
class _Model:
    """The weights of `rows` are the lengths of the token vectors times a / (a + p)."""

    tokenizer: Tokenizer
    rows: TokenRows

    @cached_property
    def pieces(self) -> Pieces | None:
        """How texts are cut piece by piece; None where that is not the same as cutting whole texts."""
        from speckit_memory.memory.indexing.embedders.pieces import Pieces, divisible

        return Pieces(self.tokenizer) if divisible(self.tokenizer) else None


class StaticEmbedder:
    """The bundled token vectors. `folder` holds the data files; None finds the installed package.

    Loading takes place at first use and once, whatever the number of threads. Raises E001 when the files are missing
    or damaged.
    """

    dimensions = DIMENSIONS

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._bundled = folder is None
        self._lock = threading.Lock()
        self._model: _Model | None = None
        self._tokenizer: Tokenizer | None = None
        self._id = ""

    @property
    def is_bundled(self) -> bool:
        """Whether its files are those of the installed package."""
        return self._bundled

    @property
    def model_id(self) -> str:
        """Names the scheme above and both data files by their digest."""
        if not self._id:
            with opening(), self._lock:
                if not self._id:
                    self._id = f"static-{DIMENSIONS}-{_SCHEME}-{_fingerprint(self._data())}"
        return self._id

    @property
    def token_model_id(self) -> str:
        """The same: the vectors of texts are made of nothing but those of tokens."""
        return self.model_id

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit rows, shape (len(texts), dimensions); zeros for an empty text. Single bytes are tokens, so that no other
        text is unknown."""
        return self.pool_documents(self.tokenise(texts))

    def embed_query(self, text: str) -> Vectors:
        """The vector that the text would have as a document, shape (dimensions,)."""
        row: Vectors = self.embed_documents([text])[0]
        return row

    def tokenise(self, texts: Sequence[str]) -> list[Tokens]:
        """The token numbers of each text in text order, repeats included."""
        model = self._loaded()
        pieces = model.pieces if len(texts) > 1 else None  # who asks for one text has no time to get ready for many
        if pieces is None:
            return [np.array(encoding.ids, np.uint16) for encoding in _encoded(model.tokenizer, texts)]
        cut = [pieces.tokens(text) for text in texts]
        whole = _encoded(model.tokenizer, [text for text, tokens in zip(texts, cut, strict=True) if tokens is None])
        return [np.array(next(whole).ids, np.uint16) if tokens is None else tokens for tokens in cut]

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has. Reads the tokeniser alone, where the vectors were not asked for before."""
        return [len(encoding.ids) for encoding in _encoded(self._read_tokenizer(), texts)]

    def pool_documents(self, texts: Sequence[Tokens]) -> Vectors:
        """Unit rows, shape (len(texts), dimensions); zeros for a text without tokens."""
        model = self._loaded()
        pooled = np.zeros((len(texts), DIMENSIONS), np.float32)
        many, rows = len(texts) > 1, model.rows
        for row, tokens in enumerate(texts):
            # the same numbers either way
            pooled[row] = _unit_sum(
                rows.weighted.take(tokens, axis=0) if many else rows.units(tokens) * rows.weights(tokens)[:, None]
            )
        return pooled

    def pool_query(self, tokens: Tokens, factors: Column) -> Vectors:
        """The unit vector of a query, each token's own weight times its factor; shape (dimensions,)."""
        rows = self._loaded().rows
        weights = rows.weights(tokens) * factors.astype(np.float32)
        return _unit_sum(rows.units(tokens) * weights[:, None])

    def token_vectors(self, tokens: Ids) -> Vectors:
        """Unit rows, shape (n, dimensions)."""
        return self._loaded().rows.units(np.asarray(tokens))

    def _loaded(self) -> _Model:
        model = self._model
        if model is None:
            with opening():
                tokenizer = self._read_tokenizer()
                with self._lock:
                    model = self._model = self._model or _load(self._data(), tokenizer)
        return model

    def _read_tokenizer(self) -> Tokenizer:
        tokenizer = self._tokenizer
        if tokenizer is None:
            with self._lock:
                tokenizer = self._tokenizer = self._tokenizer or _load_tokenizer(self._data())
        return tokenizer

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


def _load_tokenizer(folder: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
    except Exception as error:  # the tokenizers library raises bare Exception
        raise SpeckitError("E001", f"the token vectors in {folder} cannot be read: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _load(folder: Path, tokenizer: Tokenizer) -> _Model:
    try:
        path = folder / _WEIGHTS
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(size))
        (tensor,) = (entry for name, entry in header.items() if name != "__metadata__")
        vectors = np.memmap(path, np.float16, "r", 8 + size + tensor["data_offsets"][0], tuple(tensor["shape"]))
        if tensor["dtype"] != "F16" or vectors.shape != (tokenizer.get_vocab_size(), DIMENSIONS):
            raise ValueError(f"unexpected tensor: {tensor}")
    except Exception as error:  # whatever a damaged file leads to
        raise SpeckitError("E001", f"the token vectors in {folder} cannot be read: {error}") from error
    ranks = np.maximum(np.arange(len(vectors)) - _FIRST_RANKED_TOKEN, 1)
    probability = 1.0 / (ranks + _RANK_OFFSET)
    probability /= probability.sum()
    weights = (FREQUENT_TOKEN / (FREQUENT_TOKEN + probability)).astype(np.float32)
    return _Model(tokenizer, TokenRows(np.asarray(vectors), weights))


def _unit_sum(vectors: Vectors) -> Vectors:
    """The sum of the rows, brought to length one; zeros when it is zero."""
    # The order of these additions is fixed; that of a matrix product would depend on the BLAS in use.
    total: Vectors = vectors.sum(axis=0)
    length = np.sqrt(np.square(total).sum())
    return total / length if length > 0 else total


def _fingerprint(folder: Path) -> str:
    """A short digest of both data files."""
    digest = sha256()
    for name in (_WEIGHTS, _TOKENIZER):
        try:
            digest.update((folder / name).read_bytes())
        except OSError as error:
            raise SpeckitError("E001", f"the token vectors in {folder} cannot be read: {error.strerror}") from error
    return digest.hexdigest()[:12]
