"""Which of two records of a memory is the later one."""

from __future__ import annotations

from typing import Any

import pytest

from speckit_memory.memory.store.transfer.records import MemoryRows

JUDGED = {"kind": "useful", "judged_at": 50.0, "undone_at": None}


def learned(rows: dict[str, list[dict[str, Any]]], count: int = 1) -> MemoryRows:
    return MemoryRows({"validation_count": count, "last_review": 60.0, "access_count": 3}, rows)


@pytest.mark.requirement("M14.edited")
@pytest.mark.parametrize(
    "later",
    [
        {"judgements": [JUDGED, JUDGED | {"judged_at": 51.0}]},
        {"judgements": [JUDGED | {"undone_at": 51.0}]},
        {"judgements": [JUDGED], "archivals": [{"archived_at": 40.0, "restored_at": 51.0}]},
        {"judgements": [JUDGED], "edge_history": [{"changed_by": "manual", "changed_at": 51.0}]},
    ],
    ids=["judged", "taken back", "brought back", "linked"],
)
def test_the_last_act_of_somebody_decides(later: dict[str, list[dict[str, Any]]]) -> None:
    assert learned(later).clock() > learned({"judgements": [JUDGED]}, 9).clock()


@pytest.mark.requirement("M14.edited")
@pytest.mark.parametrize(
    "rows",
    [
        {"judgements": [JUDGED, JUDGED | {"kind": "used", "judged_at": 99.0}]},
        {"judgements": [JUDGED], "edge_history": [{"changed_by": "document", "changed_at": 99.0}]},
    ],
    ids=["used", "declared"],
)
def test_what_nobody_did_decides_nothing(rows: dict[str, list[dict[str, Any]]]) -> None:
    assert learned(rows).clock() == learned({"judgements": [JUDGED]}).clock()
