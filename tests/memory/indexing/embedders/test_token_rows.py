from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.memory.models.embedders.token_rows import TokenRows

STORED = np.random.default_rng(7).normal(size=(50, 16)).astype(np.float16)
STORED[3] = 0
FACTORS = np.linspace(0.1, 1, 50, dtype=np.float32)


@pytest.mark.requirement("I6")
@given(st.lists(st.lists(st.integers(0, 49), max_size=9), max_size=4))
def test_a_row_is_the_same_to_the_bit_whoever_was_asked_for_before(asked: list[list[int]]) -> None:
    whole = np.array(STORED, np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", whole, whole))
    units = whole / np.maximum(lengths, np.finfo(np.float32).tiny)[:, None]
    rows = TokenRows(STORED, FACTORS)

    for tokens in ([], *asked, [3, 3, 49], list(range(50))):
        numbers = np.array(tokens, np.int64)
        assert rows.units(numbers).tobytes() == units[numbers].tobytes()
        assert rows.weights(numbers).tobytes() == (FACTORS * lengths)[numbers].tobytes()
    assert rows.weighted.tobytes() == (units * (FACTORS * lengths)[:, None]).tobytes()


def test_nobody_writes_into_the_table() -> None:
    rows = TokenRows(STORED, FACTORS)
    rows.units(np.array([5]))[:] = 0
    rows.weights(np.array([5]))[:] = 0

    assert rows.units(np.array([5])).any() and rows.weights(np.array([5])).all()
