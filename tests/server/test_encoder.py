"""A sentence encoder of the user's own, through the console script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny_encoder import UNKNOWN, write_encoder

from speckit_memory.config.workspace.settings import EMBEDDER_VARIABLE, ENCODER_VARIABLE
from speckit_memory.memory.models.embedders import StaticEmbedder
from speckit_memory.stages.annotate.encoder_notice import MESSAGE
from tests.server.doors import DOCUMENTS, Ran, call

TABLE = {UNKNOWN: (0.0, 0.0, 0.01), "felines": (1.0, 0.0, 0.0), "quokka": (1.0, 0.0, 0.0), "online": (0.0, 1.0, 0.0)}
"""To this model felines and quokkas are the same; no document speaks of felines."""


PASSAGES = len(DOCUMENTS) + 1
"""The long document is two."""


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    return write_encoder(tmp_path / "models" / "tiny", TABLE)


def run(workspace: Path, encoder: Path | None, *arguments: str) -> Ran:
    return call(workspace, arguments, {} if encoder is None else {EMBEDDER_VARIABLE: str(encoder)})


def searched(workspace: Path, encoder: Path | None, query: str, *more: str) -> Any:
    return run(workspace, encoder, "search", query, "--json", *more).ok().json


def vector_scores(answer: Any) -> dict[str, Any]:
    """What the vector channel says of each result that it found."""
    return {one["key"]: one["channels"]["vector"] for one in answer["results"] if "vector" in one["channels"]}


def model(workspace: Path, encoder: Path | None) -> tuple[str, str]:
    (check,) = (
        check for check in run(workspace, encoder, "doctor", "--json").json["checks"] if check["name"] == "model"
    )
    return check["verdict"], check["detail"]


@pytest.mark.requirement("I7", "I6.named")
def test_a_named_encoder_takes_over_with_the_next_run_and_finds_what_it_means(workspace: Path, encoder: Path) -> None:
    bundled = StaticEmbedder().model_id

    report = run(workspace, encoder, "index", "docs", "--json").json

    (problem,) = report["problems"]
    assert problem["code"] == "E003"
    assert f"the store held vectors made by '{bundled}', the configured model is 'onnx-tiny-" in problem["message"]
    assert (report["embedded"], report["cache_hits"], report["pending"]) == (PASSAGES, 0, 0)
    assert report["unchanged"] == len(DOCUMENTS)
    verdict, detail = model(workspace, encoder)
    assert (verdict, detail.startswith("onnx-tiny-"), detail[-23:]) == ("ok", True, ", 3 dimensions, offline")
    found = searched(workspace, encoder, "felines")
    assert found["notes"]["degraded"] == []
    assert found["results"][0]["key"] == "docs/long.md"
    assert list(found["results"][0]["channels"]) == ["vector"]

    again = run(workspace, encoder, "index", "docs", "--json").json
    assert (again["problems"], again["embedded"]) == ([], 0)
    back = run(workspace, None, "index", "docs", "--json").json
    assert (back["problems"][0]["code"], back["embedded"], back["cache_hits"]) == ("E003", PASSAGES, 0)


@pytest.mark.requirement("R1")
def test_late_interaction_goes_on_with_the_bundled_tokens_beside_an_encoder(workspace: Path, encoder: Path) -> None:
    before = searched(workspace, None, "which ranks are fused?")
    run(workspace, encoder, "index", "docs")
    after = searched(workspace, encoder, "which ranks are fused?")

    for answer in (before, after):
        assert answer["notes"]["degraded"] == []
        assert "maxsim" in [step["step"] for step in answer["results"][0]["steps"]]
    assert before["results"][0]["channels"]["vector"] != after["results"][0]["channels"]["vector"]


@pytest.mark.requirement("I7", "I6.beside")
def test_until_all_is_embedded_again_the_old_vectors_answer_and_say_so(workspace: Path, encoder: Path) -> None:
    before = searched(workspace, None, "which ranks are fused?")
    answer = searched(workspace, encoder, "which ranks are fused?")

    assert answer["results"][0]["key"] == "docs/fusion.md"
    assert "maxsim" in [step["step"] for step in answer["results"][0]["steps"]]
    assert answer["notes"]["degraded"] == []
    assert vector_scores(answer) == vector_scores(before) != {}
    said = (
        f"vectors of bundled answer; SPECKIT_EMBEDDER names {encoder}, another model: "
        "`speckit-memory index PATH` changes to it"
    )
    assert before["notes"]["warnings"] == []
    assert answer["notes"]["warnings"] == [said]
    verdict, detail = model(workspace, encoder)
    assert verdict == "warn"
    assert detail.startswith(StaticEmbedder().model_id)
    assert detail.endswith(said)


@pytest.mark.requirement("I7")
def test_an_encoder_that_cannot_run_leaves_the_store_as_it_is(workspace: Path, encoder: Path) -> None:
    (encoder / "model.onnx").write_bytes(b"no model")

    ran = run(workspace, encoder, "index", "docs", "--json").ok()
    assert [problem["code"] for problem in ran.json["problems"]] == ["E001"]
    verdict, detail = model(workspace, encoder)
    assert verdict == "fail"
    assert "the configured model cannot be used" in detail
    assert f"SPECKIT_EMBEDDER names {encoder}" in searched(workspace, encoder, "ranks")["notes"]["warnings"][0]
    assert model(workspace, None)[0] == "ok"
    assert searched(workspace, None, "which ranks are fused?")["notes"]["degraded"] == []


@pytest.mark.requirement("I6")
def test_the_quality_preset_says_that_it_is_made_for_an_encoder(workspace: Path, encoder: Path) -> None:
    asked = ["search", "which ranks are fused?", "--pipeline", "quality"]
    without = call(workspace, [*asked, "--json"]).ok().json
    assert without["results"][0]["key"] == "docs/fusion.md"
    assert without["notes"]["warnings"] == [MESSAGE]
    assert MESSAGE in call(workspace, asked).out

    named = {ENCODER_VARIABLE: str(encoder)}
    call(workspace, ["maintain"], named).ok()
    answer = call(workspace, [*asked, "--json"], named).ok().json
    assert answer["results"][0]["key"] == "docs/fusion.md"
    assert answer["notes"]["warnings"] == []
