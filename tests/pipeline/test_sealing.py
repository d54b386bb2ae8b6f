"""A seal is broken by another column as well as by another value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from speckit_memory.pipeline.guards.sealing import Seal
from speckit_memory.pipeline.testing import FakeStore, Memory, pool_of

pytestmark = pytest.mark.requirement("P3")


@pytest.fixture
def sealed() -> Seal:
    return Seal.of(pool_of(FakeStore(Memory(1), Memory(2)), {1: 0.9, 2: 0.5}))


def test_what_nobody_touched_is_whole(sealed: Seal) -> None:
    assert not sealed.broken()


@pytest.mark.parametrize("column", ["ids", "scores", "parents", "passages", "chunk_hits", "raw", "rank"])
def test_an_equal_column_that_is_another_object_breaks_it(sealed: Seal, column: str) -> None:
    object.__setattr__(sealed.ranking, column, np.array(getattr(sealed.ranking, column)))

    assert sealed.broken()


def test_other_values_in_the_same_columns_break_it(sealed: Seal) -> None:
    # as after a write into the memory behind the array, which numpy itself forbids
    assert replace(sealed, digest=b"another").broken()
