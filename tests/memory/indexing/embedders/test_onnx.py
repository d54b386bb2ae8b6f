"""Vectors of ONNX files, worked out by hand from a table of token vectors."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from answered import refused
from tiny_encoder import UNKNOWN, write_encoder

from speckit_memory.config.workspace.settings import DOCUMENT_PROMPT_VARIABLE, EMBEDDER_VARIABLE, QUERY_PROMPT_VARIABLE
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders import StaticEmbedder, TokenModel, chosen
from speckit_memory.memory.models.embedders.protocol import Embedder

TABLE = {UNKNOWN: (0.0, 0.0, 5.0), "north": (4.0, 0.0, 0.0), "east": (0.0, 2.0, 0.0), "query": (0.0, 0.0, 9.0)}
PROMPTS = {"prompts": {"query": "query ", "passage": "east "}}


def named(path: Path, **environ: str) -> Embedder:
    return chosen({EMBEDDER_VARIABLE: str(path), **environ})


def unit(*numbers: float) -> np.ndarray:
    vector = np.array(numbers)
    direction: np.ndarray = vector / np.linalg.norm(vector)
    return direction


def pools(config: Mapping[str, Any]) -> dict[str, Any]:
    """The file of a model's folder that says how tokens are pooled."""
    return {"1_Pooling__config": config}


def rows(embedder: Embedder, *texts: str) -> np.ndarray:
    return embedder.embed_documents(texts)


@pytest.mark.requirement("I6")
def test_a_vector_is_the_mean_of_the_token_vectors_brought_to_length_one(tmp_path: Path) -> None:
    embedder = named(write_encoder(tmp_path, TABLE))

    # (4, 0, 0) and (0, 2, 0) have the mean (2, 1, 0)
    np.testing.assert_allclose(rows(embedder, "North east", "east"), [unit(2, 1, 0), unit(0, 1, 0)], atol=1e-6)
    assert embedder.dimensions == 3
    np.testing.assert_array_equal(embedder.embed_query("north east"), rows(embedder, "north east")[0])
    assert rows(embedder).shape == (0, 3)


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, unit(2, 1, 0)),
        ({"pooling_mode_cls_token": True}, unit(1, 0, 0)),
        ({"pooling_mode_max_tokens": True}, unit(4, 2, 0)),
        ({"pooling_mode": "cls"}, unit(1, 0, 0)),
        ({}, unit(2, 1, 0)),
    ],
)
def test_tokens_are_pooled_as_the_folder_says(tmp_path: Path, pooling: Mapping[str, Any], expected: np.ndarray) -> None:
    embedder = named(write_encoder(tmp_path, TABLE, **pools(pooling)))
    np.testing.assert_allclose(embedder.embed_query("north east"), expected, atol=1e-6)


def test_an_output_that_is_one_vector_per_text_is_taken_as_it_is(tmp_path: Path) -> None:
    embedder = named(write_encoder(tmp_path, TABLE, pooled=True, **pools({"pooling_mode": "cls"})))
    np.testing.assert_allclose(embedder.embed_query("north east"), unit(4, 2, 0), atol=1e-6)


def test_what_is_longer_than_the_model_reads_is_cut(tmp_path: Path) -> None:
    embedder = named(write_encoder(tmp_path, TABLE, sentence_bert_config={"max_seq_length": 2}))
    np.testing.assert_allclose(embedder.embed_query("north north " + "east " * 50), unit(1, 0, 0), atol=1e-6)


def test_a_blank_text_has_a_zero_vector(tmp_path: Path) -> None:
    embedder = named(write_encoder(tmp_path, TABLE))
    assert not rows(embedder, " \n").any()
    assert not embedder.embed_query("").any()


@pytest.mark.requirement("I6")
def test_prompts_come_from_the_folder_unless_the_environment_says_otherwise(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path, TABLE, config_sentence_transformers=PROMPTS)
    asked, stored = named(folder).embed_query("north"), rows(named(folder), "north")[0]
    np.testing.assert_allclose([asked, stored], [unit(4, 0, 9), unit(4, 2, 0)], atol=1e-6)

    other = named(folder, **{QUERY_PROMPT_VARIABLE: "", DOCUMENT_PROMPT_VARIABLE: "query "})
    np.testing.assert_allclose(
        [other.embed_query("north"), rows(other, "north")[0]], [unit(1, 0, 0), unit(4, 0, 9)], atol=1e-6
    )


@pytest.mark.requirement("I6", "I7")
def test_the_model_id_tells_weights_and_what_stands_before_passages_apart_and_nothing_else(tmp_path: Path) -> None:
    one = write_encoder(tmp_path / "one" / "tiny", TABLE)
    same = write_encoder(tmp_path / "same" / "tiny", TABLE)
    other = write_encoder(tmp_path / "other" / "tiny", TABLE | {"east": (0.0, 2.5, 0.0)})
    pooled = write_encoder(tmp_path / "pooled" / "tiny", TABLE, **pools({"pooling_mode": "cls"}))

    first = named(one).model_id
    assert first.startswith("onnx-tiny-")
    assert named(one, **{QUERY_PROMPT_VARIABLE: "query "}).model_id == first
    assert named(same).model_id == first
    different = {named(other).model_id, named(pooled).model_id, named(one, **{DOCUMENT_PROMPT_VARIABLE: "x"}).model_id}
    assert len(different | {first}) == 4


@pytest.mark.requirement("R1")
def test_tokens_are_always_those_of_the_bundled_model(tmp_path: Path) -> None:
    embedder, bundled = named(write_encoder(tmp_path, TABLE)), StaticEmbedder()
    assert isinstance(embedder, TokenModel)
    assert embedder.token_model_id == bundled.model_id
    (tokens,) = embedder.tokenise(["north"])
    np.testing.assert_array_equal(tokens, bundled.tokenise(["north"])[0])
    wide = tokens.astype(np.int64)
    np.testing.assert_array_equal(embedder.token_vectors(wide), bundled.token_vectors(wide))


@pytest.mark.parametrize("place", ["model.onnx", "onnx/model.onnx"])
def test_the_file_may_be_named_itself_or_lie_one_folder_below(tmp_path: Path, place: str) -> None:
    folder = write_encoder(tmp_path, TABLE, place=place)
    assert named(folder / place).model_id == named(folder).model_id
    np.testing.assert_allclose(named(folder / place).embed_query("north"), unit(1, 0, 0), atol=1e-6)


def failure(embedder: Embedder) -> SpeckitError:
    with refused("E001") as caught:
        embedder.embed_query("north")
    return caught.value


def test_a_file_with_other_inputs_is_refused_with_what_is_accepted(tmp_path: Path) -> None:
    error = failure(named(write_encoder(tmp_path, TABLE, inputs=("input_ids", "pixels"))))
    assert "it requires the inputs input_ids tensor(int64), pixels tensor(int64)" in str(error)
    assert "accepted: input_ids, attention_mask, token_type_ids" in str(error)


def test_a_missing_tokeniser_is_named(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path, TABLE)
    (folder / "tokenizer.json").unlink()
    assert "tokenizer.json" in str(failure(named(folder)))


def test_a_damaged_file_is_a_failure_of_the_encoder(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path, TABLE)
    (folder / "model.onnx").write_bytes(b"no model")
    assert f"the sentence encoder onnx-{tmp_path.name} cannot be used" in str(failure(named(folder)))


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"1_Pooling__config": {"pooling_mode_weightedmean_tokens": True}}, "pooling_mode_weightedmean_tokens"),
        ({"modules": [{"type": "models.Transformer", "path": ""}, {"type": "models.Dense", "path": "2"}]}, "Dense"),
    ],
)
def test_settings_that_would_be_ignored_are_refused(tmp_path: Path, settings: dict[str, Any], found: str) -> None:
    assert found in str(failure(named(write_encoder(tmp_path, TABLE, **settings))))


def test_a_vector_without_a_direction_is_a_failure(tmp_path: Path) -> None:
    embedder = named(write_encoder(tmp_path, TABLE | {"north": (np.nan, 0.0, 0.0)}))
    assert "length nan" in str(failure(embedder))


def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_encoder(tmp_path, TABLE)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    error = failure(named(folder))
    assert "onnxruntime" in str(error)
    assert error.problems[0].actions == ("run `pip install 'speckit-memory[onnx]'`",)
