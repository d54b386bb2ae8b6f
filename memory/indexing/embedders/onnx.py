"""A sentence encoder in an ONNX file, with its tokeniser beside it; needs the extra `onnx` (feature I6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing.embedders import model_folder
from speckit_memory.memory.indexing.embedders.model_folder import Pooling, Prompts
from speckit_memory.pipeline.ports import Vectors

TOKENIZER = "tokenizer.json"
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
"""What a file may ask for."""

POOLED: dict[Pooling, Callable[[Vectors], Vectors]] = {
    "mean": lambda rows: rows.mean(axis=0),
    "cls": lambda rows: rows[0],
    "max": lambda rows: rows.max(axis=0),
}
"""How the vectors of tokens become one."""
_INTEGERS: dict[str, np.dtype[Any]] = {"tensor(int64)": np.dtype(np.int64), "tensor(int32)": np.dtype(np.int32)}


class OnnxEncoder:
    """Runs the model on one processor, one text at a time: without padding, batches are not faster there.

    `tokenizer.json` and the settings stand beside the file or one folder above. The first output of the file is either
    one vector per token, which are pooled as `1_Pooling/config.json` says (else their mean), or the vector of the text.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._folder = next((folder for folder in file.parents[:2] if (folder / TOKENIZER).is_file()), file.parent)
        self._run: Callable[[str], Vectors] | None = None

    @property
    def name(self) -> str:
        """The name of the model's folder."""
        return f"onnx-{self._folder.resolve().name}"

    def fingerprint(self) -> str:
        """A digest of the weights, wherever they lie, of the tokeniser and of how the vectors are pooled."""
        weights = sorted(path for path in self._file.parent.glob(f"{escape(self._file.name)}*") if path.is_file())
        files = model_folder.digest([*weights, self._folder / TOKENIZER])
        return f"{files} {model_folder.longest(self._folder)} {model_folder.pooling(self._folder)}"

    def prompts(self) -> Prompts:
        """The prompts that the folder names."""
        return model_folder.prompts(self._folder)

    def pooling(self) -> str:
        """As the folder says."""
        return model_folder.pooling(self._folder)

    def load(self) -> None:
        """Reads the file, unless that is done."""
        self._loaded()

    def encode(self, text: str) -> Vectors:
        """The vector of a text, shape (dimensions,)."""
        return self._loaded()(text)

    def _loaded(self) -> Callable[[str], Vectors]:
        if self._run is None:
            self._run = self._load()
        return self._run

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
        from tokenizers import Tokenizer

        if not (self._folder / TOKENIZER).is_file():
            raise FileNotFoundError(f"there is no {TOKENIZER} beside it or one folder above")
        tokenizer = Tokenizer.from_file(str(self._folder / TOKENIZER))
        tokenizer.no_padding()
        tokenizer.enable_truncation(model_folder.longest(self._folder))
        pooled = POOLED[model_folder.pooling(self._folder)]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(self._file), options, providers=["CPUExecutionProvider"])
        kinds = _kinds(session.get_inputs())

        def run(text: str) -> Vectors:
            encoding = tokenizer.encode(text)
            given = dict(zip(INPUTS, (encoding.ids, encoding.attention_mask, encoding.type_ids), strict=True))
            output = session.run(None, {name: np.array([given[name]], kind) for name, kind in kinds.items()})[0]
            if output.ndim not in (2, 3) or len(output) != 1:
                raise ValueError(f"its first output has the shape {output.shape}; accepted: (1, tokens, n) or (1, n)")
            vector: Vectors = output[0] if output.ndim == 2 else pooled(output[0])
            return vector

        return run


def _kinds(inputs: Sequence[Any]) -> dict[str, np.dtype[Any]]:
    """The kind of number that each input takes. Raises ValueError for inputs that a sentence encoder does not have."""
    found = {part.name: part.type for part in inputs}
    if "input_ids" not in found or not found.keys() <= set(INPUTS) or not set(found.values()) <= _INTEGERS.keys():
        asked = ", ".join(f"{name} {kind}" for name, kind in found.items())
        raise ValueError(f"it asks for the inputs {asked}; accepted: {', '.join(INPUTS)} of whole numbers")
    return {name: _INTEGERS[kind] for name, kind in found.items()}
