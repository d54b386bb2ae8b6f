"""Judging and promoting through the tools, as an agent does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.test_mcp_stdio import calls

ASK = ("memory_search", {"query": "computeMPAB", "limit": 1})
KEY = "docs/storage/wal.md"
UNWEIGHED = (
    "the ranking does not depend on judgements of usefulness: no step of the pipeline 'default' uses it; "
    "`use: validation` does"
)


@pytest.mark.requirement("F17", "T10")
def test_an_agent_judges_what_a_search_gave_it(workspace: Path) -> None:
    found, context = calls(workspace, ASK, ("memory_context", {"input": "computeMPAB"}))
    [row] = found["data"]["results"]
    assert (row["key"], row["id"]) == (KEY, context["data"]["results"][0]["id"])

    def judge(useful: bool) -> tuple[str, dict[str, Any]]:
        return "memory_validate", {"id": row["id"], "wasUseful": useful}

    first, second, third, *_, eighth, page = calls(
        workspace, judge(True), judge(False), judge(True), *[judge(True)] * 5, ("memory_list", {})
    )
    standing = {"id": row["id"], "key": KEY, "tier": "normal", "eligible": False}
    assert first["data"] == standing | {"confidence": 0.6, "validations": 1, "kept_days": 2.1}  # 0.5 + 0.10
    assert first["summary"] == f"{KEY}: confidence 0.6 after 1 validation"
    assert first["hints"] == [UNWEIGHED]
    assert second["data"] == standing | {"confidence": 0.55, "validations": 2, "kept_days": 0.4}  # - 0.05
    assert third["data"] == standing | {"confidence": 0.65, "validations": 3, "kept_days": 0.4}
    # 0.65 + 5 · 0.10 is over the bound
    assert eighth["data"] == standing | {"confidence": 1.0, "validations": 8, "eligible": True, "kept_days": 0.4}
    eligible = "eligible for the tier critical: the next memory_validate may set promote"
    assert eighth["hints"] == [eligible, UNWEIGHED]
    listed = {memory["key"]: memory for memory in page["data"]["memories"]}
    assert (listed[KEY]["confidence"], listed[KEY]["validations"]) == (1.0, 8)
    assert "confidence" not in listed["docs/tone.md"]


@pytest.mark.requirement("F17", "T10")
def test_promotion_is_asked_for_recorded_and_kept_when_the_file_is_saved_again(workspace: Path) -> None:
    [found] = calls(workspace, ASK)
    judged = {"id": found["data"]["results"][0]["id"], "wasUseful": True}
    refused, *_, promoted = calls(
        workspace,
        ("memory_validate", judged | {"promote": True}),
        *[("memory_validate", judged)] * 4,
        ("memory_validate", judged | {"promote": True}),
    )
    assert refused["error"]["code"] == "E082"
    # what the store holds: the judgement that came with the request was not recorded
    message = f"'{KEY}' has confidence 0.5 of 0.9 and 0 of 5 validations, too little even with this judgement; "
    message += "nothing was recorded"
    assert refused["error"]["message"] == message
    # it did not count: five judgements since
    assert (promoted["data"]["confidence"], promoted["data"]["validations"]) == (1.0, 5)
    assert (promoted["data"]["tier"], promoted["data"]["eligible"], promoted["hints"]) == (
        "critical",
        False,
        [UNWEIGHED],
    )
    record = promoted["data"]["promoted"]
    assert record | {"at": ""} == {"at": "", "from": "normal", "confidence": 1.0, "validations": 5}

    file = workspace / KEY
    file.write_text(file.read_text() + "\nMeasured again.\n")
    saved, again, page, stats, settled = calls(
        workspace,
        ("memory_save", {"filePath": KEY}),
        ASK,
        ("memory_list", {"specFolder": "docs/storage"}),
        ("memory_stats", {}),
        ("memory_validate", judged | {"promote": True}),
    )
    assert saved["data"]["outcome"] == "updated"
    assert (again["data"]["results"][0]["key"], again["data"]["results"][0]["tier"]) == (KEY, "critical")
    [listed] = [memory for memory in page["data"]["memories"] if memory["key"] == KEY]
    assert (listed["tier"], listed["promoted"]) == ("critical", record)
    assert stats["data"]["by_tier"]["critical"] == 1
    assert (settled["error"]["code"], settled["error"]["message"]) == (
        "E082", f"'{KEY}' is critical; nothing was recorded",
    )  # fmt: skip
