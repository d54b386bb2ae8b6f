"""`doctor --repair` through the console script: what follows from the rest is made anew, after a checkpoint."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from storing.contents import contents

from speckit_memory.memory.store.file.opening import vector_extension
from tests.server.doors import call
from tests.server.test_checkpoints import answers, here, state

DAMAGES = {
    "words lost": "DELETE FROM memory_fts WHERE rowid = 2",
    "words of nobody": "INSERT INTO memory_fts (rowid, title, triggers, path, body) VALUES (900, 'a', '', '', 'ranks')",
    "counts lost": "DELETE FROM token_counts WHERE memory_id < 3",
    "counts wrong": "UPDATE token_counts SET title = title + 1",
    "vectors of nobody": "INSERT INTO chunk_vectors (rowid, embedding) "
    "SELECT 900, embedding FROM chunk_vectors WHERE rowid = 1",
    "rows of nobody": "INSERT INTO working_memory (session, memory_id, attention, added_at, last_focused) "
    "VALUES ('s', 900, 1, 1, 1); INSERT INTO unlearned VALUES (901, 'a', 1); "
    "INSERT INTO causal_edges (source_id, target_id, relation, strength, evidence, created_by, created_at) "
    "VALUES (1, 902, 'caused', 1, '', 'manual', 1); INSERT INTO edge_uses SELECT max(id), 1, 1 FROM causal_edges",
    "state wrong": "UPDATE memories SET embedding_status = 'pending' WHERE id = 3",
    "sequence behind": "UPDATE id_sequence SET next = 2",
    "sequence lost": "DELETE FROM id_sequence",
}


def damage(file: Path, statements: str) -> None:
    with closing(apsw.Connection(str(file))) as connection:
        connection.enable_load_extension(True)
        connection.load_extension(vector_extension())
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(statements)


@pytest.mark.requirement("M14.repair")
@pytest.mark.parametrize("kind", DAMAGES)
def test_what_follows_from_the_rest_is_made_anew(workspace: Path, kind: str) -> None:
    answered, before = answers(workspace), state(workspace)
    damage(workspace / "memory.db", DAMAGES[kind])
    assert here(workspace, ["doctor", "--json"]).status == 1
    ran = here(workspace, ["doctor", "--repair", "--json"])
    told = {check["name"]: check for check in ran.json["checks"]}
    assert (ran.status, told["repair"]["verdict"], told["store"]["verdict"]) == (0, "ok", "ok"), ran.out
    assert answers(workspace) == answered
    if not kind.startswith("counts"):
        assert state(workspace) == before
    [kept] = here(workspace, ["checkpoint", "list", "--json"]).json["checkpoints"]
    assert kept["name"] in told["repair"]["detail"]
    assert kept["faults"]


@pytest.mark.requirement("M14.repair")
def test_lost_vectors_wait_for_the_next_index(workspace: Path) -> None:
    answered = answers(workspace)
    damage(workspace / "memory.db", "DELETE FROM chunk_vectors WHERE rowid IN (1, 2)")
    told = {check["name"]: check for check in here(workspace, ["doctor", "--repair", "--json"]).json["checks"]}
    assert [told[name]["verdict"] for name in ("repair", "store", "content")] == ["ok", "ok", "fail"]
    assert "2 wait for their vectors" in told["content"]["detail"]
    assert here(workspace, ["index", "docs"]).status == 0
    assert answers(workspace) == answered
    assert call(workspace, ["doctor"]).status == 0


@pytest.mark.requirement("M14.repair")
def test_nothing_is_done_where_nothing_is_wrong_or_no_checkpoint_can_be_made(workspace: Path) -> None:
    ran = call(workspace, ["doctor", "--repair"])
    assert ran.status == 0, ran.out
    assert "nothing of the store is to be mended" in ran.out
    assert not (workspace / "memory.db.checkpoints").exists()
    (workspace / "memory.db.checkpoints").write_text("in the way")
    damage(workspace / "memory.db", DAMAGES["words lost"])
    before = contents(workspace / "memory.db")
    refused = call(workspace, ["doctor", "--repair", "--json"])
    [repair] = [check for check in json.loads(refused.out)["checks"] if check["name"] == "repair"]
    assert (refused.status, repair["verdict"]) == (1, "fail")
    assert "memory.db.checkpoints" in repair["detail"]
    assert contents(workspace / "memory.db") == before
