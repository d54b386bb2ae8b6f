from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from speckit_memory.memory.lifecycle.interference import recount
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.opening import vector_extension
from speckit_memory.memory.store.file.schema.migrations import MIGRATIONS, migrate
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.writing import near_duplicates, writer
from speckit_memory.memory.store.writing.near_duplicates import Siblings

Make = Callable[..., Document]
NOW = 1000.0


def put(database: Database, *documents: Document) -> list[int]:
    with database.write() as txn:
        return [writer.put_document(txn, document, None, NOW, None).id for document in documents]


def stored(database: Database) -> dict[str, float]:
    rows: Any = database.reader().execute("SELECT key, interference FROM memories").fetchall()
    return dict(rows)


@pytest.mark.requirement("F9.similar")
def test_near_duplicates_are_counted_within_their_folder_over_title_and_triggers(
    database: Database, document: Make
) -> None:
    put(
        database,
        document("a/1", folder="a", title="Weekly report", triggers=("platform team", "status")),
        document("a/2", folder="a", title="weekly status report", triggers=("platform, team",)),
        document("a/3", folder="a", title="Weekly report"),
        document("b/1", folder="b", title="Weekly status report", triggers=("platform team",)),
    )
    recount(database)
    assert stored(database) == {"a/1": 1.0, "a/2": 1.0, "a/3": 0.0, "b/1": 0.0}
    assert near_duplicates.uncounted_folders(database.reader()) == []


@pytest.mark.requirement("F9")
def test_counts_follow_what_moves_and_goes(database: Database, document: Make) -> None:
    same = {"title": "Weekly status report"}
    ids = put(database, *(document(f"a/{number}", folder="a", **same) for number in range(3)))
    recount(database)
    assert stored(database) == {"a/0": 2.0, "a/1": 2.0, "a/2": 2.0}
    put(database, document("a/0", folder="b", **same))
    recount(database)
    assert stored(database) == {"a/0": 0.0, "a/1": 1.0, "a/2": 1.0}
    with database.write() as txn:
        writer.delete_memories(txn, ids[1:2])
    recount(database)
    assert stored(database) == {"a/0": 0.0, "a/2": 0.0}


def test_only_changed_counts_are_logged_and_unchanged_folders_are_skipped(database: Database, document: Make) -> None:
    first, second, _ = put(
        database, document("1", title="One title"), document("2", title="one TITLE"), document("3", title="Another")
    )
    before = changes.latest(database.reader())
    recount(database)
    assert changes.since(database.reader(), before) == (
        before + 2, [(first, "attributes"), (second, "attributes")]
    )  # fmt: skip
    put(database, document("3", title="Another"))
    recount(database)
    put(database, document("3", "more", title="Another"))
    recount(database)
    assert changes.latest(database.reader()) == before + 3


@pytest.mark.parametrize(
    ("change", "marked"),
    [
        ({"body": "other", "tier": "important"}, []),
        ({"title": "Other"}, ["a"]),
        ({"triggers": ("phrase", "more")}, ["a"]),
        ({"folder": "b"}, ["a", "b"]),
    ],
)
def test_folders_are_marked_when_what_is_compared_changes(
    database: Database, document: Make, change: dict[str, Any], marked: list[str]
) -> None:
    facts = {"folder": "a", "triggers": ("phrase",)}
    put(database, document("1", **facts))
    assert near_duplicates.uncounted_folders(database.reader()) == ["a"]
    recount(database)
    put(database, document("1", **(facts | change)))
    assert near_duplicates.uncounted_folders(database.reader()) == marked


def test_a_count_of_an_earlier_state_is_not_stored(database: Database, document: Make) -> None:
    put(database, document("1", title="One title"), document("2", title="One title"))
    (early,) = near_duplicates.siblings(database, [""])
    assert early == Siblings("", 2, (1, 2), ("One title", "One title"), (0.0, 0.0))
    put(database, document("2", title="Something else"))
    with database.write() as txn:
        near_duplicates.store_counts(txn, [(early, [1, 1])])
    assert stored(database) == {"1": 0.0, "2": 0.0}
    assert near_duplicates.uncounted_folders(database.reader()) == [""]
    recount(database)
    assert near_duplicates.siblings(database, [""]) == []
    with database.write() as txn:
        near_duplicates.store_counts(txn, [(early, [1, 1])])
    assert stored(database) == {"1": 0.0, "2": 0.0}


def test_the_mark_of_a_folder_that_is_empty_now_goes_as_well(database: Database, document: Make) -> None:
    ids = put(database, document("1"))
    with database.write() as txn:
        writer.delete_memories(txn, ids)
    recount(database)
    assert near_duplicates.uncounted_folders(database.reader()) == []


def test_a_store_from_before_the_counts_has_all_its_folders_marked(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    connection = apsw.Connection(str(path))
    connection.enable_load_extension(True)
    connection.load_extension(vector_extension())
    migrate(connection, path, MIGRATIONS[:1])
    facts = "folder, tier, context_type, document_type, memory_type, content_hash, fingerprint, characters, chunk_count"
    for key, folder in (("1", "a"), ("2", "a"), ("3", "b")):
        connection.execute(
            f"INSERT INTO memories (key, title, {facts}, embedding_status, created_at, updated_at) "
            "VALUES (?, 'One title', ?, 'normal', '', '', '', '', x'', 0, 0, 'done', 0, 0)",
            (key, folder),
        )
        connection.execute("INSERT INTO texts VALUES (?, '', '', '', '{}', '')", (int(key),))
    connection.close()
    with Database.open(path) as database:
        assert near_duplicates.uncounted_folders(database.reader()) == ["a", "b"]
        recount(database)
        assert stored(database) == {"1": 1.0, "2": 1.0, "3": 0.0}
