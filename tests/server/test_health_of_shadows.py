"""What the health report says of pipelines beside the one that answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.engine import Memory
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from speckit_memory.memory.store.evaluation.records import PlacementChange
from tests.server.doors import call
from tests.server.test_mcp_stdio import calls
from tests.server.test_told_over_mcp import note, pipeline_file


@pytest.fixture
def failing(workspace: Path) -> Path:
    """A workspace with one shadow that failed, one that does well, and a dark run that was switched off."""
    pipeline_file(workspace, "extends: default\nshadows: [bm25, rsf]\n")
    (workspace / ".speckit" / "flags.yaml").write_text("flags: {SPECKIT_RRF: {state: dark_run}}\n", encoding="utf-8")
    with Memory.open(workspace / "memory.db", root=workspace) as memory:
        control, hashes = memory.pipelines.current.hash, {one.name: one.hash for one in memory.shadows.list()}
    note(workspace, {"simple": [1.0] * 5}, hashes.pop("rsf"), 1)
    del hashes["bm25"]
    with EvaluationDatabase.open(evaluation_file(workspace / "memory.db")) as database:
        for dark_run in hashes.values():
            database.record((), retreats=[PlacementChange(control, dark_run, "off", "p95 of 812 ms", 4e9)])
    return workspace


@pytest.mark.requirement("P10.retreat")
def test_what_is_wrong_stands_first_and_a_warning_is_cut_by_no_budget(failing: Path) -> None:
    doctor = call(failing, ["doctor", "-v"])
    [health] = calls(failing, ("memory_health", {}))

    checks = health["data"]["checks"]
    assert doctor.status == 1
    assert doctor.out.startswith("something is wrong")
    assert checks[0]["name"] == "shadows"
    assert checks[0]["detail"].startswith("1 of 3 fail; 1 of 3 are switched off; 'rsf' in shadow, ")
    assert "'rrf' in dark_run of 5% of queries, switched off" in checks[0]["detail"]
    verdicts = [line.split()[0] for line in doctor.out.splitlines() if line.split()[:1] in (["fail"], ["warn"], ["ok"])]
    assert verdicts == sorted(verdicts, key=["fail", "warn", "ok"].index)
