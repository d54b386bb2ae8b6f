"""Uses a model behind an HTTP interface as the embedder, together with the bundled token vectors (feature I6)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import sha256

import numpy as np

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders.encoder import REMEMBERED_QUERIES, BesideTokens
from speckit_memory.memory.models.embedders.model_folder import Prompts
from speckit_memory.memory.models.embedders.protocol import Provenance, TokenModel
from speckit_memory.memory.models.embedders.remote.client import ATTEMPTS, EmbeddingClient
from speckit_memory.memory.models.embedders.remote.endpoint import Endpoint
from speckit_memory.pipeline.ports import Vectors
from speckit_memory.pipeline.process.clock import opening

QUERY_SECONDS = 5.0
"""Time limit for the vector of a query, without retries; without it the search uses words only."""
REST_SECONDS = 30.0
"""Time after a failure in which queries are not sent to the service."""


class RemoteEmbedder(BesideTokens):
    """Requests vectors from a service. Texts leave this machine, unless the service runs on it.

    Passages are sent in batches with retries; a query is sent once, with a short timeout. Nothing is sent before the
    first text is embedded.
    """

    def __init__(
        self, endpoint: Endpoint, tokens: TokenModel, prompts: Prompts, client: EmbeddingClient | None = None
    ) -> None:
        """Set up the embedder without connecting.

        Args:
            endpoint: The service and its limits.
            tokens: The token model, which also counts tokens for the limits.
            prompts: The texts before every query and passage.
            client: The client; by default one for the endpoint.
        """
        super().__init__(tokens)
        self.endpoint = endpoint
        self._prompts = prompts
        self._client = client or EmbeddingClient(endpoint)
        self._opening = threading.RLock()
        self._dimensions: int | None = endpoint.dimensions
        self._failure = ""
        self._rests_until = 0.0
        self._query = lru_cache(REMEMBERED_QUERIES)(self._encoded_query)

    @property
    def model_id(self) -> str:
        """The model's name and a digest of address and settings; services do not identify the weights they run."""
        asked = (self.endpoint.url, self.endpoint.model, self.endpoint.dimensions, self._prompts.document)
        return f"{self.endpoint.provider}-{self.endpoint.model}-{sha256(repr(asked).encode()).hexdigest()[:12]}"

    @property
    def provenance(self) -> Provenance:
        """The name, host and pooling of the model."""
        return Provenance(self.endpoint.name, f"as served by {self.endpoint.host}", "by the service")

    @property
    def dimensions(self) -> int:
        """The length of a vector; reading it may send a request."""
        if self._dimensions is None:
            with opening(), self._opening:
                if self._dimensions is None:
                    self._dimensions = self._sent(["dimensions"], "query", self.endpoint.seconds, ATTEMPTS).shape[1]
        return self._dimensions

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit rows, shape (len(texts), dimensions); zeros for a blank text."""
        written = [at for at, text in enumerate(texts) if text.strip()]
        if not written:
            return np.zeros((len(texts), self.dimensions), np.float32)
        parts = [
            self._sent(batch, "document", self.endpoint.seconds, ATTEMPTS)
            for batch in self._batches([self._prompts.document + texts[at] for at in written])
        ]
        found = np.concatenate(parts)
        rows = np.zeros((len(texts), found.shape[1]), np.float32)
        rows[written] = found
        return rows

    def embed_query(self, text: str) -> Vectors:
        """Return the unit vector of a query, shape (dimensions,); zeros for a blank one."""
        return self._query(text).copy()

    def _encoded_query(self, text: str) -> Vectors:
        if not text.strip():
            return np.zeros(self.dimensions, np.float32)
        # Circuit breaker: after a failure, queries fail at once instead of waiting for the timeout.
        if time.monotonic() < self._rests_until:
            message = f"{self._failure}; it is tried again after {REST_SECONDS:.0f} s"
            raise SpeckitError("E001", message, retryable=True)
        try:
            row: Vectors = self._sent([self._prompts.query + text], "query", QUERY_SECONDS, 1)[0]
        except SpeckitError as error:
            self._failure, self._rests_until = error.problems[0].message, time.monotonic() + REST_SECONDS
            raise
        return row

    def _sent(self, texts: list[str], role: str, seconds: float, attempts: int) -> Vectors:
        tokens = sum(self.count_tokens(texts))
        rows = self._client.vectors(texts, role, tokens, self._dimensions, seconds=seconds, attempts=attempts)
        self._dimensions = rows.shape[1]
        return rows

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        """Yield the texts in order, in batches within the limits of the service."""
        batch: list[str] = []
        held = 0
        for text, tokens in zip(texts, self.count_tokens(texts), strict=True):
            # A single text over the token limit is sent alone.
            if batch and (len(batch) == self.endpoint.texts or held + tokens > self.endpoint.tokens):
                yield batch
                batch, held = [], 0
            batch.append(text)
            held += tokens
        if batch:
            yield batch
