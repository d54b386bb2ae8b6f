from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from tests.server.doors import call
from tests.server.test_mcp_stdio import calls

VARIANTS = ("bm25", "rsf", "rrf")


@pytest.fixture
def failing(workspace: Path) -> Path:
    """A workspace beside whose pipeline one variant failed, one was switched off and one does well."""
    (workspace / ".speckit").mkdir(exist_ok=True)
    (workspace / ".speckit" / "pipeline.yaml").write_text(f"extends: default\nshadows: [{', '.join(VARIANTS)}]\n")
    call(workspace, ["search", "rank fusion"]).ok()
    with EvaluationDatabase.open(workspace / "memory.evaluation.db", create=False) as database:
        ran = {one.variant.name: one for one in database.experiments()}
        database.retreat(ran["rsf"].control.hash, ran["rsf"].variant.hash, "off", "p95 of 812 ms", 4e9)
    connection = apsw.Connection(str(workspace / "memory.evaluation.db"))
    connection.execute(
        "UPDATE answers SET failure = 'RuntimeError in rrf' WHERE pipeline = ? AND mode = 'shadow'",
        (ran["rrf"].variant.hash,),
    )
    connection.close()
    return workspace


@pytest.mark.requirement("P10.retreat")
def test_what_is_wrong_stands_first_and_a_warning_is_cut_by_no_budget(failing: Path) -> None:
    doctor = call(failing, ["doctor", "-v"])
    [health] = calls(failing, ("memory_health", {}))

    checks = health["data"]["checks"]
    assert doctor.status == 1
    assert doctor.out.startswith("fail")
    assert checks[0]["name"] == "shadows"
    assert checks[0]["detail"].startswith("1 of 3 fail; 1 of 3 are switched off; 'rrf' in shadow, ")
    assert "'rsf' in shadow, switched off" in checks[0]["detail"]
    verdicts = [line.split()[0] for line in doctor.out.splitlines() if line.split()[:1] in (["fail"], ["warn"], ["ok"])]
    assert verdicts == sorted(verdicts, key=["fail", "warn", "ok"].index)
