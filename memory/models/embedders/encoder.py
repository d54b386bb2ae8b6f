"""Uses a sentence encoder as the product's embedder, together with the bundled token vectors (feature I6)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import NoReturn, TypeVar

import numpy as np

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders.model_folder import Prompts
from speckit_memory.memory.models.embedders.protocol import Provenance, SentenceEncoder, TokenModel
from speckit_memory.pipeline.ports import Ids, Tokens, Vectors
from speckit_memory.pipeline.process.clock import opening

REMEMBERED_QUERIES = 1_000
"""Number of recent queries whose vectors are cached."""

T = TypeVar("T")


class MissingEncoder:
    """Raises the error of the missing model at every use, and not before, since word search works without it."""

    name = "missing"

    def __init__(self, reason: SpeckitError) -> None:
        self._reason = reason

    def fingerprint(self) -> str:
        """Raises E001."""
        self._fail()

    def prompts(self) -> Prompts:
        """Raises E001."""
        self._fail()

    def pooling(self) -> NoReturn:
        """Raises E001."""
        self._fail()

    def load(self) -> NoReturn:
        """Raises E001."""
        self._fail()

    def encode(self, text: str) -> NoReturn:  # noqa: ARG002
        """Raises E001."""
        self._fail()

    def _fail(self) -> NoReturn:
        raise SpeckitError.of(self._reason.problems)


class BesideTokens:
    """Takes tokens and their vectors from the token model, for an embedder that has none (feature R1)."""

    def __init__(self, tokens: TokenModel) -> None:
        self._tokens = tokens

    @property
    def token_model_id(self) -> str:
        """The id of the token model."""
        return self._tokens.token_model_id

    def tokenise(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the token ids of each text by the token model."""
        return self._tokens.tokenise(texts)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text by the token model."""
        return self._tokens.count_tokens(texts)

    def token_vectors(self, tokens: Ids) -> Vectors:
        """Return unit rows of the token model."""
        return self._tokens.token_vectors(tokens)


class EncoderEmbedder(BesideTokens):
    """Takes vectors of texts from the encoder; tokens and their vectors from the token model, as without an encoder.

    The model is loaded once, at first use; that does not count as query time. Threads take turns, one text at a time.
    """

    def __init__(
        self,
        encoder: SentenceEncoder,
        tokens: TokenModel,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
    ) -> None:
        """Set the prompts put before queries and passages.

        Args:
            encoder: The sentence encoder.
            tokens: The token model.
            query_prompt: The text before every query; None takes it from the model's folder.
            document_prompt: The text before every passage; None takes it from the model's folder.
        """
        super().__init__(tokens)
        self._encoder = encoder
        self._given = query_prompt, document_prompt
        # Order of locks: `_opening` before `_turn`. `_opening` is re-entrant, since reading the dimensions loads the
        # model.
        self._turn, self._opening = threading.Lock(), threading.RLock()
        self._loaded = threading.Event()
        self._settled: tuple[str, Prompts] | None = None
        self._dimensions: int | None = None
        self._query = lru_cache(REMEMBERED_QUERIES)(self._encoded_query)

    @property
    def model_id(self) -> str:
        """The encoder's name and a digest of its files, its settings and the document prompt."""
        return self._settle()[0]

    @property
    def provenance(self) -> Provenance:
        """The name, revision and pooling of the model."""
        return Provenance(self._encoder.name, self.model_id.rpartition("-")[2], self._guarded(self._encoder.pooling))

    @property
    def dimensions(self) -> int:
        """The length of a vector; reading it loads the model."""
        known = self._dimensions
        if known is None:
            # Checked twice: the first look needs no lock, and the second one finds what another thread has set
            # meanwhile.
            with opening(), self._opening:
                known = self._dimensions = self._dimensions or len(self._unit("dimensions"))
        return known

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit rows, shape (len(texts), dimensions); zeros for a blank text."""
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            if text.strip():
                row[:] = self._unit(self._settle()[1].document + text)
        return rows

    def embed_query(self, text: str) -> Vectors:
        """Return the unit vector of a query, shape (dimensions,); zeros for a blank one."""
        # A copy: callers may write into the vector, and the cached one is shared.
        return self._query(text).copy()

    def _encoded_query(self, text: str) -> Vectors:
        return self._unit(self._settle()[1].query + text) if text.strip() else np.zeros(self.dimensions, np.float32)

    def _unit(self, text: str) -> Vectors:
        self._load()
        # Normalised in float64; only the result is rounded to float32.
        vector = self._guarded(lambda: np.asarray(self._encoder.encode(text), np.float64))
        length = np.sqrt(np.square(vector).sum())
        if vector.ndim != 1 or not np.isfinite(length) or not length:
            raise self._failed(f"it returned a vector of shape {vector.shape} and length {length}")
        unit: Vectors = (vector / length).astype(np.float32)
        return unit

    def _settle(self) -> tuple[str, Prompts]:
        """Return the model's id and prompts, read once."""
        settled = self._settled
        if settled is None:
            with opening(), self._opening:
                settled = self._settled = self._settled or self._read()
        return settled

    def _read(self) -> tuple[str, Prompts]:
        known = self._guarded(self._encoder.prompts)
        query, document = (read if given is None else given for given, read in zip(self._given, known, strict=True))
        # The query prompt is left out: stored vectors do not depend on it.
        whole = sha256(f"{self._guarded(self._encoder.fingerprint)} {document}".encode()).hexdigest()
        return f"{self._encoder.name}-{whole[:12]}", Prompts(query, document)

    def _load(self) -> None:
        if not self._loaded.is_set():
            with opening(), self._opening:
                if not self._loaded.is_set():
                    self._guarded(self._encoder.load)
                    self._loaded.set()

    def _guarded(self, work: Callable[[], T]) -> T:
        with self._turn:
            try:
                return work()
            except SpeckitError:
                raise
            except Exception as error:  # a model is third-party code
                raise self._failed(f"{type(error).__name__}: {error}") from error

    def _failed(self, reason: str) -> SpeckitError:
        return SpeckitError("E001", f"the sentence encoder {self._encoder.name} cannot be used: {reason}")
