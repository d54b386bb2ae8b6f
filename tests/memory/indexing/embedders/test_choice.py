from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from speckit_memory.config.workspace.settings import EMBEDDER_VARIABLE
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders import StaticEmbedder, chosen
from speckit_memory.memory.models.embedders.encoder import EncoderEmbedder
from speckit_memory.memory.models.embedders.model_folder import Prompts
from speckit_memory.pipeline.ports import Vectors


@pytest.mark.requirement("I6.offline")
@pytest.mark.parametrize("environ", [{}, {EMBEDDER_VARIABLE: ""}])
def test_without_a_setting_the_bundled_model_is_chosen(environ: dict[str, str]) -> None:
    assert isinstance(chosen(environ), StaticEmbedder)


@pytest.mark.parametrize("name", ["nothing", "empty", "file.txt"])
def test_a_setting_that_names_no_model_is_a_failure_of_its_uses_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("")
    embedder = chosen({EMBEDDER_VARIABLE: str(tmp_path / name)})
    uses: list[Callable[[], object]] = [
        lambda: embedder.model_id,
        lambda: embedder.dimensions,
        lambda: embedder.embed_query("text"),
        lambda: embedder.embed_documents(["text"]),
    ]
    for use in uses:
        with pytest.raises(SpeckitError) as caught:
            use()
        (problem,) = caught.value.problems
        assert problem.code == "E001"
        assert problem.message == (
            f"SPECKIT_EMBEDDER is '{tmp_path / name}', which is neither an ONNX file nor a folder with model.onnx or "
            "modules.json or config.json"
        )
        assert problem.actions == (
            "name an existing model in SPECKIT_EMBEDDER",
            "unset SPECKIT_EMBEDDER for the bundled model",
        )


def test_a_model_folder_without_its_library_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "modules.json").write_text("[]")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    embedder = chosen({EMBEDDER_VARIABLE: str(tmp_path)})
    assert embedder.model_id.startswith(f"st-{tmp_path.name}-")
    with pytest.raises(SpeckitError, match="sentence-transformers") as caught:
        embedder.embed_query("text")
    assert "run `pip install 'speckit-memory[st]'`" in caught.value.problems[0].actions


LONG = bytes(1_000_000)


class Counting:
    """An encoder that must not be entered by two threads at once."""

    name = "counting"

    def __init__(self) -> None:
        self.read: list[str] = []
        self.loads = 0
        self._inside = threading.Lock()

    def fingerprint(self) -> str:
        return "one"

    def prompts(self) -> Prompts:
        return Prompts("", "")

    def pooling(self) -> str:
        return "mean"

    def load(self) -> None:
        self.loads += 1
        sha256(LONG)  # lets other threads run

    def encode(self, text: str) -> Vectors:
        assert self._inside.acquire(blocking=False)
        try:
            self.read.append(text)
            sha256(LONG)  # lets other threads run
            return np.array([3.0, 4.0], np.float32)
        finally:
            self._inside.release()


@pytest.mark.requirement("I6.remembered")
def test_a_query_asked_again_costs_no_model_time() -> None:
    encoder = Counting()
    embedder = EncoderEmbedder(encoder, StaticEmbedder())
    first, again = embedder.embed_query("text"), embedder.embed_query("text")
    np.testing.assert_allclose(first, [0.6, 0.8])
    assert again.tolist() == first.tolist()
    assert again is not first
    assert encoder.read == ["text"]


@pytest.mark.requirement("I6.lazy")
def test_threads_take_turns() -> None:
    encoder = Counting()
    embedder = EncoderEmbedder(encoder, StaticEmbedder())
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: embedder.embed_documents([f"text {number}"]), range(50)))
    assert len(encoder.read) == 51  # one text tells the dimensions
    assert encoder.loads == 1
