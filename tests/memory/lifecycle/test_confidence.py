from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.memory.lifecycle.confidence import BIRTH, judged_confidence, promotable


def after(*judgements: bool) -> float:
    """The confidence of a memory with this life."""
    return reduce(judged_confidence, judgements, BIRTH)


@pytest.mark.requirement("F17.moves")
def test_a_useful_memory_gains_twice_what_a_useless_one_loses() -> None:
    assert BIRTH == 0.5
    assert after(True) == 0.6  # 0.5 + 0.10
    assert after(False) == 0.45  # 0.5 - 0.05
    assert after(True, True, False) == 0.65  # 0.5 + 0.10 + 0.10 - 0.05
    assert after(*[True] * 4) == 0.9  # 0.5 + 4 · 0.10; added up in binary fractions 0.8999999999999999
    assert after(*[True] * 5, False, False) == 0.9  # 1.0 - 2 · 0.05


@pytest.mark.requirement("F17.moves")
def test_confidence_stays_between_nothing_and_certainty() -> None:
    assert after(*[True] * 5) == 1.0  # 0.5 + 5 · 0.10
    assert after(*[True] * 6) == 1.0  # 1.1 is over the bound
    assert after(*[True] * 9, False) == 0.95  # what was over the bound is not saved up
    assert after(*[False] * 10) == 0.0  # 0.5 - 10 · 0.05
    assert after(*[False] * 11) == 0.0
    assert after(*[False] * 20, True) == 0.1


@pytest.mark.requirement("F17")
@given(judgements=st.lists(st.booleans(), max_size=60))
def test_confidence_is_the_exact_decimal_that_a_reader_would_work_out(judgements: list[bool]) -> None:
    twentieths = 10
    for useful in judgements:
        twentieths = min(20, max(0, twentieths + (2 if useful else -1)))
    assert after(*judgements) == twentieths / 20


@pytest.mark.requirement("F17.promotion")
@pytest.mark.parametrize(
    ("judgements", "expected"),
    [
        ([True] * 4, False),  # 0.9, but four validations
        ([True] * 5, True),  # 1.0 after five
        ([True] * 5 + [False] * 2, True),  # 0.9 after seven
        ([True] * 5 + [False] * 3, False),  # 0.85
        ([False, True, True, True, True], False),  # 0.5 - 0.05 + 0.4 = 0.85 after five
        ([False, False, True, True, True, True, True], True),  # 0.5 - 0.1 + 0.5 = 0.9 after seven
    ],
)
def test_nine_tenths_of_confidence_after_five_validations_allow_promotion(
    judgements: list[bool], expected: bool
) -> None:
    assert promotable(after(*judgements), len(judgements)) is expected
