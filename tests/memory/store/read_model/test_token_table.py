from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.memory.store.read_model.vectors.token_table import TokenTable
from speckit_memory.pipeline.ports import Tokens

Sets = dict[int, list[int]]

sets = st.dictionaries(
    st.integers(1, 30), st.lists(st.integers(0, 40), max_size=6, unique=True).map(sorted), max_size=8
)
steps = st.lists(st.tuples(st.lists(st.integers(1, 30), max_size=4), sets), max_size=6)


def columns(of: Sets, kind: type = np.uint16) -> tuple[np.ndarray, np.ndarray, Tokens]:
    chunks = sorted(of)
    flat = [token for chunk in chunks for token in of[chunk]]
    return (
        np.array(chunks, np.int64), np.array([len(of[chunk]) for chunk in chunks], np.int64), np.array(flat, kind)
    )  # fmt: skip


def content(table: TokenTable, ids: Sequence[int] = range(32)) -> dict[str, object]:
    return {
        "count": table.count,
        "sets": {id_: tokens.tolist() for id_, tokens in zip(ids, table.of(np.array(ids)), strict=True)},
        "frequency": table.frequency(np.arange(60)).tolist(),
    }


def expected(of: Sets) -> dict[str, object]:
    return {
        "count": len(of),
        "sets": {id_: of.get(id_, []) for id_ in range(32)},
        "frequency": [sum(token in tokens for tokens in of.values()) for token in range(60)],
    }


@pytest.mark.requirement("R1")
@given(sets, steps)
def test_a_table_that_followed_the_changes_holds_what_a_new_one_would(
    first: Sets, changes: list[tuple[Any, ...]]
) -> None:
    table, of = TokenTable(*columns(first)), dict(first)
    for gone, new in changes:
        before, was = table, expected(of)
        outdated = {*gone, *new}  # a chunk that is added is not there before
        table = table.replaced(np.array(sorted(outdated), np.int64), *columns(new))
        of = {id_: tokens for id_, tokens in of.items() if id_ not in outdated} | new
        assert content(table) == expected(of)
        assert content(before) == was


def test_two_states_after_the_same_one_do_not_disturb_each_other() -> None:
    nothing, first = np.array([], np.int64), list(range(20))
    base = TokenTable(*columns({1: first})).replaced(nothing, *columns({2: [3]}))  # has room to spare
    one, two = (base.replaced(nothing, *columns({3: [token]})) for token in (7, 8))
    assert one._room is base._room
    assert content(one) == expected({1: first, 2: [3], 3: [7]})
    assert content(two) == expected({1: first, 2: [3], 3: [8]})


def test_large_vocabularies_keep_their_numbers() -> None:
    table = TokenTable(*columns({1: [70_000]}, np.uint32)).replaced(
        np.array([9]), *columns({2: [1, 70_000]}, np.uint32)
    )
    assert [tokens.tolist() for tokens in table.of(np.array([2, 1, 3]))] == [[1, 70_000], [70_000], []]
    assert table.frequency(np.array([70_000, 1, 70_001])).tolist() == [2, 1, 0]
