"""Creates the encoder for a model name from the settings."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from speckit_memory.config.files.paths import is_file, named_path
from speckit_memory.config.workspace.settings import EMBEDDER_VARIABLE
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders.bert import BertEncoder
from speckit_memory.memory.models.embedders.model_name import FASTEMBED, ModelName
from speckit_memory.memory.models.embedders.onnx import OnnxEncoder
from speckit_memory.memory.models.embedders.protocol import SentenceEncoder
from speckit_memory.memory.models.embedders.sentence_transformers import SentenceTransformersEncoder

_ONNX_FILES = ("model.onnx", "onnx/model.onnx")
_FOLDER_FILES = ("modules.json", "config.json")


def named_encoder(name: ModelName, environ: Mapping[str, str], variable: str = EMBEDDER_VARIABLE) -> SentenceEncoder:
    """Return the encoder of an ONNX file, a model folder or a pulled model. Raises E001 for other paths."""
    if name.kind == FASTEMBED:
        from speckit_memory.memory.models.embedders.pulled.encoder import FastembedEncoder

        return FastembedEncoder(name.model, environ, variable)
    try:
        path = named_path(name.model, variable)
    except SpeckitError as error:
        raise _missing(error.problems[0].message, variable) from error
    files = [path] if path.suffix == ".onnx" else [path / file for file in _ONNX_FILES]
    for file in files:
        if is_file(file):
            return OnnxEncoder(file)
    if BertEncoder.is_in(path) and find_spec("sentence_transformers") is None:
        return BertEncoder(path)
    if any(is_file(path / file) for file in _FOLDER_FILES):
        return SentenceTransformersEncoder(path)
    raise _missing(
        f"{variable} is '{name.model}', which is neither an ONNX file nor a folder with model.onnx or "
        f"{' or '.join(_FOLDER_FILES)}",
        variable,
    )


def _missing(reason: str, variable: str) -> SpeckitError:
    actions = (f"name an existing model in {variable}", f"unset {variable} for the bundled model")
    return SpeckitError("E001", reason, hint="Until then, searches use words only.", actions=actions)
