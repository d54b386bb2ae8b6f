"""What encoders share that tokenise texts themselves and run the weights of a folder (feature I6)."""

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
"""How the vectors of tokens become one."""


class TokenEncoder(ABC):
    """An encoder whose tokeniser and settings lie in a folder; what it runs is read at first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._run: Callable[[str], Vectors] | None = None

    def fingerprint(self) -> str:
        """A digest of the weights, of the tokeniser and of how vectors are made of them."""
        files = model_folder.digest(self._files())
        return f"{files} {model_folder.longest(self._folder)} {model_folder.pooling(self._folder)}"

    def prompts(self) -> Prompts:
        """The prompts that the folder names."""
        return model_folder.prompts(self._folder)

    def pooling(self) -> str:
        """As the folder says."""
        return model_folder.pooling(self._folder)

    def load(self) -> None:
        """Reads the weights, unless that is done."""
        self._loaded()

    def encode(self, text: str) -> Vectors:
        """The vector of a text, shape (dimensions,)."""
        return self._loaded()(text)

    def _loaded(self) -> Callable[[str], Vectors]:
        if self._run is None:
            self._run = self._load()
        return self._run

    @abstractmethod
    def _files(self) -> Sequence[Path]:
        """The files that decide on the vectors."""

    @abstractmethod
    def _load(self) -> Callable[[str], Vectors]:
        """What makes the vector of a text."""

    def _tokenizer(self, longest: int) -> Any:
        """The tokeniser of the folder, which cuts texts after so many tokens."""
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._folder / TOKENIZER))
        tokenizer.no_padding()
        tokenizer.enable_truncation(longest)
        return tokenizer

    def _pooled(self) -> Callable[[Vectors], Vectors]:
        """What makes one vector of those of the tokens."""
        return _POOLED[model_folder.pooling(self._folder)]
