"""An encoder of the BERT family that numpy runs: a layer worked by hand, and what is refused."""

from __future__ import annotations

import json
import math
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_encoder import UNKNOWN
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from speckit_memory.config.workspace.settings import EMBEDDER_VARIABLE
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders import chosen
from speckit_memory.memory.models.embedders.bert import BertEncoder, read_tensors

CONFIG = {
    "model_type": "bert", "hidden_act": "gelu", "num_hidden_layers": 1, "num_attention_heads": 1,
    "layer_norm_eps": 0.0, "max_position_embeddings": 4,
}  # fmt: skip
WORDS = {UNKNOWN: (0.0, 2.0), "up": (0.0, 2.0), "down": (2.0, 0.0)}
LAYER = "encoder.layer.0."


def tensors(**changed: Any) -> dict[str, Any]:
    """A model of two dimensions whose attention gives the mean of the tokens and whose inner layer is the identity."""
    eye, none = np.eye(2, dtype=np.float32), np.zeros((2, 2), np.float32)
    found = {
        "embeddings.word_embeddings.weight": np.array(list(WORDS.values()), np.float32),
        "embeddings.position_embeddings.weight": np.zeros((4, 2), np.float32),
        "embeddings.token_type_embeddings.weight": none,
    }
    weights = {
        "attention.self.query": none, "attention.self.key": none, "attention.self.value": eye,
        "attention.output.dense": eye, "intermediate.dense": eye, "output.dense": eye,
    }  # fmt: skip
    for name, weight in weights.items():
        found[f"{LAYER}{name}.weight"], found[f"{LAYER}{name}.bias"] = weight, np.zeros(2, np.float32)
    for name in ("embeddings", f"{LAYER}attention.output", f"{LAYER}output"):
        found[f"{name}.LayerNorm.weight"], found[f"{name}.LayerNorm.bias"] = np.ones(2, np.float32), none[0]
    return found | changed


def write_model(folder: Path, found: dict[str, Any], **config: Any) -> Path:
    folder.mkdir(parents=True)
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    content = b""
    kinds = {"float32": "F32", "float16": "F16", "int64": "I64"}
    for name, tensor in found.items():
        raw = tensor.tobytes()
        header[name] = {
            "dtype": kinds[tensor.dtype.name], "shape": list(tensor.shape),
            "data_offsets": [len(content), len(content) + len(raw)],
        }  # fmt: skip
        content += raw
    written = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(written)) + written + content)
    (folder / "config.json").write_text(json.dumps(CONFIG | config))
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.mark.requirement("I6.named")
def test_a_layer_attends_adds_and_normalises_as_worked_by_hand(tmp_path: Path) -> None:
    bias = np.array([0.0, 1.0], np.float32)
    found = tensors(**{f"{LAYER}output.LayerNorm.bias": bias, f"{LAYER}attention.output.dense.bias": bias})
    encoder = BertEncoder(write_model(tmp_path / "tiny" / "model", found))

    # "up" is (0, 2), normalised (-1, 1), and so is its attention; with the bias (-2, 3), normalised (-1, 1). GELU makes
    # (-1 · Φ(-1), Φ(1)) = (-0.159, 0.841) of it; the sum (-1.159, 1.841) normalises to (-1, 1), and the bias is added
    assert encoder.encode("up") == pytest.approx([-1.0, 2.0], abs=1e-5)
    # of "up down" both tokens attend to the mean (0, 0): (-1, 2) and (1, 0) normalise to (-1, 1) and (1, -1)
    assert encoder.encode("up down") == pytest.approx([0.0, 1.0], abs=1e-5)
    assert (encoder.name, encoder.pooling()) == ("bert-tiny", "mean")


def test_the_inner_layer_bends_as_the_normal_distribution_says(tmp_path: Path) -> None:
    inner = np.array([[0.5, 0.0], [0.0, 0.5]], np.float32)
    found = tensors(
        **{f"{LAYER}intermediate.dense.weight": inner, f"{LAYER}output.dense.bias": np.array([1.0, 0.0], np.float32)}
    )
    model = BertEncoder(write_model(tmp_path / "tiny", found, layer_norm_eps=1.0))

    def normalised(a: float, b: float) -> tuple[float, float]:
        half = (a - b) / 2
        return half / math.sqrt(half * half + 1), -half / math.sqrt(half * half + 1)

    def gelu(x: float) -> float:
        return x * (1 + math.erf(x / math.sqrt(2))) / 2

    a, b = normalised(0.0, 2.0)
    a, b = normalised(a + a, b + b)
    assert model.encode("up") == pytest.approx(normalised(a + gelu(a / 2) + 1.0, b + gelu(b / 2)), abs=1e-6)


def test_weights_of_16_bits_are_read_under_the_prefix_of_a_whole_model(tmp_path: Path) -> None:
    halves: dict[str, Any] = {f"bert.{name}": tensor.astype(np.float16) for name, tensor in tensors().items()}
    halves["bert.embeddings.position_ids"] = np.arange(4)
    whole, half = (write_model(tmp_path / name, found) for name, found in (("a", tensors()), ("b", halves)))

    assert BertEncoder(half).encode("up down down") == pytest.approx(BertEncoder(whole).encode("up down down"))
    assert BertEncoder(half).fingerprint() != BertEncoder(whole).fingerprint()
    (tmp_path / "c").mkdir()
    wrong = write_model(tmp_path / "c" / "d", {"embeddings.word_embeddings.weight": np.arange(4)})
    with pytest.raises(ValueError, match="weight holds I64; accepted: floating-point numbers of 32 or 16 bits"):
        read_tensors(wrong / "model.safetensors")


@pytest.mark.requirement("I6.named")
def test_a_folder_with_weights_needs_no_library_and_others_say_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    bert = write_model(tmp_path / "mini", tensors())
    other = write_model(tmp_path / "other", tensors(), hidden_act="relu")

    embedder = chosen({EMBEDDER_VARIABLE: str(bert)})
    assert embedder.model_id.startswith("bert-mini-")
    assert embedder.embed_query("up") == pytest.approx([-math.sqrt(0.5), math.sqrt(0.5)], abs=1e-5)
    with pytest.raises(SpeckitError, match="sentence-transformers"):
        chosen({EMBEDDER_VARIABLE: str(other)}).embed_query("up")
    (bert / "model.safetensors").write_bytes(b"\x00")
    with pytest.raises(SpeckitError, match="the sentence encoder bert-mini cannot be used") as caught:
        chosen({EMBEDDER_VARIABLE: str(bert)}).embed_query("up")
    assert caught.value.problems[0].code == "E001"
