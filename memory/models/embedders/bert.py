"""Runs a BERT sentence encoder from a model folder with numpy, without any extra (feature I6)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from speckit_memory.config.files.paths import is_file
from speckit_memory.memory.models.embedders import model_folder
from speckit_memory.memory.models.embedders.token_encoder import TOKENIZER, TokenEncoder
from speckit_memory.pipeline.ports import Vectors

WEIGHTS, CONFIG = "model.safetensors", "config.json"
_ACCEPTED = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
Tensors = Mapping[str, Vectors]


class BertEncoder(TokenEncoder):
    """Runs the model in float32, one text at a time, with the results of sentence-transformers."""

    @staticmethod
    def is_in(folder: Path) -> bool:
        """Whether a folder contains a model of this kind."""
        if not all(is_file(folder / name) for name in (WEIGHTS, CONFIG, TOKENIZER)):
            return False
        config = model_folder.settings_of(folder / CONFIG)
        return all(config.get(name, accepted) == accepted for name, accepted in _ACCEPTED.items())

    @property
    def name(self) -> str:
        """The name of the model's folder, or of its parent if it is called `model`, as in packages."""
        folder = self._folder.resolve()
        return f"bert-{folder.parent.name if folder.name == 'model' else folder.name}"

    def _files(self) -> Sequence[Path]:
        return [self._folder / name for name in (WEIGHTS, CONFIG, TOKENIZER)]

    def _load(self) -> Callable[[str], Vectors]:
        config = model_folder.settings_of(self._folder / CONFIG)
        tokenizer = self._tokenizer(min(model_folder.longest(self._folder), config["max_position_embeddings"]))
        tensors = read_tensors(self._folder / WEIGHTS)
        pooled = self._pooled()
        return lambda text: pooled(_states(tokenizer.encode(text).ids, tensors, config))


def read_tensors(file: Path) -> Tensors:
    """Read the tensors of a safetensors file as float32, by name without the prefix "bert.".

    Raises ValueError for dtypes other than F32 and F16.
    """
    # format: uint64 length of the header, JSON header with dtype, shape and offsets of each tensor, then the data
    content = np.memmap(file, np.uint8, "r")
    length = int(content[:8].view("<u8")[0])
    header: dict[str, Any] = json.loads(content[8 : 8 + length].tobytes())
    found = {}
    for name, about in header.items():
        begin, end = about.get("data_offsets", (0, 0))
        # Positions 0, 1, 2 … are stored by some versions of transformers; they are no weights.
        if name == "__metadata__" or name.endswith("position_ids"):
            continue
        if about["dtype"] not in ("F32", "F16"):
            raise ValueError(f"{name} holds {about['dtype']}; accepted: floating-point numbers of 32 or 16 bits")
        # A view of the mapped file, little-endian; astype copies it into memory in the byte order of the machine.
        raw = content[8 + length + begin : 8 + length + end].view("<f4" if about["dtype"] == "F32" else "<f2")
        found[name.removeprefix("bert.")] = raw.reshape(about["shape"]).astype(np.float32)
    return found


def _states(ids: list[int], tensors: Tensors, config: Mapping[str, Any]) -> Vectors:
    """Return the last hidden state of every token, shape (tokens, dimensions)."""
    # Devlin et al. 2019, post-layer-norm encoder: x = norm(x + attention(x)); x = norm(x + feed_forward(x))
    # All states: (tokens, dimensions) float32.
    norm = partial(_normalised, tensors=tensors, epsilon=config["layer_norm_eps"])
    part = "embeddings."
    states = tensors[f"{part}word_embeddings.weight"][ids] + tensors[f"{part}position_embeddings.weight"][: len(ids)]
    # Row 0 of the token types: a single text has no second segment.
    states = norm(states + tensors[f"{part}token_type_embeddings.weight"][0], f"{part}LayerNorm")
    for number in range(config["num_hidden_layers"]):
        part = f"encoder.layer.{number}."
        attended = _attention(states, f"{part}attention.self.", tensors, config["num_attention_heads"])
        attended = _linear(attended, f"{part}attention.output.dense", tensors)
        states = norm(states + attended, f"{part}attention.output.LayerNorm")
        inner = _gelu(_linear(states, f"{part}intermediate.dense", tensors))
        states = norm(states + _linear(inner, f"{part}output.dense", tensors), f"{part}output.LayerNorm")
    return states


def _linear(states: Vectors, name: str, tensors: Tensors) -> Vectors:
    product: Vectors = states @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]
    return product


def _attention(states: Vectors, name: str, tensors: Tensors, heads: int) -> Vectors:
    def of_heads(part: str) -> Vectors:
        # (tokens, dimensions) to (heads, tokens, dimensions / heads).
        return _linear(states, name + part, tensors).reshape(len(states), heads, -1).swapaxes(0, 1)

    # Vaswani et al. 2017: softmax(Q·Kᵀ / √d)·V per head; query, key, value: (heads, tokens, d)
    query, key, value = map(of_heads, ("query", "key", "value"))
    scores = query @ key.swapaxes(1, 2) / np.float32(np.sqrt(query.shape[2]))
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))  # (heads, tokens, tokens); max avoids overflow
    weights /= weights.sum(axis=2, keepdims=True)
    # Back to (tokens, dimensions), with the heads side by side.
    attended: Vectors = (weights @ value).swapaxes(0, 1).reshape(len(states), -1)
    return attended


def _normalised(states: Vectors, name: str, *, tensors: Tensors, epsilon: float) -> Vectors:
    # LayerNorm (Ba et al. 2016): (x - mean) / sqrt(variance + ε) · weight + bias, per token.
    centred = states - states.mean(axis=1, keepdims=True)
    # The variance divides by n, not by n - 1, as LayerNorm does.
    deviation = np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + np.float32(epsilon))
    normalised: Vectors = centred / deviation * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]
    return normalised


def _gelu(x: Vectors) -> Vectors:
    """Return x · Φ(x), with the error function of Abramowitz and Stegun 7.1.26, accurate to 1.5e-7."""
    size = np.abs(x) * np.float32(np.sqrt(0.5))
    # t = 1 / (1 + p·z) with z = |x| / √2; the five factors are a5 to a1, so that Horner's scheme sums a1·t + … +
    # a5·t⁵.
    t = 1.0 / (1.0 + np.float32(0.3275911) * size)
    series = np.zeros_like(t)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = (series + np.float32(factor)) * t
    half: Vectors = 0.5 * series * np.exp(-size * size)  # half the complement of the error function
    # half = Φ(-|x|), and Φ(x) = 1 - Φ(-x): one series serves both signs.
    return x * np.where(x >= 0, 1.0 - half, half)
