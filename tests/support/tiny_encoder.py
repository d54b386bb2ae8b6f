"""Sentence encoders small enough to be followed by hand: the vector of a token is a row of a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace

UNKNOWN = "[UNK]"


def write_encoder(
    folder: Path,
    table: Mapping[str, Sequence[float]],
    *,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    pooled: bool = False,
    place: str = "model.onnx",
    **settings: Any,
) -> Path:
    """A folder with a model whose token vectors are those of `table`, which must have a row for `UNKNOWN`.

    `settings` are further files by name, "/" as "__" and without suffix, written as JSON. With `pooled` the model's
    output is the sum of the tokens' vectors. Skips the test when nothing can run it.
    """
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(table)}, unk_token=UNKNOWN))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    rows = np.array(list(table.values()), np.float32)
    constants = [onnx.numpy_helper.from_array(rows, "table"), helper.make_tensor("axis", kind.INT64, [1], [1])]
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["tokens"])]
    if pooled:
        nodes.append(helper.make_node("ReduceSum", ["tokens", "axis"], ["sum"], keepdims=0))
    shape = ["batch", rows.shape[1]] if pooled else ["batch", "length", rows.shape[1]]
    graph = helper.make_graph(
        nodes, "tiny",
        [helper.make_tensor_value_info(name, kind.INT64, ["batch", "length"]) for name in inputs],
        [helper.make_tensor_value_info("sum" if pooled else "tokens", kind.FLOAT, shape)],
        constants if pooled else constants[:1],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / place).parent.mkdir(exist_ok=True)
    onnx.save(model, str(folder / place))
    for name, content in settings.items():
        path = folder / f"{name.replace('__', '/')}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
    return folder
