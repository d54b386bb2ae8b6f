"""The encoder behind a name that a user has set."""

from __future__ import annotations

from collections.abc import Mapping

from speckit_memory.config.files.paths import is_file, named_path
from speckit_memory.config.settings import EMBEDDER_VARIABLE
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing.embedders.missing import MissingEncoder
from speckit_memory.memory.indexing.embedders.model_name import FASTEMBED, ModelName
from speckit_memory.memory.indexing.embedders.onnx import OnnxEncoder
from speckit_memory.memory.indexing.embedders.protocol import SentenceEncoder
from speckit_memory.memory.indexing.embedders.sentence_transformers import SentenceTransformersEncoder

_ONNX_FILES = ("model.onnx", "onnx/model.onnx")
_FOLDER_FILES = ("modules.json", "config.json")
_ACTIONS = (f"name a model that is there in {EMBEDDER_VARIABLE}", f"unset {EMBEDDER_VARIABLE} for the bundled model")


def named_encoder(name: ModelName, environ: Mapping[str, str]) -> SentenceEncoder:
    """That of an ONNX file or of a folder, or one that was pulled; what is neither says so when it is asked."""
    if name.kind == FASTEMBED:
        from speckit_memory.memory.indexing.embedders.pulled.encoder import FastembedEncoder

        return FastembedEncoder(name.model, environ)
    try:
        path = named_path(name.model, EMBEDDER_VARIABLE)
    except SpeckitError as error:
        return MissingEncoder(_missing(error.problems[0].message))
    files = [path] if path.suffix == ".onnx" else [path / file for file in _ONNX_FILES]
    for file in files:
        if is_file(file):
            return OnnxEncoder(file)
    if any(is_file(path / file) for file in _FOLDER_FILES):
        return SentenceTransformersEncoder(path)
    return MissingEncoder(
        _missing(
            f"{EMBEDDER_VARIABLE} is '{name.model}', which is neither an ONNX file nor a folder with model.onnx or "
            f"{' or '.join(_FOLDER_FILES)}"
        )
    )


def _missing(reason: str) -> SpeckitError:
    return SpeckitError("E001", reason, hint="Words find everything meanwhile.", actions=_ACTIONS)
