"""What the product asks of an embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from speckit_memory.memory.models.embedders.model_folder import Prompts
from speckit_memory.pipeline.ports import Column, Ids, Tokens, Vectors


class Provenance(NamedTuple):
    """Where vectors come from: the model as a user names it, which state of it, and how those of tokens became one."""

    name: str
    revision: str
    pooling: str


class Embedder(Protocol):
    """Turns texts into unit vectors. Implementations are safe to share between threads.

    Equal texts give equal vectors, alone or in a batch, now and in another process: stores cache them under `model_id`.
    Failures are `SpeckitError` E001.
    """

    @property
    def model_id(self) -> str:
        """Names the model, its weights and the way texts are put to it; vectors of different ids never mix."""

    @property
    def dimensions(self) -> int:
        """Length of a vector."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit rows, shape (len(texts), dimensions); a row of zeros for a text with no known token."""

    def embed_query(self, text: str) -> Vectors:
        """The unit vector of a query, shape (dimensions,); zeros when no token is known."""


@runtime_checkable
class Stamped(Protocol):
    """An embedder that tells more of itself than its id (feature I6)."""

    @property
    def provenance(self) -> Provenance:
        """What is known of the model."""


@runtime_checkable
class TokenCounter(Protocol):
    """What can tell how many tokens a text has (feature T24)."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text. Reads the tokeniser alone, where nothing else was asked for before."""


@runtime_checkable
class TokenModel(TokenCounter, Protocol):
    """Static vectors of single tokens (feature R1).

    Stores keep the token numbers of passages beside their vectors, whichever model made these: late interaction and the
    rarity of words need them.
    """

    @property
    def token_model_id(self) -> str:
        """Names the tokeniser and the token vectors; token numbers of different ids never mix."""

    def tokenise(self, texts: Sequence[str]) -> list[Tokens]:
        """The token numbers of each text in text order, repeats included."""

    def token_vectors(self, tokens: Ids) -> Vectors:
        """Unit rows, shape (n, dimensions of the token vectors)."""


@runtime_checkable
class PoolingModel(Protocol):
    """What an embedder offers besides when its vectors are means of its token vectors (feature C1).

    Token numbers then tell everything about a text, and the tokens of a query can be weighed anew for every store.
    """

    def pool_documents(self, texts: Sequence[Tokens]) -> Vectors:
        """What `embed_documents` gives for texts of these tokens."""

    def pool_query(self, tokens: Tokens, factors: Column) -> Vectors:
        """The unit vector of a query, each token's own weight times its factor, which is positive; shape
        (dimensions,)."""


class SentenceEncoder(Protocol):
    """A neural network that reads one text at a time, so that a vector depends on nothing but its text.

    It may raise anything: `EncoderEmbedder` takes care of that, and of threads.
    """

    @property
    def name(self) -> str:
        """Where it comes from, for readers."""

    def fingerprint(self) -> str:
        """A digest of the weights, the tokeniser and the settings beside them."""

    def prompts(self) -> Prompts:
        """What stands before texts unless the user says otherwise."""

    def pooling(self) -> str:
        """How the vectors of tokens become one."""

    def load(self) -> None:
        """Reads the model, unless that is done."""

    def encode(self, text: str) -> Vectors:
        """The vector of a text, shape (dimensions,), of any length."""
