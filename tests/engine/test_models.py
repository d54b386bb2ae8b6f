"""What stands behind the words of a query, through the assembled product."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from speckit_memory.config.workspace.settings import CROSS_ENCODER_VARIABLE
from speckit_memory.engine import Memory
from speckit_memory.memory.store.tables.meta import set_meta
from speckit_memory.memory.store.tables.vectors.vectors import forget_all
from speckit_memory.memory.store.tables.words import token_sets
from speckit_memory.memory.store.writing.writer import set_vectors
from speckit_memory.pipeline.ports import Unavailable

NOTES = {
    "fusion.md": "# Fuse by score\n\nWe add the standardised scores because ranks forget distances.\n",
    "storage.md": "# One SQLite file\n\nEverything lives in the one file in WAL mode.\n",
    "gateway.md": "# Gateway\n\nThe gateway retries the request three times.\n",
}
RERANKED = """\
pipeline: reranked
candidates: {channels: [{use: bm25}]}
fusion: [{use: single, scale: bm25, normalise: min_max}]
rerank: [{use: cross_encoder, optional: true}]
"""


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    for key, text in NOTES.items():
        (tmp_path / key).write_text(text, encoding="utf-8")
    with Memory.open(tmp_path / "m.db", root=tmp_path, environ={}, strict=True) as opened:
        opened.index([tmp_path])
        yield opened


@pytest.mark.requirement("R1")
def test_the_shipped_pipeline_looks_a_second_time_through_tokens(memory: Memory) -> None:
    result = memory.search("which scores are added?", deadline_ms=None)
    assert result.results[0].key == "fusion.md"
    assert result.notes.degraded == ()
    assert "maxsim" in [step for step, _ in result.results[0].steps]


@pytest.mark.requirement("C1")
def test_words_of_every_passage_hardly_turn_a_query(memory: Memory) -> None:
    vectors = memory.session.view().vectors
    one, same = vectors.embed("gateway"), vectors.embed("the the gateway")
    assert isinstance(one, np.ndarray)
    assert isinstance(same, np.ndarray)
    plain = memory.models.embedder.embed_query
    assert one @ same > plain("gateway") @ plain("the the gateway")


def test_vectors_of_another_model_are_an_absence_with_what_to_do(memory: Memory) -> None:
    chunk = memory.list()[0][0].id
    with memory.session.database.write() as txn:
        forget_all(txn)
        set_vectors(txn, {chunk: np.eye(3, dtype=np.float32)[0]}, "another")
    answer = memory.session.view().vectors.embed("text")
    assert isinstance(answer, Unavailable)
    assert answer.reason == (
        f"the store holds vectors of 'another', the configured model is '{memory.models.embedder.model_id}'; "
        "run `speckit-memory index PATH` to embed again"
    )


def test_tokens_of_another_model_are_an_absence_with_what_to_do(memory: Memory) -> None:
    with memory.session.database.write() as txn:
        set_meta(txn, token_sets.MODEL, "another")
    answer = memory.session.view().tokens.of_text("text")
    assert isinstance(answer, Unavailable)
    assert answer.reason == (
        f"the store holds tokens of 'another', the configured model is '{memory.models.embedder.model_id}'; "
        "run `speckit-memory index PATH` to embed again"
    )
    memory.index([])
    assert isinstance(memory.session.view().tokens.of_text("text"), np.ndarray)


@pytest.mark.requirement("R1.model")
def test_a_pipeline_with_a_cross_encoder_says_what_is_missing(tmp_path: Path, memory: Memory) -> None:
    file = tmp_path / "reranked.yaml"
    file.write_text(RERANKED)
    for setting, reason in (
        ("", "no cross-encoder is configured"),
        (str(tmp_path), "neither an ONNX file nor a folder"),
    ):
        with Memory.open(
            memory.session.settings.db, str(file), root=tmp_path, environ={CROSS_ENCODER_VARIABLE: setting}
        ) as m:
            result = m.search("which scores are added?")
            assert result.results[0].key == "fusion.md"
            (degraded,) = result.notes.degraded
            assert degraded.part == "cross_encoder"
            assert reason in degraded.reason
