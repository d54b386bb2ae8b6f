"""A sentence encoder in a model folder, run by the library sentence-transformers; needs the extra `st` (feature I6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders import model_folder
from speckit_memory.memory.models.embedders.model_folder import Prompts
from speckit_memory.pipeline.ports import Vectors


class SentenceTransformersEncoder:
    """Loads the folder at first use. Nothing is downloaded: only local files are allowed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._model: Any = None

    @property
    def name(self) -> str:
        """The name of the folder."""
        return f"st-{self._folder.resolve().name}"

    def fingerprint(self) -> str:
        """Return a digest of all files of the folder, except hidden ones."""
        inside = ((path.relative_to(self._folder), path) for path in self._folder.rglob("*") if path.is_file())
        return model_folder.digest(
            [path for relative, path in sorted(inside) if not any(part.startswith(".") for part in relative.parts)]
        )

    def prompts(self) -> Prompts:
        """Return the prompts that the folder names."""
        return model_folder.prompts(self._folder)

    def pooling(self) -> str:
        """Return the pooling that the folder names; the library also runs methods not known here."""
        try:
            return model_folder.pooling(self._folder)
        except ValueError:
            return "as its folder says"

    def load(self) -> None:
        """Load the folder if necessary."""
        if self._model is None:
            self._model = self._load()

    def encode(self, text: str) -> Vectors:
        """Return the vector of a text, shape (dimensions,)."""
        self.load()
        # The empty prompt overrides a default prompt of the folder, which the caller has already added.
        vector = self._model.encode([text], prompt="", show_progress_bar=False, convert_to_numpy=True)[0]
        return np.asarray(vector, np.float32)

    def _load(self) -> Any:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise SpeckitError(
                "E001",
                f"the package sentence-transformers, which runs {self._folder}, is not installed",
                hint="It comes with the extra 'st'.",
                actions=("run `pip install 'speckit-memory[st]'`", "name an ONNX file, which needs less"),
            ) from None
        return SentenceTransformer(str(self._folder), device="cpu", local_files_only=True)
