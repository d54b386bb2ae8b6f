from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np
import pytest

from speckit_memory.pipeline.arithmetic.bags import BagParameters
from speckit_memory.pipeline.testing import FakeStore, Memory

SHORT = {"characters": 20.0}
STORE = FakeStore(
    Memory(1, "alpha", ("one", "two"), triggers=("gamma",), path="delta", folder="notes", numbers=SHORT),
    Memory(2, "beta", ("one",), folder="notes", numbers=SHORT),
    Memory(3, "beta", ("three",), folder="else", numbers=SHORT),
    holes=1,
)
WHOLE, PASSAGES = (1.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 1.0)


def found(bags: Any, term: str) -> list[int]:
    """The ids of the rows that a term scores."""
    ids: list[int] = bags.ids[np.flatnonzero(bags.scores({term: 1.0}))].tolist()
    return ids


def test_rows_are_memories_or_passages_and_know_their_memory() -> None:
    memories, passages = STORE.lexicon.bags(WHOLE, 1.2, 0.75), STORE.lexicon.bags(PASSAGES, 1.2, 0.75, "chunk")

    assert memories.ids.tolist() == [-1, 1, 2, 3]
    assert memories.parents.tolist() == [-1, 1, 2, 3]
    assert passages.ids.tolist() == [-1, 101, 102, 2, 3]
    assert passages.parents.tolist() == [-1, 1, 1, 2, 3]


def test_rows_know_the_memories_before_and_after_theirs() -> None:
    memories, passages = STORE.lexicon.bags(WHOLE, 1.2, 0.75), STORE.lexicon.bags(PASSAGES, 1.2, 0.75, "chunk")
    before, after = STORE.attributes.neighbours(np.array([1, 2, 3]))
    assert (before.tolist(), after.tolist()) == ([-1, 1, -1], [2, -1, -1])

    assert memories.neighbours is not None
    assert [rows[1:].tolist() for rows in memories.neighbours] == [[-1, 1, -1], [2, -1, -1]]
    assert passages.neighbours is not None
    assert [rows[1:].tolist() for rows in passages.neighbours] == [[-1, -1, 1, -1], [2, 2, -1, -1]]


def test_where_no_memory_has_a_neighbour_that_is_all_there_is_to_say() -> None:
    assert FakeStore(Memory(1, "alpha"), Memory(2, "beta")).lexicon.bags(WHOLE, 1.2, 0.75).neighbours is None


@pytest.mark.parametrize(
    ("weights", "term"),
    [((2.0, 0.0, 0.0, 1.0), "alpha"), ((0.0, 2.0, 0.0, 1.0), "gamma"), ((0.0, 0.0, 2.0, 1.0), "delta")],
)
def test_a_passage_has_the_weighted_fields_of_its_memory(weights: Any, term: str) -> None:
    assert found(STORE.lexicon.bags(PASSAGES, 1.2, 0.75, "chunk"), term) == []

    assert found(STORE.lexicon.bags(weights, 1.2, 0.75, "chunk"), term) == [101, 102]
    assert found(STORE.lexicon.bags(weights, 1.2, 0.75), term) == [1]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (((0.0, 0.0, 0.0, 0.0), 1.2, 0.75, "memory"), "one of them above 0"),
        (((1.0, 1.0, 1.0), 1.2, 0.75, "memory"), "4 numbers from 0"),
        (((1.0, -1.0, 0.0, 0.0), 1.2, 0.75, "memory"), "4 numbers from 0"),
        (((nan, 0.0, 0.0, 1.0), 1.2, 0.75, "memory"), "4 numbers from 0"),
        ((WHOLE, -0.1, 0.75, "memory"), "k1 from 0"),
        ((WHOLE, inf, 0.75, "memory"), "k1 from 0"),
        ((WHOLE, 1.2, 1.1, "memory"), "b from 0 to 1"),
        ((WHOLE, 1.2, 0.75, "section"), "accepted: memory, chunk"),
    ],
)
def test_what_is_no_setting_is_refused(asked: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        BagParameters.of(*asked)


def test_settings_of_the_same_numbers_are_the_same() -> None:
    numbers: Any = (1, 0, False, np.float32(2))

    setting = BagParameters.of(numbers, np.float64(1.0), 0, "chunk")

    assert setting == BagParameters.of((1.0, 0.0, 0.0, 2.0), 1.0, 0.0, "chunk")
    assert {type(number) for number in (*setting.weights, setting.k1, setting.b)} == {float}
