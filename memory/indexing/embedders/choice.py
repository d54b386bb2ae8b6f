"""Which embedding model the environment names (feature I6)."""

from __future__ import annotations

from collections.abc import Mapping

from speckit_memory.config.files.paths import is_file, named_path
from speckit_memory.config.settings import DOCUMENT_PROMPT_VARIABLE, EMBEDDER_VARIABLE, QUERY_PROMPT_VARIABLE
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing.embedders.encoder import EncoderEmbedder
from speckit_memory.memory.indexing.embedders.missing import MissingEncoder
from speckit_memory.memory.indexing.embedders.onnx import OnnxEncoder
from speckit_memory.memory.indexing.embedders.protocol import SentenceEncoder
from speckit_memory.memory.indexing.embedders.sentence_transformers import SentenceTransformersEncoder
from speckit_memory.memory.indexing.embedders.static import StaticEmbedder

_ONNX_FILES = ("model.onnx", "onnx/model.onnx")
_FOLDER_FILES = ("modules.json", "config.json")


def chosen(environ: Mapping[str, str]) -> StaticEmbedder | EncoderEmbedder:
    """The encoder in an ONNX file or in a folder, of one that has both forms the ONNX file; else the bundled model.

    Nothing is read but names; what is wrong with the files shows when the first text is embedded.
    """
    bundled, setting = StaticEmbedder(), environ.get(EMBEDDER_VARIABLE, "")
    if not setting:
        return bundled
    prompts = environ.get(QUERY_PROMPT_VARIABLE), environ.get(DOCUMENT_PROMPT_VARIABLE)
    return EncoderEmbedder(_encoder(setting), bundled, *prompts)


def _encoder(setting: str) -> SentenceEncoder:
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
