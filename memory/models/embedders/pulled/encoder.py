"""Runs a fetched model with the library fastembed; needs the extra `quality` (feature I6)."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from speckit_memory.config.workspace.settings import EMBEDDER_VARIABLE
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders.model_folder import Prompts
from speckit_memory.memory.models.embedders.pulled.shelf import ModelManifest, damaged_files, manifest_of, place_of
from speckit_memory.pipeline.ports import Vectors


class FastembedEncoder:
    """Runs the model on one processor, one text at a time. It fetches nothing; a missing model raises an error."""

    def __init__(self, model: str, environ: Mapping[str, str], variable: str = EMBEDDER_VARIABLE) -> None:
        """`variable` is the environment variable that names the model, for messages."""
        self._asked = model
        self._variable = variable
        self._environ = environ
        self._found: tuple[Path, ModelManifest] | None = None
        self._model: Any = None

    @property
    def name(self) -> str:
        """The name of the model in settings; in the library's spelling once it has been found."""
        return f"fastembed:{self._found[1].model if self._found else self._asked}"

    def fingerprint(self) -> str:
        """Return a digest of the files, after checking them against the manifest."""
        folder, manifest = self._there()
        if wrong := damaged_files(folder, manifest):
            raise SpeckitError(
                "E001",
                f"the files of {self.name} differ from those that were fetched: {', '.join(wrong)} in {folder}",
                hint="Something changed or removed them.",
                actions=(f"run `speckit-memory model pull {self.name}`", f"unset {self._variable}"),
            )
        content = sha256(repr(sorted(manifest.files.items())).encode()).hexdigest()
        return f"{content} {manifest.pooling}"

    def prompts(self) -> Prompts:
        """Return empty prompts: the library uses none."""
        return Prompts("", "")

    def pooling(self) -> str:
        """Return the library's pooling for this model."""
        return self._there()[1].pooling

    def load(self) -> None:
        """Load the model if necessary."""
        if self._model is None:
            folder, manifest = self._there()
            self._model = text_embedding()(
                manifest.model,
                specific_model_path=str(folder),
                local_files_only=True,
                threads=1,
                providers=["CPUExecutionProvider"],
            )

    def encode(self, text: str) -> Vectors:
        """Return the vector of a text, shape (dimensions,)."""
        self.load()
        return np.asarray(next(iter(self._model.embed([text], batch_size=1))), np.float32)

    def _there(self) -> tuple[Path, ModelManifest]:
        if self._found is None:
            folder = place_of(self._asked, self._environ)
            manifest = manifest_of(folder)
            if manifest is None:
                raise SpeckitError(
                    "E001",
                    f"{self.name} has not been fetched: it is not in {folder}",
                    hint="Models are only fetched on request. Until then, searches use words only.",
                    actions=(f"run `speckit-memory model pull {self.name}`", f"unset {self._variable}"),
                )
            self._found = folder, manifest
        return self._found


def text_embedding() -> Any:
    """Return the class of the library that runs models. Raises E001 if it is not installed."""
    try:
        from fastembed import TextEmbedding
    except ImportError:
        raise SpeckitError(
            "E001",
            "the package fastembed, which fetches and runs models by name, is not installed",
            hint="It comes with the extra 'quality'.",
            actions=("run `pip install 'speckit-memory[quality]'`",),
        ) from None
    return TextEmbedding
