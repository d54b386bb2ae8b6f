"""A cross-encoder in an ONNX file, with its tokeniser next to it; needs the extra `onnx`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from speckit_memory.pipeline.ports import Column

LONGEST = 512
"""Tokens of a query and a text together; beyond it, the longer of the two is truncated."""

TOKENIZER = "tokenizer.json"


class OnnxCrossEncoder:
    """Runs the model on the CPU. The file is loaded at first use; `tokenizer.json` is next to it or one folder above.
    The logit is the output of models with one, and the second minus the first of models with two."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._loading = threading.Lock()
        self._run: Callable[[list[tuple[str, str]]], Any] | None = None

    def load(self) -> None:
        """Load the file if necessary."""
        self._loaded()

    def logits(self, query: str, texts: Sequence[str]) -> Column:
        """Return the log-odds of each text being relevant, shape (n,)."""
        run = self._loaded()
        output = np.asarray(run([(query, text) for text in texts]), np.float64).reshape(len(texts), -1)
        # output: (n, 1) or (n, 2); with softmax over two classes, the log-odds are the difference of the logits.
        odds: Column = output[:, 0] if output.shape[1] == 1 else output[:, 1] - output[:, 0]
        return odds

    def _loaded(self) -> Callable[[list[tuple[str, str]]], Any]:
        with self._loading:
            self._run = self._run or self._load()
        return self._run

    def _load(self) -> Callable[[list[tuple[str, str]]], Any]:
        try:
            import onnxruntime
        except ImportError as error:
            raise RuntimeError("the package onnxruntime is not installed; install speckit-memory[onnx]") from error
        from tokenizers import Tokenizer

        folder = next((f for f in self._file.parents[:2] if (f / TOKENIZER).is_file()), self._file.parent)
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        tokenizer.enable_truncation(LONGEST)
        tokenizer.enable_padding()
        session = onnxruntime.InferenceSession(str(self._file), providers=["CPUExecutionProvider"])
        wanted = {part.name for part in session.get_inputs()}

        def run(pairs: list[tuple[str, str]]) -> Any:
            encodings = tokenizer.encode_batch(pairs)
            inputs = {
                "input_ids": [encoding.ids for encoding in encodings],
                "attention_mask": [encoding.attention_mask for encoding in encodings],
                "token_type_ids": [encoding.type_ids for encoding in encodings],
            }
            arrays = {name: np.array(rows, np.int64) for name, rows in inputs.items() if name in wanted}
            return session.run(None, arrays)[0]

        return run
