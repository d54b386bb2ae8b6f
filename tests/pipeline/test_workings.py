from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.pipeline.model.formulas import MOST_CHARACTERS, parse_formula
from speckit_memory.pipeline.model.workings import Workings

NAMES = ("before", "a", "b_2", "λ")
formulas = st.recursive(
    st.sampled_from([*NAMES, "1", "0.25"]),
    lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda parts: f"({' '.join(parts)})"),
    max_leaves=8,
).filter(lambda text: len(text) <= MOST_CHARACTERS)
numbers = st.floats(-1e6, 1e6).filter(lambda number: abs(number) > 1e-6)


@given(formulas, st.lists(numbers, min_size=4, max_size=4))
def test_a_formula_means_what_python_takes_it_for(text: str, values: list[float]) -> None:
    given_numbers = dict(zip(NAMES, values, strict=True))
    formula = parse_formula(text)
    assert set(formula.names) <= set(NAMES) - {"before"}
    found = formula.value({name: np.array([value]) for name, value in given_numbers.items()}).item()
    try:
        expected = eval(text, {"__builtins__": {}}, given_numbers)
    except ZeroDivisionError:
        assert not np.isfinite(found)
        return
    assert found == expected or np.isnan(found) == np.isnan(expected)


@pytest.mark.parametrize(
    "text",
    ["before +", "f(before)", "a.b", "a ** 2", "a % b", "-a", "a if b else 1", "'a'", "a[0]", "True", "1e999", "a\0",
     "before; a", "a + " * 40 + "a", "(" * 60 + "a" + ")" * 60, "lambda: 0", "__import__('os')", "a == b", "a, b", "",
     "1is 2", "0x1for", "'\\d'"],
)  # fmt: skip
def test_what_is_no_arithmetic_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="accepted: names, numbers, parentheses"):
        parse_formula(text)


def test_a_row_goes_by_the_first_formula_whose_numbers_it_has() -> None:
    lift = np.array([2.0, np.nan, np.nan])
    share = np.array([np.nan, 0.5, np.nan])
    worked = Workings.of(3, ("before + lift", "before * share", "before"), {"lift": lift, "share": share})
    before = np.array([1.0, 3.0, 7.0])

    assert worked.scores(before).tolist() == [3.0, 1.5, 7.0]
    assert [worked.of_row(row) for row in range(3)] == [
        ("before + lift", {"lift": 2.0}),
        ("before * share", {"share": 0.5}),
        ("before", {}),
    ]
    assert worked.take(np.array([1])).scores(before[1:2]).tolist() == [1.5]


def test_formulas_name_parts_that_there_are() -> None:
    with pytest.raises(ValueError, match="no part is called 'lift'; there are gain"):
        Workings.of(1, ["before + lift"], {"gain": 1.0}).scores(np.ones(1))
