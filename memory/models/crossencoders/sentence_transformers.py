"""A cross-encoder in a model folder, run by the library sentence-transformers; needs the extra `st`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from speckit_memory.pipeline.ports import Column


class SentenceTransformersCrossEncoder:
    """Loads the folder at first use. Nothing is downloaded: only local files are allowed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loading = threading.Lock()
        self._model: Any = None

    def load(self) -> None:
        """Load the folder if necessary."""
        self._loaded()

    def logits(self, query: str, texts: Sequence[str]) -> Column:
        """Return the log-odds of each text being relevant, shape (n,)."""
        model = self._loaded()
        from torch.nn import Identity

        pairs = [(query, text) for text in texts]
        output = model.predict(pairs, activation_fn=Identity(), show_progress_bar=False, convert_to_numpy=True)
        odds: Column = np.asarray(output, np.float64)
        return odds

    def _loaded(self) -> Any:
        with self._loading:
            self._model = self._model or self._load()
        return self._model

    def _load(self) -> Any:
        try:
            from sentence_transformers import CrossEncoder
        except ImportError as error:
            message = "the package sentence-transformers is not installed; install speckit-memory[st]"
            raise RuntimeError(message) from error
        return CrossEncoder(str(self._folder), local_files_only=True)
