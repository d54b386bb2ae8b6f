"""A sentence encoder in an ONNX file, with its tokeniser next to it; needs the extra `onnx` (feature I6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders import model_folder
from speckit_memory.memory.models.embedders.token_encoder import TOKENIZER, TokenEncoder
from speckit_memory.pipeline.ports import Vectors

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
"""The inputs that a model file may have."""

_INTEGERS: dict[str, np.dtype[Any]] = {"tensor(int64)": np.dtype(np.int64), "tensor(int32)": np.dtype(np.int32)}


class OnnxEncoder(TokenEncoder):
    """Runs the model on one processor, one text at a time: padded batches are not faster there.

    `tokenizer.json` and the settings are next to the file or one folder above. The first output of the file is either
    one vector per token, pooled as `1_Pooling/config.json` says (by default their mean), or the vector of the text.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        super().__init__(next((folder for folder in file.parents[:2] if (folder / TOKENIZER).is_file()), file.parent))

    @property
    def name(self) -> str:
        """The name of the model's folder."""
        return f"onnx-{self._folder.resolve().name}"

    def _files(self) -> Sequence[Path]:
        # The weights of a large model are in further files whose names begin with that of the model.
        weights = sorted(path for path in self._file.parent.glob(f"{escape(self._file.name)}*") if path.is_file())
        return [*weights, self._folder / TOKENIZER]

    def _load(self) -> Callable[[str], Vectors]:
        try:
            import onnxruntime
        except ImportError:
            raise SpeckitError(
                "E001",
                f"the package onnxruntime, which runs {self._file}, is not installed",
                hint="It comes with the extra 'onnx'.",
                actions=("run `pip install 'speckit-memory[onnx]'`",),
            ) from None
        if not (self._folder / TOKENIZER).is_file():
            raise FileNotFoundError(f"there is no {TOKENIZER} next to it or one folder above")
        tokenizer, pooled = self._tokenizer(model_folder.longest(self._folder)), self._pooled()
        options = onnxruntime.SessionOptions()
        # One thread: reproducible sums, and no competition with searches.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(self._file), options, providers=["CPUExecutionProvider"])
        kinds = _kinds(session.get_inputs())

        def run(text: str) -> Vectors:
            encoding = tokenizer.encode(text)
            given = dict(zip(INPUTS, (encoding.ids, encoding.attention_mask, encoding.type_ids), strict=True))
            # A batch of one: each input is (1, tokens).
            output = session.run(None, {name: np.array([given[name]], kind) for name, kind in kinds.items()})[0]
            if output.ndim not in (2, 3) or len(output) != 1:
                raise ValueError(f"its first output has the shape {output.shape}; accepted: (1, tokens, n) or (1, n)")
            vector: Vectors = output[0] if output.ndim == 2 else pooled(output[0])
            return vector

        return run


def _kinds(inputs: Sequence[Any]) -> dict[str, np.dtype[Any]]:
    """Return the dtype of each input. Raises ValueError for inputs that a sentence encoder does not have."""
    found = {part.name: part.type for part in inputs}
    if "input_ids" not in found or not found.keys() <= set(INPUTS) or not set(found.values()) <= _INTEGERS.keys():
        asked = ", ".join(f"{name} {kind}" for name, kind in found.items())
        raise ValueError(f"it requires the inputs {asked}; accepted: {', '.join(INPUTS)} of integers")
    return {name: _INTEGERS[kind] for name, kind in found.items()}
