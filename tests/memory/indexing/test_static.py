from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.errors import SpeckitError
from memory.indexing.embedders import StaticEmbedder
from memory.indexing.embedders.static import BULK

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=80), min_size=1, max_size=5)
NARROW = StaticEmbedder()


@pytest.mark.requirement("I6")
@settings(deadline=None)
@given(TEXTS)
def test_a_text_has_the_same_unit_vector_alone_and_in_any_batch(texts: list[str]) -> None:
    few = NARROW.embed_documents(texts)
    bulk = StaticEmbedder()
    bulk._model = NARROW._loaded()  # the same data, so that every example does not load it again
    many = bulk.embed_documents((texts * BULK)[:BULK])[: len(texts)]

    assert few.dtype == np.float32
    assert few.tobytes() == many.tobytes() == np.stack([NARROW.embed_query(text) for text in texts]).tobytes()
    lengths = np.linalg.norm(few, axis=1)
    assert np.all((lengths == 0) | (np.abs(lengths - 1) < 1e-5))


@pytest.mark.requirement("I6")
def test_meaning_shows_in_the_cosine(embedder: StaticEmbedder) -> None:
    query, near, far = embedder.embed_documents(
        ["database index performance", "making SQL queries faster", "a recipe for apple pie"]
    )

    assert query @ near > query @ far


def test_an_empty_text_has_a_zero_vector(embedder: StaticEmbedder) -> None:
    assert not embedder.embed_query("").any()
    assert embedder.embed_documents([]).shape == (0, embedder.dimensions)


def test_token_vectors_are_unit_rows_in_text_order(embedder: StaticEmbedder) -> None:
    ids, vectors = embedder.token_vectors("rank fusion rank fusion")

    assert len(ids) == len(vectors)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert embedder.token_vectors("")[1].shape == (0, embedder.dimensions)


def test_threads_load_the_model_once() -> None:
    fresh = StaticEmbedder()

    with ThreadPoolExecutor(8) as pool:
        vectors = list(pool.map(fresh.embed_query, ["same text"] * 16))

    assert all(vector.tobytes() == vectors[0].tobytes() for vector in vectors)


@pytest.mark.requirement("I6")
def test_missing_data_files_are_an_error_with_a_code(tmp_path: Path) -> None:
    missing = StaticEmbedder(tmp_path)

    for use in (lambda: missing.model_id, lambda: missing.embed_query("text")):
        with pytest.raises(SpeckitError) as caught:
            use()
        assert caught.value.code == "E001"
