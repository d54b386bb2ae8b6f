"""Two stores are asked the same questions: equal answers are certified, and a single changed row is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from postgres_server import link_at, server

from bench.run_files import fill, run_file
from speckit_memory.engine import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation import bundled
from speckit_memory.evaluation.comparing.store_parity import ParityCertificate, verify_stores
from speckit_memory.memory.exchange.store_copy import copy_store
from speckit_memory.memory.indexing import Source
from speckit_memory.memory.store.file.connection import Database
from tests.server.doors import DOCUMENTS, call


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with a recorded question."""
    path = tmp_path / "memory.db"
    with Memory.open(path, root=tmp_path, environ={}) as memory:
        memory.index_documents([Source(key, text) for key, text in DOCUMENTS.items()])
        memory.feedback.delivered(memory.search("reader of warm cache entries", limit=3))
    return path


def certificate(first: Path, second: Path, questions: int = 30) -> ParityCertificate:
    return verify_stores(first, second, questions=questions, seed=7, progress=lambda *_: None)


def changed(store: Path, sql: str) -> Path:
    """A copy of a store in which a statement was run."""
    path = store.with_name("changed.db")
    copy_store(store, path, lambda *_: None)
    with Database.open(path) as database, database.write() as txn:
        txn.connection.execute(sql)
    return path


@pytest.mark.requirement("M14.verified")
def test_a_copy_in_postgresql_gives_equal_answers(store: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    there = link_at(tmp_path / "there" / "memory.store")
    copy_store(store, there, lambda *_: None)
    found = certificate(store, there)
    assert (found.equal, found.recorded, found.different, found.differences) == (True, 1, 0, ())
    assert found.made > 10 and found.rows > 30
    assert found.greatest_difference <= 1e-6
    assert [stamp.engine.split()[0] for stamp in found.stores] == ["SQLite", "PostgreSQL"]
    assert found.digests["answers of A"] == found.digests["answers of B"]
    again = certificate(store, there)
    assert again.digests["questions"] == found.digests["questions"]
    assert found.as_report().outcome == "pass"


@pytest.mark.requirement("M14.verified")
@pytest.mark.usefixtures("exhaustive")
def test_the_run_file_of_the_bundled_dataset_is_equal_byte_for_byte(tmp_path: Path) -> None:
    store, there = tmp_path / "memory.db", link_at(tmp_path / "memory.store")
    fill(store, bundled.FOLDER)
    copy_store(store, there, lambda *_: None)
    found = run_file(there, bundled.FOLDER)
    assert found.count(b"\n") > 1_000
    assert found == run_file(store, bundled.FOLDER)


@pytest.mark.requirement("M14.verified")
@pytest.mark.parametrize(
    "sql",
    ["DELETE FROM chunk_vectors WHERE rowid = 2", "DELETE FROM memories WHERE id = 3"],
    ids=["score", "row"],
)
def test_a_changed_row_is_found(store: Path, sql: str) -> None:
    found = certificate(store, changed(store, sql))
    report = found.as_report()
    assert (found.equal, report.outcome) == (False, "fail")
    assert found.different >= len(found.differences) > 0
    assert all(one.first != one.second for one in found.differences)
    assert found.digests["answers of A"] != found.digests["answers of B"]


@pytest.mark.requirement("M14.verified")
def test_other_numbers_of_rows_are_not_equal_even_if_all_answers_are(store: Path) -> None:
    other = changed(
        store,
        "INSERT INTO edge_history (source_id, target_id, relation, changed_at, changed_by, why) "
        "VALUES (1, 2, 'caused', 1.0, 'manual', 'x')",
    )
    found = certificate(store, other)
    assert (found.different, found.counts_differ, found.equal) == (0, ("edge_history",), False)


@pytest.mark.requirement("M14.verified")
@pytest.mark.parametrize(
    ("key", "error"),
    [
        ("analyser_version", "E093 the tokenizer of A is .*, that of B is other"),
        ("embedding_model", "E002 the model of A"),
    ],
)
def test_stores_of_different_tokenizers_or_models_are_refused(store: Path, key: str, error: str) -> None:
    other = changed(store, f"INSERT OR REPLACE INTO meta VALUES ('{key}', 'other')")
    with pytest.raises(SpeckitError, match=error):
        certificate(store, other)


@pytest.mark.requirement("M14.verified", "M14.copied")
def test_the_commands_copy_verify_and_exit_with_1_for_a_difference(workspace: Path, tmp_path: Path) -> None:
    address = f"{server()}&workspace={tmp_path.name}"
    copied = call(workspace, ["store", "copy", "memory.db", address, "--json"]).ok().json
    assert (copied["memories"], copied["to"]) == (6, address)
    assert call(workspace, ["store", "copy", address, "back.db"]).ok().out.startswith("back.db: 6 memories")
    equal = call(workspace, ["store", "verify", address, "back.db", "--questions", "12", "--json"]).ok().json
    assert (equal["equal"], equal["made"] + equal["recorded"]) == (True, 12)
    with Database.open(workspace / "back.db") as database, database.write() as txn:
        txn.connection.execute("DELETE FROM chunk_vectors WHERE rowid = 2")
    differs = call(workspace, ["store", "verify", "memory.db", "back.db", "--questions", "4", "--seed", "3"])
    assert differs.status == 1
    assert "not equal" in differs.out and "of 4 answers differ" in differs.out
    call(workspace, ["store", "copy", "memory.db", address, "--json"]).refused("E014")
