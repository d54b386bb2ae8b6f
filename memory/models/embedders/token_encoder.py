"""The base class of encoders that tokenise texts themselves and run weights from a folder (feature I6)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from speckit_memory.memory.models.embedders import model_folder
from speckit_memory.memory.models.embedders.model_folder import Pooling, Prompts
from speckit_memory.pipeline.ports import Vectors

TOKENIZER = "tokenizer.json"
_POOLED: dict[Pooling, Callable[[Vectors], Vectors]] = {
    "mean": lambda rows: rows.mean(axis=0),
    "cls": lambda rows: rows[0],
    "max": lambda rows: rows.max(axis=0),
}
"""Pooling of token vectors, shape (tokens, dimensions), to (dimensions,)."""


class TokenEncoder(ABC):
    """An encoder with tokeniser and settings in a folder; the weights are loaded at first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._run: Callable[[str], Vectors] | None = None

    def fingerprint(self) -> str:
        """Return a digest of weights and tokeniser, followed by maximum input and pooling."""
        # Both enter the id of the model: with another limit or pooling the vectors differ.
        files = model_folder.digest(self._files())
        return f"{files} {model_folder.longest(self._folder)} {model_folder.pooling(self._folder)}"

    def prompts(self) -> Prompts:
        """Return the prompts that the folder names."""
        return model_folder.prompts(self._folder)

    def pooling(self) -> str:
        """Return the pooling that the folder names."""
        return model_folder.pooling(self._folder)

    def load(self) -> None:
        """Load the weights if necessary."""
        self._loaded()

    def encode(self, text: str) -> Vectors:
        """Return the vector of a text, shape (dimensions,)."""
        return self._loaded()(text)

    def _loaded(self) -> Callable[[str], Vectors]:
        if self._run is None:
            self._run = self._load()
        return self._run

    @abstractmethod
    def _files(self) -> Sequence[Path]:
        """Return the files that determine the vectors."""

    @abstractmethod
    def _load(self) -> Callable[[str], Vectors]:
        """Load the model; return a function from a text to its vector."""

    def _tokenizer(self, longest: int) -> Any:
        """Return the tokeniser of the folder, truncating texts to `longest` tokens."""
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._folder / TOKENIZER))
        tokenizer.no_padding()
        tokenizer.enable_truncation(longest)
        return tokenizer

    def _pooled(self) -> Callable[[Vectors], Vectors]:
        """Return the pooling function of the folder."""
        return _POOLED[model_folder.pooling(self._folder)]
