"""With a model of two inputs: the logit is the number of tokens of the query and the text together, less ten."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from speckit_memory.memory.models.crossencoders import chosen
from speckit_memory.memory.models.crossencoders.onnx import LONGEST
from speckit_memory.pipeline.ports import Column, Unavailable

pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")


@pytest.fixture(params=[1, 2], ids=["one output", "two outputs"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with the model and its tokeniser; with two outputs, the first is always 5."""
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "word": 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    helper, kind = onnx.helper, onnx.TensorProto
    of_text = ["batch", "length"]
    nodes = [
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=kind.FLOAT),
        helper.make_node("ReduceSum", ["mask", "axis"], ["count"], keepdims=1),
        helper.make_node("Sub", ["count", "ten"], ["logits" if request.param == 1 else "second"]),
    ]
    numbers = [
        helper.make_tensor("axis", kind.INT64, [1], [1]),
        helper.make_tensor("ten", kind.FLOAT, [1], [10.0 if request.param == 1 else 5.0]),
    ]
    if request.param == 2:
        nodes += [
            helper.make_node("Mul", ["second", "zero"], ["nothing"]),
            helper.make_node("Add", ["nothing", "five"], ["first"]),
            helper.make_node("Concat", ["first", "second"], ["logits"], axis=1),
        ]
        numbers += [
            helper.make_tensor("zero", kind.FLOAT, [1], [0.0]),
            helper.make_tensor("five", kind.FLOAT, [1], [5.0]),
        ]
    graph = helper.make_graph(
        nodes, "counting",
        [helper.make_tensor_value_info(name, kind.INT64, of_text) for name in ("input_ids", "attention_mask")],
        [helper.make_tensor_value_info("logits", kind.FLOAT, ["batch", request.param])],
        numbers,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "onnx").mkdir()
    onnx.save(model, str(tmp_path / "onnx" / "model.onnx"))
    return tmp_path


def expected(*counts: int) -> Column:
    return 1 / (1 + np.exp(10.0 - np.array(counts)))


@pytest.mark.requirement("R1")
def test_query_and_text_are_read_together_with_the_tokeniser_beside_the_model(folder: Path) -> None:
    relevance = chosen(str(folder)).score("two words", ["one", "one two three", ""], None)
    assert not isinstance(relevance, Unavailable)
    np.testing.assert_allclose(relevance, expected(3, 5, 2), rtol=1e-6)


def test_long_texts_are_cut(folder: Path) -> None:
    relevance = chosen(str(folder / "onnx" / "model.onnx")).score("query", ["word " * 5000, "word"], None)
    assert not isinstance(relevance, Unavailable)
    np.testing.assert_allclose(relevance, expected(LONGEST, 2), rtol=1e-6)


def test_a_missing_tokeniser_is_an_absence_with_a_reason(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    assert isinstance(chosen(str(folder)).score("query", ["text"], None), Unavailable)
