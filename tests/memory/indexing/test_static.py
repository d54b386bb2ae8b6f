from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from answered import refused
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.memory.models.embedders import StaticEmbedder
from speckit_memory.memory.models.embedders.protocol import TokenModel
from speckit_memory.memory.models.embedders.static import BATCH

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=80), min_size=1, max_size=5)
MODEL = StaticEmbedder()


@pytest.mark.requirement("I6")
@given(TEXTS)
def test_a_text_has_the_same_unit_vector_alone_and_in_any_batch(texts: list[str]) -> None:
    few = MODEL.embed_documents(texts)
    many = MODEL.embed_documents((texts * BATCH)[: BATCH + 1])[: len(texts)]

    assert few.dtype == np.float32
    assert few.tobytes() == many.tobytes() == np.stack([MODEL.embed_query(text) for text in texts]).tobytes()
    lengths = np.linalg.norm(few, axis=1)
    assert np.all((lengths == 0) | (np.abs(lengths - 1) < 1e-5))


@given(TEXTS)
def test_the_tokens_of_a_text_tell_its_vector(texts: list[str]) -> None:
    tokens = MODEL.tokenise(texts)

    assert MODEL.pool_documents(tokens).tobytes() == MODEL.embed_documents(texts).tobytes()
    even = [MODEL.pool_query(numbers, np.full(len(numbers), 3.0)) for numbers in tokens]
    np.testing.assert_allclose(even, MODEL.embed_documents(texts), atol=1e-5)


@pytest.mark.requirement("I6")
def test_meaning_shows_in_the_cosine(embedder: StaticEmbedder) -> None:
    query, near, far = embedder.embed_documents(
        ["database index performance", "making SQL queries faster", "a recipe for apple pie"]
    )

    assert query @ near > query @ far


def test_an_empty_text_has_a_zero_vector(embedder: StaticEmbedder) -> None:
    assert not embedder.embed_query("").any()
    assert embedder.embed_documents([]).shape == (0, embedder.dimensions)


@pytest.mark.requirement("C1")
def test_a_query_leans_to_the_tokens_with_the_larger_factors(embedder: StaticEmbedder) -> None:
    (tokens,) = embedder.tokenise(["apple database"])
    apple, database = (embedder.embed_query(word) for word in ("apple", "database"))
    towards = embedder.pool_query(tokens, np.where(np.arange(len(tokens)) == 0, 5.0, 1.0))
    away = embedder.pool_query(tokens, np.where(np.arange(len(tokens)) == 0, 1.0, 5.0))

    assert towards @ apple > away @ apple
    assert away @ database > towards @ database
    np.testing.assert_allclose([np.linalg.norm(towards), np.linalg.norm(away)], 1, atol=1e-5)
    assert not embedder.pool_query(tokens[:0], np.empty(0)).any()


@pytest.mark.requirement("R1")
def test_single_tokens_have_unit_vectors_of_the_direction_that_they_give_a_text(embedder: StaticEmbedder) -> None:
    assert isinstance(embedder, TokenModel)
    (tokens,) = embedder.tokenise(["apple"])

    vectors = embedder.token_vectors(tokens.astype(np.int64))
    np.testing.assert_allclose(vectors, [embedder.embed_query("apple")], atol=1e-6)
    everything = embedder.token_vectors(np.arange(300))
    np.testing.assert_allclose(np.linalg.norm(everything[3:], axis=1), 1, atol=1e-5)
    assert embedder.token_vectors(np.empty(0, np.int64)).shape == (0, embedder.dimensions)


def test_threads_load_the_model_once() -> None:
    fresh = StaticEmbedder()

    with ThreadPoolExecutor(8) as pool:
        vectors = list(pool.map(fresh.embed_query, ["same text"] * 16))

    assert all(vector.tobytes() == vectors[0].tobytes() for vector in vectors)


@pytest.mark.requirement("I6")
def test_missing_data_files_are_an_error_with_a_code(tmp_path: Path) -> None:
    missing = StaticEmbedder(tmp_path)

    for use in (lambda: missing.model_id, lambda: missing.embed_query("text")):
        with refused("E001"):
            use()
