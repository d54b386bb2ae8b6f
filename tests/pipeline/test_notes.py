"""What annotators say of rows is checked, whether or not they say the same of several."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from speckit_memory.pipeline.guards.note_checks import check_notes
from speckit_memory.pipeline.model.columns import JSON, Notes
from speckit_memory.pipeline.model.errors import StageInvariantError

IDS = range(1, 12)
POOL: Any = SimpleNamespace(ids=np.array(IDS), candidates=SimpleNamespace(channels=("words",)))


def checked(by_id: Mapping[int, Mapping[str, JSON]]) -> Mapping[int, Mapping[str, JSON]]:
    found = check_notes(Notes(by_id=by_id), POOL, (), "step")
    assert isinstance(found, Notes)
    return found.by_id


@pytest.mark.parametrize(
    "remark", [{"said": ["a"] * 2000}, {"said": "a" * 30_000}, {"said": ["a" * 200] * 400}, {"said": [2**63]}]
)
def test_too_much_said_of_one_row_is_refused_however_it_is_said(remark: dict[str, JSON]) -> None:
    with pytest.raises(StageInvariantError, match=r"returned more than|64 bits"):
        checked(dict.fromkeys(IDS, remark))


@pytest.mark.parametrize("more", [{}, {"said": "a"}])
def test_sections_that_nobody_asked_for_are_refused(more: dict[str, JSON]) -> None:
    remark = {"sections": [{"anchor": "summary", "text": "What was done."}], **more}
    notes = Notes(by_id={1: remark, 2: remark})
    assert check_notes(notes, POOL, ("summary", "next"), "step") is notes
    with pytest.raises(StageInvariantError, match="does not request"):
        check_notes(notes, POOL, ("next",), "step")
