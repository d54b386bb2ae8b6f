from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.config.workspace.settings import CROSS_ENCODER_VARIABLE
from speckit_memory.memory.models.crossencoders import GuardedCrossEncoder, chosen
from speckit_memory.pipeline.ports import Unavailable


@pytest.mark.requirement("R1")
def test_without_a_setting_the_answer_says_how_to_get_a_cross_encoder() -> None:
    reason = "no cross-encoder is configured; set SPECKIT_CROSS_ENCODER to a model folder or an ONNX file"
    assert chosen("").score("query", ["text"], None) == Unavailable(reason)
    assert CROSS_ENCODER_VARIABLE in reason


def test_a_setting_that_is_no_model_is_named(tmp_path: Path) -> None:
    for setting in (tmp_path / "missing", tmp_path / "missing.onnx", tmp_path):
        answer = chosen(str(setting)).score("query", ["text"], None)
        assert isinstance(answer, Unavailable)
        assert f"SPECKIT_CROSS_ENCODER is '{setting}'" in answer.reason


@pytest.mark.parametrize("place", ["model.onnx", "onnx/model.onnx"])
def test_an_onnx_file_is_found_by_itself_and_in_a_folder(tmp_path: Path, place: str) -> None:
    file = tmp_path / place
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"not a model")
    for setting in (file, tmp_path):
        model = chosen(str(setting))
        assert isinstance(model, GuardedCrossEncoder)
        assert isinstance(model.score("query", ["text"], None), Unavailable)


def test_a_folder_of_sentence_transformers_that_cannot_be_read_is_an_absence_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    model = chosen(str(tmp_path))
    assert isinstance(model, GuardedCrossEncoder)
    answer = model.score("query", ["text"], None)
    assert isinstance(answer, Unavailable)
    assert answer.reason.startswith("the cross-encoder failed: ")
