"""Resolves the cross-encoder setting."""

from __future__ import annotations

from speckit_memory.config.files.paths import is_file, named_path
from speckit_memory.config.workspace.settings import CROSS_ENCODER_VARIABLE
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.crossencoders.guarded import GuardedCrossEncoder
from speckit_memory.memory.models.crossencoders.none import NoCrossEncoder

_ONNX_FILES = ("model.onnx", "onnx/model.onnx")


def chosen(setting: str) -> NoCrossEncoder | GuardedCrossEncoder:
    """Return the cross-encoder in an ONNX file or a model folder; in a folder with both, the ONNX file is preferred.

    Only file names are checked; errors in the files appear when the first text is scored. An empty setting means none.
    """
    if not setting:
        return NoCrossEncoder()
    # Imported only if a model is named.
    from speckit_memory.memory.models.crossencoders.onnx import OnnxCrossEncoder
    from speckit_memory.memory.models.crossencoders.sentence_transformers import SentenceTransformersCrossEncoder

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
