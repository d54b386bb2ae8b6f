"""`doctor --repair` through the console script: what follows from the rest is made anew, after a checkpoint."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from storing.contents import contents

from speckit_memory.memory.store.file.opening import vector_extension
from speckit_memory.memory.store.file.schema.packing import unpack_tokens
from tests.server.doors import call
from tests.server.test_checkpoints import answers, state
from tests.server.test_mcp_stdio import calls


def loosened(table: str, statements: str) -> str:
    """Statements that write to a table what its columns did not take; it takes them from then on."""
    change = f"UPDATE sqlite_schema SET sql = replace(sql, {{}}) WHERE name = '{table}'"
    loose = "; ".join(map(change.format, ("' STRICT', ' /*STRICT*/'", "'NOT NULL', '/*NOT NULL*/'")))
    return f"PRAGMA writable_schema = ON; {loose}; PRAGMA writable_schema = RESET; {statements}"


def tightened(table: str) -> str:
    """Statements that have a table refuse again what it did not take before it was loosened."""
    change = f"UPDATE sqlite_schema SET sql = replace(sql, {{}}) WHERE name = '{table}'"
    strict = "; ".join(map(change.format, ("' /*STRICT*/', ' STRICT'", "'/*NOT NULL*/', 'NOT NULL'")))
    return f"PRAGMA writable_schema = ON; {strict}; PRAGMA writable_schema = RESET"


OF_ANOTHER_KIND = loosened(
    "token_counts",
    "UPDATE token_counts SET passages = NULL WHERE memory_id = 1; "
    "UPDATE token_counts SET title = 'abc' WHERE memory_id = 2",
)

DAMAGES = {
    "words lost": "DELETE FROM memory_fts WHERE rowid = 2",
    "words of nobody": "INSERT INTO memory_fts (rowid, title, triggers, path, body) VALUES (900, 'a', '', '', 'ranks')",
    "words of another memory": "DELETE FROM memory_fts WHERE rowid IN (2, 6); "
    "INSERT INTO memory_fts (rowid, title, triggers, path, body) SELECT 8 - memory_id, title_tokens, trigger_tokens, "
    "path_tokens, unpacked(tokens) FROM texts WHERE memory_id IN (2, 6)",
    "words of a text of the same length": "DELETE FROM memory_fts WHERE rowid = 2; "
    "INSERT INTO memory_fts (rowid, title, triggers, path, body) SELECT memory_id, title_tokens, trigger_tokens, "
    "path_tokens, replace(unpacked(tokens), 'lexic', 'sparse') FROM texts WHERE memory_id = 2",
    "words as written lost": "DELETE FROM surface_fts WHERE rowid = 2",
    "words as written of nobody": "INSERT INTO surface_fts (rowid, title, body) VALUES (900, 'a', 'ranks')",
    "words as written of another memory": "DELETE FROM surface_fts WHERE rowid IN (2, 6); "
    "INSERT INTO surface_fts (rowid, title, body) SELECT 8 - m.id, m.title, b.body "
    "FROM memories m JOIN bodies b ON b.memory_id = m.id WHERE m.id IN (2, 6)",
    "counts lost": "DELETE FROM token_counts WHERE memory_id < 3",
    "counts wrong": "UPDATE token_counts SET title = title + 1",
    "counts of another kind": OF_ANOTHER_KIND,
    "counts lost and words of another memory": "DELETE FROM token_counts; DELETE FROM memory_fts WHERE rowid = 3; "
    "INSERT INTO memory_fts (rowid, title, triggers, path, body) VALUES (3, 'zebra', '', '', '')",
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

STALE = (
    "words of another memory", "words of a text of the same length", "words as written of another memory",
)  # fmt: skip


def unpacked(*found: Any) -> Any:
    return " ".join(unpack_tokens(found[0]))


def damage(file: Path, statements: str) -> None:
    with closing(apsw.Connection(str(file))) as connection:
        connection.enable_load_extension(True)
        connection.load_extension(vector_extension())
        connection.create_scalar_function("unpacked", unpacked, 1)
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(statements)


@pytest.mark.requirement("M14.repair")
@pytest.mark.parametrize("kind", DAMAGES)
def test_what_follows_from_the_rest_is_made_anew(workspace: Path, kind: str) -> None:
    answered, before = answers(workspace), state(workspace)
    damage(workspace / "memory.db", DAMAGES[kind])
    assert call(workspace, ["doctor", "--json"]).status == 1
    ran = call(workspace, ["doctor", "--repair", "--json"])
    told = {check["name"]: check for check in ran.json["checks"]}
    assert (ran.status, told["repair"]["verdict"], told["store"]["verdict"]) == (0, "ok", "ok"), ran.out
    assert answers(workspace) == answered
    if not kind.startswith("counts"):
        assert state(workspace) == before
    [kept] = call(workspace, ["checkpoint", "list", "--json"]).json["checkpoints"]
    assert kept["name"] in told["repair"]["detail"]
    assert bool(kept["faults"]) is (kind not in STALE)  # a checkpoint brings texts back, and words are made of them


@pytest.mark.requirement("M14.repair", "I9.finished")
@pytest.mark.parametrize("by", [["maintain"], ["index", "docs"]])
def test_lost_vectors_wait_for_maintenance_or_the_next_index(workspace: Path, by: list[str]) -> None:
    answered = answers(workspace)
    damage(workspace / "memory.db", "DELETE FROM chunk_vectors WHERE rowid IN (1, 2)")
    told = {check["name"]: check for check in call(workspace, ["doctor", "--repair", "--json"]).json["checks"]}
    assert [told[name]["verdict"] for name in ("repair", "store", "content")] == ["ok", "ok", "fail"]
    assert "2 wait for their vectors" in told["content"]["detail"]
    assert "marked 2 rows of passages, whose vectors `speckit-memory maintain` will rebuild" in told["repair"]["detail"]
    assert call(workspace, by).status == 0
    assert answers(workspace) == answered
    assert call(workspace, ["doctor"]).status == 0


@pytest.mark.requirement("M14.repair")
def test_nothing_is_done_where_nothing_is_wrong_or_no_checkpoint_can_be_made(workspace: Path) -> None:
    assert "nothing in the store needs a repair" in call(workspace, ["doctor", "--repair"]).ok().out
    assert not (workspace / "memory.db.checkpoints").exists()
    (workspace / "memory.db.checkpoints").write_text("in the way")
    damage(workspace / "memory.db", DAMAGES["words lost"])
    before = contents(workspace / "memory.db")
    refused = call(workspace, ["doctor", "--repair", "--json"])
    [repair] = [check for check in json.loads(refused.out)["checks"] if check["name"] == "repair"]
    assert (refused.status, repair["verdict"]) == (1, "fail")
    assert "memory.db.checkpoints" in repair["detail"]
    assert contents(workspace / "memory.db") == before


@pytest.mark.requirement("M14.repair", "M14.words")
def test_values_that_no_store_has_written_are_named_and_keep_no_fault_from_being_told(workspace: Path) -> None:
    damage(workspace / "memory.db", f"{OF_ANOTHER_KIND}; {tightened('token_counts')}; {DAMAGES['words lost']}")
    told = {check["name"]: check for check in call(workspace, ["doctor", "--repair", "--json"]).json["checks"]}
    for fault in (
        "NULL value in token_counts.passages",
        "non-INTEGER value in token_counts.title",
        "memory 2 has no full-text row",
    ):
        assert fault in told["store"]["detail"]
    # what SQLite itself refuses is in no checkpoint, and nothing is mended without one
    assert told["repair"]["detail"].startswith("E062 ")


OTHER_SPACES = {
    "a passage by another model": (
        "INSERT INTO embedding_cache SELECT 'other', 'a', embedding, 1, 1 FROM chunk_vectors WHERE rowid = 1",
        1,
    ),
    "all by another model than is named": (
        "INSERT INTO embedding_cache SELECT 'one', CAST(rowid AS TEXT), embedding, 1, 1 FROM chunk_vectors; "
        "UPDATE meta SET value = 'other' WHERE key = 'embedding_model'",
        6,
    ),
    "another revision is named, of other dimensions": (
        "UPDATE meta SET value = 'other-2' WHERE key = 'embedding_model'; "
        "INSERT INTO embedding_models VALUES ('other-2', 'bundled', '2', 'mean', 8, 1)",
        6,
    ),
    "other dimensions are named": ("UPDATE meta SET value = '8' WHERE key = 'embedding_dimensions'", 6),
}


@pytest.mark.requirement("M14.repair", "I6")
@pytest.mark.parametrize("kind", OTHER_SPACES)
def test_vectors_of_another_space_are_found_and_made_anew_by_the_next_index(workspace: Path, kind: str) -> None:
    statements, mixed = OTHER_SPACES[kind]
    answered = answers(workspace)
    damage(workspace / "memory.db", statements)
    found = call(workspace, ["doctor", "--json"])
    [store] = [check for check in found.json["checks"] if check["name"] == "store"]
    assert (found.status, store["verdict"]) == (1, "fail")
    assert "the vector 1 is " in store["detail"]
    told = {check["name"]: check for check in call(workspace, ["doctor", "--repair", "--json"]).json["checks"]}
    assert [told[name]["verdict"] for name in ("repair", "store", "content")] == ["ok", "ok", "fail"], told
    assert f"{mixed} wait for their vectors" in told["content"]["detail"]
    assert call(workspace, ["index", "docs"]).status == 0
    assert answers(workspace) == answered
    assert call(workspace, ["doctor"]).status == 0


@pytest.mark.requirement("M14.repair", "I6")
def test_vectors_in_the_cache_of_another_length_than_their_model_makes_are_removed(workspace: Path) -> None:
    short = "INSERT INTO embedding_cache SELECT model_id, 'a', zeroblob(32), 1, 1 FROM embedding_models"
    damage(workspace / "memory.db", short)
    assert "have the wrong number of dimensions" in " ".join(call(workspace, ["doctor"]).ended(1).out.split())
    told = {check["name"]: check for check in call(workspace, ["doctor", "--repair", "--json"]).json["checks"]}
    assert (told["repair"]["verdict"], told["store"]["verdict"]) == ("ok", "ok")
    assert "1 row of the cache" in told["repair"]["detail"]


@pytest.mark.requirement("M14.repair")
def test_a_repair_that_is_not_done_says_why(workspace: Path) -> None:
    def told(root: Path, *arguments: str) -> dict[str, dict[str, str]]:
        ran = call(root, ["doctor", "--repair", "--json", *arguments])
        return {check["name"]: check for check in ran.json["checks"]}

    # a broken pipeline keeps nobody from mending
    damage(workspace / "memory.db", DAMAGES["words lost"])
    (workspace / "wrong.yaml").write_text("pipeline: [")
    found = told(workspace, "--pipeline", "wrong.yaml")
    assert (found["repair"]["verdict"], found["store"]["verdict"]) == ("ok", "ok"), found
    (workspace / ".speckit").mkdir(exist_ok=True)
    (workspace / ".speckit" / "config.yaml").write_text("checkpoints: {keep: 0}\n")
    found = told(workspace)
    assert found["repair"]["verdict"] == "fail"
    assert "files of the workspace" in found["repair"]["detail"]

    empty = workspace.parent / "empty"
    empty.mkdir()
    found = told(empty)
    assert (found["repair"]["verdict"], found["store"]["verdict"]) == ("ok", "warn")
    assert "there is no store" in found["repair"]["detail"]
    assert not [check for check in found.values() if "speckit-doctor-" in check["detail"]]


def test_a_store_that_is_not_there_and_was_named_is_not_to_be_named(workspace: Path) -> None:
    error = call(workspace, ["search", "ranks", "--db", "nowhere.db", "--json"]).json["error"]
    assert error["code"] == "E010"
    assert not [action for action in error["actions"] if "name another store" in action]
    assert error["hint"] == "--db names it."


@pytest.mark.requirement("I8.live", "I8.aliases")
def test_live_files_that_hold_the_same_are_named_and_fail_nothing(workspace: Path) -> None:
    def told() -> tuple[str, str, str]:
        ran = call(workspace, ["doctor", "--json"])
        [check] = [check for check in ran.json["checks"] if check["name"] == "aliases"]
        assert ran.status == 0, ran.out
        return check["verdict"], check["detail"], check["hint"]

    assert told() == ("ok", "no two files have the same content", "")
    tone = (workspace / "docs/tone.md").read_text()
    for number in range(7):
        (workspace / f"docs/copy-{number}.md").write_text(tone)
    (workspace / "docs/wal-too.md").write_text((workspace / "docs/storage/wal.md").read_text())
    (workspace / "docs/link.md").symlink_to(workspace / "docs/cjk.md")  # one memory, whatever leads to its file
    assert call(workspace, ["index", "docs"]).status == 0
    verdict, detail, hint = told()
    assert (verdict, detail) == (
        "warn",
        "2 groups of files have the same content: docs/copy-0.md = docs/copy-1.md = docs/copy-2.md = docs/copy-3.md = "
        "docs/copy-4.md and 3 more; docs/storage/wal.md = docs/wal-too.md",
    )
    assert "speckit-memory delete KEY" in hint
    # what takes no place from the other is no conflict
    for number in range(7):
        assert call(workspace, ["delete", f"docs/copy-{number}.md"]).status == 0
    assert call(workspace, ["links", "add", "docs/storage/wal.md", "supersedes", "docs/wal-too.md"]).status == 0
    assert told()[0] == "ok"
    [health] = calls(workspace, ("memory_health", {}))
    assert {check["name"]: check["ok"] for check in health["data"]["checks"]}["aliases"] is True
