from __future__ import annotations

import numpy as np
import pytest

from speckit_memory.memory.store.segment_files.row_lists import ESCAPE, RowLists, encode, smallest_type


@pytest.mark.requirement("C3")
def test_rows_come_back_from_their_gaps_however_far_they_lie_apart() -> None:
    lists = [[0, 1, 5], [], [ESCAPE - 2, ESCAPE - 1, 3 * ESCAPE], [7 * ESCAPE + 1], [ESCAPE - 1, 3 * ESCAPE + 4]]
    counts = np.array([len(each) for each in lists])
    rows = np.concatenate([np.array(each, np.int32) for each in lists])
    gaps, sizes = encode(rows, counts)
    found = RowLists(gaps, np.append(0, np.cumsum(sizes)))
    assert [found.of(term, len(each)).tolist() for term, each in enumerate(lists)] == lists


@pytest.mark.requirement("C3")
def test_a_row_takes_two_bytes_and_two_more_for_every_escape() -> None:
    # gaps from row 0: 0, 1, 65533; then 131070 = 2 escapes and a rest of 0
    gaps, sizes = encode(np.array([0, 1, ESCAPE - 1, 2 * ESCAPE]), np.array([3, 1]))
    assert gaps.tolist() == [0, 1, ESCAPE - 2, ESCAPE, ESCAPE, 0]
    assert sizes.tolist() == [3, 3]


@pytest.mark.requirement("C3")
def test_no_row_takes_nothing() -> None:
    gaps, sizes = encode(np.empty(0, np.int32), np.zeros(2, np.int64))
    assert (len(gaps), sizes.tolist()) == (0, [0, 0])
    assert not len(RowLists(gaps, np.append(0, np.cumsum(sizes))).of(1, 0))


@pytest.mark.parametrize(("largest", "size"), [(0, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 4)])
def test_numbers_take_as_few_bytes_as_their_largest_needs(largest: int, size: int) -> None:
    assert smallest_type(largest).itemsize == size
