"""What annotators say of rows is copied, whether or not they say the same of several."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.pipeline.guards.note_checks import _alike, _Copier, check_notes, check_sections
from speckit_memory.pipeline.model.columns import JSON, Notes
from speckit_memory.pipeline.model.errors import InvalidComponentOutput, StageInvariantError

IDS = range(1, 12)
POOL: Any = SimpleNamespace(ids=np.array(IDS), candidates=SimpleNamespace(channels=("words",)))
VALUES = (
    st.sampled_from(["", "a", "text", "é", "x" * 70])
    | st.integers(-(2**64), 2**64)
    | st.lists(st.sampled_from(["a", "b", "é"]), max_size=3)
    | st.lists(st.integers(-5, 5) | st.sampled_from([2**63, -(2**63)]), max_size=3)
    | st.none()
)
REMARKS = st.dictionaries(st.sampled_from(["said", "other", "third"]), VALUES, max_size=2)


@st.composite
def notes(draw: st.DrawFn) -> dict[int, dict[str, Any]]:
    """Few different remarks, each about several rows."""
    few = draw(st.lists(REMARKS, min_size=1, max_size=3))
    return {row: few[draw(st.integers(0, len(few) - 1))] for row in draw(st.sets(st.sampled_from(IDS), max_size=8))}


def checked(by_id: Mapping[int, Mapping[str, JSON]]) -> Mapping[int, Mapping[str, JSON]]:
    found = check_notes(Notes(by_id=by_id), POOL, "step")
    assert isinstance(found, Notes)
    return found.by_id


@given(notes())
def test_remarks_are_those_that_are_copied_one_by_one(by_id: dict[int, dict[str, Any]]) -> None:
    try:
        expected: object = _Copier(frozenset()).rows(by_id, frozenset(IDS))
        found: object = checked(by_id)
    except InvalidComponentOutput:
        with pytest.raises(StageInvariantError, match="64 bits"):
            checked(by_id)
        return
    assert found == expected
    assert expected == found


def test_nobody_shares_what_a_step_has_said_of_several_rows() -> None:
    remark: dict[str, Any] = {"said": ["a", "b"], "times": 2}
    by_id = {1: remark, 2: remark}
    assert _alike(by_id, frozenset(IDS)) is not None
    found = checked(by_id)
    remark["said"].append("c")
    remark["more"] = "d"
    found[1]["said"].append("e")  # type: ignore[union-attr]  # a list
    assert found == {1: {"said": ["a", "b"], "times": 2}, 2: {"said": ["a", "b"], "times": 2}}
    assert list(found) == [1, 2]
    assert 3 not in found


@pytest.mark.parametrize(
    "remark", [{"said": ["a"] * 2000}, {"said": "a" * 30_000}, {"said": ["a" * 200] * 400}, {"said": [2**63]}]
)
def test_too_much_said_of_one_row_is_refused_however_it_is_said(remark: dict[str, JSON]) -> None:
    with pytest.raises(StageInvariantError, match=r"returned more than|64 bits"):
        checked(dict.fromkeys(IDS, remark))


@pytest.mark.parametrize("more", [{}, {"said": "a"}])
def test_sections_that_nobody_asked_for_are_refused(more: dict[str, JSON]) -> None:
    remark = {"sections": [{"anchor": "summary", "text": "What was done."}], **more}
    found = check_notes(Notes(by_id={1: remark, 2: remark}), POOL, "step")
    assert check_sections(found, ("summary", "next"), "step") is found
    with pytest.raises(StageInvariantError, match="does not request"):
        check_sections(found, ("next",), "step")


def test_what_is_said_of_many_rows_without_sections_is_not_put_together_for_that() -> None:
    remark: dict[str, JSON] = {"said": "a"}
    found = check_notes(Notes(by_id=dict.fromkeys(IDS, remark)), POOL, "step")
    assert isinstance(found, Notes)
    with patch.object(type(found.by_id), "__getitem__", side_effect=AssertionError):
        assert check_sections(found, (), "step") is found
