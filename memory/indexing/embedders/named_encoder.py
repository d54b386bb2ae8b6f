"""The encoder behind a name that a user has set."""

from __future__ import annotations

from speckit_memory.config.files.paths import is_file, named_path
from speckit_memory.config.settings import EMBEDDER_VARIABLE
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing.embedders.missing import MissingEncoder
from speckit_memory.memory.indexing.embedders.onnx import OnnxEncoder
from speckit_memory.memory.indexing.embedders.protocol import SentenceEncoder
from speckit_memory.memory.indexing.embedders.sentence_transformers import SentenceTransformersEncoder

_ONNX_FILES = ("model.onnx", "onnx/model.onnx")
_FOLDER_FILES = ("modules.json", "config.json")


def named_encoder(setting: str) -> SentenceEncoder:
    """That of an ONNX file or of a folder; one that is neither says so when it is asked."""
    try:
        path = named_path(setting, EMBEDDER_VARIABLE)
    except SpeckitError as error:
        return MissingEncoder(error.problems[0].message)
    files = [path] if path.suffix == ".onnx" else [path / name for name in _ONNX_FILES]
    for file in files:
        if is_file(file):
            return OnnxEncoder(file)
    if any(is_file(path / name) for name in _FOLDER_FILES):
        return SentenceTransformersEncoder(path)
    return MissingEncoder(
        f"{EMBEDDER_VARIABLE} is '{setting}', which is neither an ONNX file nor a folder with model.onnx or "
        f"{' or '.join(_FOLDER_FILES)}"
    )
