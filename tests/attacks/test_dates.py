"""Files and documents of times that no calendar, clock or column holds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tally import Tally

from speckit_memory.memory.store.file.connection import Database
from tests.server.doors import call
from tests.server.test_mcp_stdio import calls

MTIMES = (15_032_385_535, 9_223_372_037, 9_223_372_036, 4_102_444_800, 1, 0, -1, -2_147_483_648)
"""The largest that common file systems hold (2446), the ends of 64 bits of nanoseconds, 2100, and before 1970."""
DATES = (
    "9999-12-31", "9999-12-31T23:59:59-12:00", "2500-01-01", "2262-04-12", "2262-04-10", "2099-01-01", "1970-01-01",
    "1969-12-31", "1700-01-01", "1677-01-01", "1066-10-14", "0001-01-01", "0001-01-01T00:00:00+14:00",
)  # fmt: skip
TOLD = {"9999-12-31", "9999-12-31T23:59:59-12:00", "2500-01-01", "2262-04-12", "1677-01-01", "1066-10-14", "0001-01-01"}
STORED = (1e18, -1e18, 253_402_300_800.0, -62_135_596_801.0, 15_032_385_535.0, 1e300)
"""Seconds that a store of an earlier version may hold."""


@pytest.fixture
def root(tmp_path: Path, tally: Tally) -> Path:
    for number, seconds in enumerate(MTIMES):
        file = tmp_path / f"time-{number}.md"
        file.write_text(f"# Time {number}\n\nalpha\n")
        os.utime(file, (seconds, seconds))
    for number, date in enumerate(DATES):
        (tmp_path / f"date-{number:02}.md").write_text(f'---\ncreated_at: "{date}"\n---\n# Date {number}\n\nalpha\n')
    (tmp_path / "good.md").write_text("# Good\n\nalpha quokka\n")
    tally.tried(len(MTIMES) + len(DATES))
    return tmp_path


@pytest.mark.requirement("I1", "I8")
def test_a_file_of_any_time_is_indexed_and_a_time_that_is_none_is_told(root: Path, tally: Tally) -> None:
    ran = call(root, ["index", ".", "--json"]).ok()
    assert len(ran.json["created"]) == len(MTIMES) + len(DATES) + 1
    told = [p for p in ran.json["problems"] if p["code"] == "E095"]
    far = [f"time-{n}.md" for n, _ in enumerate(MTIMES) if (root / f"time-{n}.md").stat().st_mtime > 9_223_372_036]
    files = [f"date-{number:02}.md" for number, date in enumerate(DATES) if date in TOLD]
    assert {p["where"]["file"] for p in told} >= {*far, *files}
    assert len(told) == len({p["where"]["file"] for p in told})

    again = call(root, ["index", ".", "--json"])
    assert (again.status, again.json["unchanged"]) == (0, len(ran.json["created"]))
    (root / "time-0.md").write_text("# Time 0\n\nchanged\n")
    os.utime(root / "time-0.md", (MTIMES[0], MTIMES[0]))
    assert call(root, ["index", ".", "--json"]).json["updated"] == ["time-0.md"]
    tally.survived()


@pytest.mark.requirement("I9", "T5")
def test_memories_of_any_time_are_saved_searched_and_listed(root: Path, tally: Tally) -> None:
    saved = [("memory_save", {"filePath": f"time-{n}.md"}) for n in range(len(MTIMES))]
    saved += [("memory_save", {"filePath": f"date-{n:02}.md"}) for n, date in enumerate(DATES) if "T" not in date]
    lists = [("memory_list", {"sortBy": sort, "limit": 50}) for sort in ("created_at", "updated_at")]
    answers = calls(root, *saved, *lists, ("memory_search", {"query": "alpha"}), ("memory_stats", {}))
    assert [answer for answer in answers if "error" in answer] == []
    for name in ("quick", "deep", "resume"):
        assert call(root, ["search", "alpha", "--mode", name, "--json"]).status == 0
    tally.tried(len(answers))


@pytest.mark.requirement("T5", "M3")
def test_times_of_an_older_store_are_read_as_unknown(root: Path, tally: Tally) -> None:
    assert call(root, ["index", ".", "--json"]).status == 0
    with Database.open(root / "memory.db") as database, database.write() as txn:
        for number, seconds in enumerate(STORED):
            txn.connection.execute(
                "UPDATE memories SET created_at = ?1, updated_at = ?1, last_accessed = ?1 WHERE key = ?2",
                (seconds, f"time-{number}.md"),
            )
    lists = [("memory_list", {"sortBy": sort, "limit": 50}) for sort in ("created_at", "updated_at")]
    *listed, found, stats = calls(
        root, *lists, ("memory_search", {"query": "alpha", "limit": 50}), ("memory_stats", {})
    )
    assert all("error" not in answer for answer in (*listed, found, stats))
    updated = {row["key"]: row["updated"] for row in listed[1]["data"]["memories"]}
    shown = [updated[f"time-{n}.md"] for n in range(len(STORED)) if f"time-{n}.md" in updated]
    assert set(shown) <= {"unknown"}
    assert listed[1]["data"]["memories"][0]["updated"] != "unknown"
    for pipeline in ("default", "catalogue"):
        ran = call(root, ["search", "alpha", "--limit", "50", "--json", "--pipeline", pipeline]).ok()
        assert ran.json["notes"]["degraded"] == []
    tally.tried(len(STORED))
