"""Rows of every kept table come back: into the store, into an empty one, and of a folder."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from storing.contents import contents

from speckit_memory.engine import Memory
from speckit_memory.memory.indexing import Source
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.transfer.table_map import KEPT
from speckit_memory.memory.store.writing.writer import delete_memories

DOCUMENTS = [
    Source(
        "a/first.md", "---\ntrigger_phrases: [one]\ncausalLinks:\n  caused_by: [a/second.md]\n---\n# First\n\nOne.\n"
    ),
    Source("a/second.md", "# Second\n\nAnother thing altogether.\n"),
    Source("b/third.md", "# Third\n\nWhat lies elsewhere.\n"),
]
ROWS = """
INSERT INTO promotions VALUES ({first}, 'normal', 0.9, 5, 1.0);
INSERT INTO judgements VALUES
    (5, {first}, 'useful', 1.0, 's', 0.5, 0, 1.0, 5.0, NULL, 0, 0.6, 1, 2.0, 4.5, 1.0, 1, '', 3.0),
    (9, {first}, 'promoted', 2.0, '', 0.9, 5, 2.0, 4.5, 1.0, 1, 0.9, 5, 2.0, 4.5, 1.0, 1, 'normal', NULL);
INSERT INTO archivals (memory_id, reason, archived_at) VALUES ({second}, 'unused', 1.0);
INSERT INTO absences VALUES ({third}, 1.0, NULL);
INSERT INTO restorations VALUES ({first}, 'h');
INSERT INTO working_memory (session, memory_id, attention, added_at, last_focused) VALUES ('s', {first}, 1, 1.0, 2.0);
INSERT INTO session_sent VALUES ('s', 'h', {first}, 1.0), ('s', 'gone', 77, 1.0);
INSERT INTO session_state VALUES ('s', 1.0, 2.0, 3);
INSERT INTO source_paths VALUES ('/root', 'a', 0);
INSERT INTO causal_edges (source_id, target_id, relation, strength, evidence, created_by, created_at, said)
    VALUES ({first}, {third}, 'supports', 0.5, 'why', 'manual', 1.0, 0.4);
INSERT INTO edge_history (id, source_id, target_id, relation, changed_at, changed_by, why, undoes, undone_by)
    VALUES (4, {first}, {second}, 'caused', 1.0, 'manual', 'x', NULL, 7),
           (7, {first}, {second}, 'caused', 2.0, 'manual', 'undo', 4, NULL);
INSERT INTO edge_uses SELECT id, 3, 1.0 FROM causal_edges;
INSERT INTO session_uses VALUES ('s', {first}, 1.0);
INSERT INTO scanned_memories VALUES ({first}, 'h', 1.0);
INSERT INTO suspected_contradictions VALUES (3, {first}, 'h', {second}, 'g', 0.9, 'negation', 0.6, 'not', 1.0, NULL);
INSERT INTO former_keys (key, memory_id, until) VALUES ('a/old.md', {first}, 1.0);
INSERT INTO task_records (folder, task, session, knowledge, uncertainty, context, gaps, began_at, gaps_closed, new_gaps)
    VALUES ('a', 't', 's', 1, 2, 3, '[]', 1.0, '[]', '[]'), ('b', 't', 's', 1, 2, 3, '[]', 1.0, '[]', '[]');
INSERT INTO selections VALUES ('q', {first}, 'opened', 1, 1.0, 1.0, 'learned', '', '[]'),
    ('q', 77, 'opened', 1, 1.0, 1.0, 'learned', '', '[]');
INSERT INTO unlearned VALUES ({first}, 'word', 1.0);
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with rows in each table that is kept; id 77 was drawn for a memory that is gone."""
    path = tmp_path / "memory.db"
    with Memory.open(path, root=tmp_path, environ={}) as memory:
        memory.index_documents(DOCUMENTS)
    with apsw.Connection(str(path)) as connection:
        ids = {key[2:-3]: number for number, key in connection.execute("SELECT id, key FROM memories")}
        connection.execute(ROWS.format(**ids) + "UPDATE id_sequence SET next = 100;")
    connection.close()
    return path


def memory_id(memory: Memory, key: str) -> int:
    return int(value(memory.session.database.reader(), "SELECT id FROM memories WHERE key = ?", (key,)))


def kept_rows(path: Path) -> dict[str, list[str]]:
    """The rows of the tables that are kept; a number that orders them alone is left out."""
    found = contents(path)
    return {kept.name: found[kept.name] for kept in KEPT}


def test_each_kept_table_has_rows_to_bring_back(store: Path) -> None:
    assert [name for name, rows in kept_rows(store).items() if not rows] == []


@pytest.mark.requirement("M14", "M14.rows")
@pytest.mark.parametrize("replace", [False, True])
def test_every_row_comes_back(store: Path, replace: bool) -> None:
    before = kept_rows(store)
    with Memory.open(store, environ={}) as memory:
        memory.checkpoints.create("all")
        memory.index_documents([Source("a/first.md", "# First\n\nChanged.\n")])
        with memory.session.database.write() as txn:
            delete_memories(txn, [memory_id(memory, "a/second.md")])
        memory.checkpoints.restore("all", replace=replace)
    assert kept_rows(store) == before
    for file in store.parent.glob("memory.db*"):
        if file.is_file():
            file.unlink()
    with Memory.open(store, environ={}) as memory:
        memory.checkpoints.restore("all", replace=replace)
    assert kept_rows(store) == before


@pytest.mark.requirement("M14", "M14.scope")
def test_rows_of_a_folder_come_back_and_no_others_change(store: Path) -> None:
    before = kept_rows(store)
    with Memory.open(store, environ={}) as memory:
        memory.checkpoints.create("of-a", folder="a")
        with memory.session.database.write() as txn:
            delete_memories(txn, [memory_id(memory, "a/second.md")])
        with memory.session.database.write() as txn:
            txn.connection.execute("UPDATE task_records SET knowledge = 9")
            txn.connection.execute("UPDATE suspected_contradictions SET dismissed_at = 5.0")
        memory.checkpoints.restore("of-a", replace=True)
    after = kept_rows(store)
    changed = {name for name in before if after[name] != before[name]}
    assert changed == {"task_records"}
    assert after["task_records"][0] == before["task_records"][0]


@pytest.mark.requirement("M14.tables", "M14.lossless")
def test_a_new_column_is_transferred_without_a_line_in_the_map(store: Path, tmp_path: Path) -> None:
    with closing(apsw.Connection(str(store))) as connection:
        connection.execute(
            "ALTER TABLE promotions ADD COLUMN of_tomorrow TEXT; UPDATE promotions SET of_tomorrow = 'x'"
        )
    before = kept_rows(store)
    with Memory.open(store, root=tmp_path, environ={}) as memory:
        memory.checkpoints.create("all")
        with memory.session.database.write() as txn:
            delete_memories(txn, [memory_id(memory, "a/first.md")])
        memory.checkpoints.restore("all")
        memory.exchange.export(tmp_path / "out")
    assert kept_rows(store)["promotions"] == before["promotions"]
    record = json.loads((tmp_path / "out" / "learned" / "a" / "first.md.json").read_text())
    assert record["promotions"][0]["of_tomorrow"] == "x"
