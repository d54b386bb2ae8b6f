"""Resolves the cross-encoder setting."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from speckit_memory.config.files.paths import is_file, named_path
from speckit_memory.config.workspace.settings import CROSS_ENCODER_VARIABLE
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.crossencoders.guarded import GuardedCrossEncoder
from speckit_memory.pipeline.ports import Column, Unavailable


class NoCrossEncoder:
    """The absent cross-encoder: returns why no relevance is available. Implements `pipeline.ports.RelevanceModel`."""

    __slots__ = ("_reason",)

    def __init__(
        self,
        reason: str = f"no cross-encoder is configured; set {CROSS_ENCODER_VARIABLE} to a model folder or an ONNX file",
    ) -> None:
        self._reason = reason

    def score(self, query: str, texts: Sequence[str], deadline_ns: int | None) -> Column | Unavailable:  # noqa: ARG002
        """Return the reason why no relevance is available."""
        return Unavailable(self._reason)


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


_ONNX_FILES = ("model.onnx", "onnx/model.onnx")


def chosen(setting: str) -> NoCrossEncoder | GuardedCrossEncoder:
    """Return the cross-encoder in an ONNX file or a model folder; in a folder with both, the ONNX file is preferred.

    Only file names are checked; errors in the files appear when the first text is scored. An empty setting means none.
    """
    if not setting:
        return NoCrossEncoder()
    # Imported only if a model is named.
    from speckit_memory.memory.models.crossencoders.onnx import OnnxCrossEncoder

    try:
        path = named_path(setting, CROSS_ENCODER_VARIABLE)
    except SpeckitError as error:
        return NoCrossEncoder(error.problems[0].message)
    files = [path] if path.suffix == ".onnx" else [path / name for name in _ONNX_FILES]
    for file in files:
        if is_file(file):
            return GuardedCrossEncoder(OnnxCrossEncoder(file))
    if is_file(path / "config.json"):
        return GuardedCrossEncoder(SentenceTransformersCrossEncoder(path))
    return NoCrossEncoder(
        f"{CROSS_ENCODER_VARIABLE} is '{setting}', which is neither an ONNX file nor a folder with model.onnx or "
        "config.json"
    )
