from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from answered import refused
from storing.indexes import read_model
from storing.models import WordModels, token_sets

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.current import ReadModel
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.tables.words import token_sets as on_disk
from speckit_memory.memory.store.writing import writer
from speckit_memory.pipeline.ports import Column, Tokens, Unavailable, Vectors

Make = Callable[..., Document]
Unit = Callable[..., Vectors]


@pytest.fixture
def put(database: Database, document: Make, unit: Unit) -> Callable[..., int]:
    """Stores a memory of these passages with their vectors and tokens; gives its id."""

    def store(key: str, *passages: str, tokens: Sequence[Tokens] | None = None) -> int:
        with database.write() as txn:
            return writer.put_document(
                txn, document(key, *passages), unit(*range(len(passages))), 1.0, "m",
                token_sets(*passages) if tokens is None else tokens,
            ).id  # fmt: skip

    return store


def held(model: ReadModel, *ids: int) -> list[list[int]]:
    return [tokens.tolist() for tokens in model.current().tokens.of_passages(np.array(ids))]


@pytest.mark.requirement("R1")
def test_passages_have_their_distinct_tokens_and_memories_those_of_their_first_passage(
    model: ReadModel, put: Callable[..., int]
) -> None:
    one, several = put("one", "beta alpha beta"), put("several", "gamma delta", "alpha")
    assert held(model, one, several + 2, several, several + 1, 99) == [[0, 1], [0], [2, 3], [2, 3], []]


@pytest.mark.requirement("C1")
def test_tokens_weigh_as_they_are_rare_among_the_passages(model: ReadModel, put: Callable[..., int]) -> None:
    put("a", "alpha beta", "alpha")
    put("b", "alpha alpha gamma")
    weights = model.current().tokens.weights(np.arange(4))
    frequencies = np.array([3, 1, 1, 0])
    np.testing.assert_allclose(weights, np.log((3 - frequencies + 0.5) / (frequencies + 0.5) + 1))
    assert (weights > 0).all()


@pytest.mark.requirement("C1")
def test_a_query_turns_to_its_rare_words_as_the_store_changes(model: ReadModel, put: Callable[..., int]) -> None:
    put("a", "alpha")
    put("b", "alpha beta")
    common = model.current().vectors.embed("alpha beta")
    for number in range(3):
        put(f"more {number}", "beta")
    put("a", "gamma")
    rare = model.current().vectors.embed("alpha beta")
    assert not isinstance(common, Unavailable)
    assert not isinstance(rare, Unavailable)
    assert common[1] > common[0]
    assert rare[0] > rare[1]


def test_query_tokens_are_distinct_and_have_the_vectors_of_the_model(model: ReadModel) -> None:
    space = model.current().tokens
    tokens = space.of_text("gamma alpha gamma unknown")
    assert not isinstance(tokens, Unavailable)
    assert tokens.tolist() == [0, 2]
    np.testing.assert_array_equal(space.vectors(tokens), np.eye(4)[[0, 2]])


def test_a_model_without_tokens_is_an_absence(database: Database) -> None:
    class NoTokens(WordModels):
        def tokens(self, text: str) -> Unavailable:  # type: ignore[override]
            return Unavailable("no tokens")

    assert read_model(database, NoTokens()).current().tokens.of_text("alpha") == Unavailable("no tokens")


def test_tokens_come_and_go_with_their_passage(
    model: ReadModel, database: Database, document: Make, unit: Unit, put: Callable[..., int]
) -> None:
    changed, gone = put("changed", "alpha", "beta"), put("gone", "gamma")
    with database.write() as txn:
        waiting = writer.put_document(txn, document("waiting", "delta"), None, 1.0, None).id
        writer.delete_memories(txn, [gone])
    put("changed", "delta")
    assert held(model, changed, changed + 1, changed + 2, gone, waiting) == [[3], [], [], [], []]
    assert database.check() == []

    with database.write() as txn:
        writer.set_vectors(txn, {waiting: unit(1)[0]}, "m", dict(zip([waiting], token_sets("delta"), strict=True)))
    assert held(model, waiting) == [[3]]
    assert database.check() == []


def test_an_equal_document_completes_vectors_and_tokens(
    model: ReadModel, database: Database, document: Make, put: Callable[..., int]
) -> None:
    with database.write() as txn:
        writer.put_document(txn, document("a", "alpha", "beta"), None, 1.0, None)
    a = put("a", "alpha", "beta")
    assert held(model, a + 1, a + 2) == [[0], [1]]


def test_what_is_read_late_holds_no_passage_that_the_state_does_not_know(
    model: ReadModel, put: Callable[..., int]
) -> None:
    kept = put("kept", "alpha")
    old = model.current()
    new = put("new", "alpha beta")
    assert [tokens.tolist() for tokens in old.tokens.of_passages(np.array([kept, new]))] == [[0], []]
    np.testing.assert_allclose(old.tokens.weights(np.array([0])), np.log(0.5 / 1.5 + 1))
    assert held(model, kept, new) == [[0], [0, 1]]


def test_another_model_takes_over_with_its_own_tokens(
    model: ReadModel, database: Database, unit: Unit, put: Callable[..., int]
) -> None:
    a = put("a", "alpha")
    old = model.current()
    assert held(model, a) == [[0]]
    with database.write() as txn:
        vectors.forget_all(txn)
    assert held(model, a) == [[]]
    with database.write() as txn:
        writer.set_vectors(txn, {a: unit(1)[0]}, "another", {a: np.array([2, 70_000], np.uint32)})
    assert held(model, a) == [[2, 70_000]]
    assert old.tokens.of_passages(np.array([a]))[0].tolist() == [0]


@pytest.mark.requirement("R1")
def test_tokens_of_another_width_are_refused_and_nothing_of_the_document_is_written(
    database: Database, document: Make, unit: Unit, put: Callable[..., int], dump: Callable[[Database], object]
) -> None:
    put("a", "alpha")
    before = dump(database)
    with database.write() as txn, refused("E002"):
        writer.put_document(txn, document("b", "beta"), unit(1), 1.0, "m", [np.array([1], np.uint32)])
    assert dump(database) == before


def test_a_store_of_vectors_without_tokens_answers_and_weighs_all_tokens_alike(
    model: ReadModel, database: Database, document: Make, unit: Unit
) -> None:
    with database.write() as txn:
        a = writer.put_document(txn, document("a", "alpha beta"), unit(1), 1.0, "m").id
    assert held(model, a) == [[]]
    weights: Column = model.current().tokens.weights(np.arange(3))
    assert len(set(weights.tolist())) == 1
    assert weights[0] > 0


def test_a_damaged_store_names_tokens_that_belong_to_nothing(database: Database, put: Callable[..., int]) -> None:
    a = put("a", "alpha")
    with database.write() as txn:
        txn.connection.execute("DELETE FROM chunk_vectors")
        txn.connection.execute("UPDATE chunks SET vector = 'pending'")
        txn.connection.execute("UPDATE memories SET embedding_status = 'pending'")
    assert database.check() == [f"the tokens of chunk {a} belong to no vector"]


def test_numbers_are_stored_narrow(database: Database, put: Callable[..., int]) -> None:
    put("a", "alpha beta", "")
    blobs = database.reader().execute("SELECT tokens FROM chunk_tokens ORDER BY chunk_id").fetchall()
    assert blobs == [(b"\x00\x00\x01\x00",), (b"",)]
    chunks, lengths, flat = on_disk.load(database.reader())
    assert (len(chunks), lengths.tolist(), flat.tolist(), flat.dtype) == (2, [2, 0], [0, 1], np.dtype(np.uint16))
