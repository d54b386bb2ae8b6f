from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import apsw
import numpy as np
import pytest
from answered import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.schema import facts
from speckit_memory.memory.store.reading import loading, reader
from speckit_memory.memory.store.records import Chunk, Document, Link, MemoryRecord, Relation, Tier
from speckit_memory.memory.store.tables.graph import edges
from speckit_memory.memory.store.tables.words import fulltext
from speckit_memory.memory.store.writing import writer
from speckit_memory.memory.store.writing.links import resolve_links
from speckit_memory.memory.store.writing.writer import Put

Make = Callable[..., Document]
Unit = Callable[..., np.ndarray]
Dump = Callable[[Database], dict[str, list[tuple[Any, ...]]]]
NOW = 1000.0


def put(database: Database, document: Document, vectors: np.ndarray | None = None, now: float = NOW) -> Put:
    with database.write() as txn:
        return writer.put_document(txn, document, vectors, now, None if vectors is None else "m")


def test_a_document_is_stored_with_everything_it_says(database: Database, document: Make, unit: Unit) -> None:
    chunk = Chunk("alpha text", "Design > Fusion", "context", 3, 9, ("alpha", "text"))
    said: dict[str, Any] = {
        "key": "specs/a.md",
        "title": "Fusion",
        "folder": "specs",
        "tier": Tier.CRITICAL,
        "context_type": "decision",
        "document_type": "plan",
        "content_hash": "h1",
        "created_at": 5.0,
        "updated_at": 6.0,
        "importance_weight": 0.75,
    }
    unused: dict[str, Any] = {"last_accessed": None, "access_count": 0, "confidence": 0.5, "validation_count": 0}
    stored = put(
        database,
        Document(
            **said,
            body="alpha text\n",
            memory_type="semantic",
            spec_level=2,
            triggers=("Straße", "STRASSE", "rank fusion", " "),
            chunks=(chunk,),
            title_tokens=("fusion",),
            trigger_tokens=("rank",),
            path_tokens=("spec",),
            mtime_ns=7,
            extra={"author": "Zoë"},
        ),
        unit(1),
    )
    connection = database.reader()
    assert stored == Put(1, "created")
    assert (
        reader.get_memory(connection, 1)
        == reader.get_memory(connection, "specs/a.md")
        == MemoryRecord(
            id=1,
            **said,
            **unused,
            embedding_status="done",
            chunk_count=1,
            characters=11,
            triggers=("Straße", "rank fusion"),
            promotion=None,
        )
    )
    attributes = dict(zip(facts.ATTRIBUTES, loading.load_attributes(connection)[0], strict=True))
    assert attributes == said | unused | {
        "id": 1,
        "memory_type": "semantic",
        "last_review": None,
        "stability": 1.0,
        "difficulty": 5.0,
        "interference": 0.0,
        "characters": 11,
        "spec_level": 2,
        "expires_at": None,
    }
    assert list(loading.load_fields(connection)) == [(1, "fusion", "rank", "spec")]
    assert list(loading.load_chunks(connection)) == [(1, 1, 0, "alpha text")]
    assert list(loading.load_triggers(connection)) == [
        (1, "rank fusion", "authored", 1.0, None),
        (1, "strasse", "authored", 1.0, None),
    ]
    assert connection.execute("SELECT extra FROM texts").get == '{"author": "Zoë"}'
    assert database.check() == []


def test_a_single_passage_shares_the_id_of_its_memory_and_several_have_their_own(
    database: Database, document: Make
) -> None:
    put(database, document("one", "a"))
    put(database, document("many", "a", "b"))
    put(database, document("none"))
    rows = [row[:3] for row in loading.load_chunks(database.reader())]
    assert rows == [(1, 1, 0), (3, 2, 0), (4, 2, 1)]
    assert reader.get_memory(database.reader(), "none").embedding_status == "done"
    assert database.check() == []


def test_a_changed_document_keeps_its_id_its_birth_and_what_use_has_taught(
    database: Database, document: Make, unit: Unit
) -> None:
    put(database, document("k", "old words", triggers=("old phrase",)), unit(1))
    learned = {
        "last_accessed": 900.0,
        "access_count": 3,
        "last_review": 890.0,
        "stability": 4.5,
        "difficulty": 6.0,
        "confidence": 0.6,
        "validation_count": 2,
        "interference": -0.08,
        "expires_at": 9999.0,
    }
    with database.write() as txn:
        for name, value in learned.items():
            writer.set_attribute(txn, name, {1: value})
        txn.connection.execute("INSERT INTO triggers VALUES (1, 'learned', 'taught', 'taught', 0, 0.7, 900.0, NULL)")

    changed = document("k", "new words", "more", triggers=("new phrase",), created_at=500.0, updated_at=600.0)
    assert put(database, changed, unit(2, 3)) == Put(1, "updated")

    connection = database.reader()
    attributes = dict(zip(facts.ATTRIBUTES, loading.load_attributes(connection)[0], strict=True))
    assert {name: attributes[name] for name in learned} == learned
    assert (attributes["created_at"], attributes["updated_at"]) == (100.0, 600.0)
    assert [row[1:3] for row in loading.load_triggers(connection)] == [
        ("new phrase", "authored"),
        ("taught", "learned"),
    ]
    assert fulltext.match(connection, ["old"], (1, 1, 1, 1), 9)[0].tolist() == []
    assert fulltext.match(connection, ["more"], (1, 1, 1, 1), 9)[0].tolist() == [1]
    assert loading.load_vectors(connection)[1].tolist() == unit(2, 3).tolist()
    assert database.check() == []


def test_times_that_a_document_does_not_know_are_those_of_the_write(database: Database, document: Make) -> None:
    put(database, document("k", "a", created_at=0.0, updated_at=0.0), now=42.0)
    memory = reader.get_memory(database.reader(), "k")
    assert (memory.created_at, memory.updated_at) == (42.0, 42.0)


@pytest.mark.requirement("I7")
def test_an_equal_document_only_has_its_mtime_noted(
    store_file: Database, document: Make, unit: Unit, dump: Dump
) -> None:
    put(store_file, document("k", "a", "b", mtime_ns=1), unit(1, 2))
    before = dump(store_file)
    assert put(store_file, document("k", "a", "b", mtime_ns=2, updated_at=999.0), unit(1, 2)) == Put(1, "unchanged")
    after = dump(store_file)
    assert reader.known_files(store_file.reader())["k"].mtime_ns == 2
    assert {name for name in before if before[name] != after[name]} == {"memories"}


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Other"},
        {"folder": "x"},
        {"tier": Tier.CRITICAL},
        {"context_type": "x"},
        {"document_type": "x"},
        {"memory_type": "x"},
        {"spec_level": 3},
        {"triggers": ("x",)},
        {"content_hash": "x"},
        {"body": "x"},
        {"links": (Link(Relation.CAUSED, "x"),)},
        {"title_tokens": ("x",)},
        {"trigger_tokens": ("x",)},
        {"path_tokens": ("x",)},
        {"importance_weight": 0.9},
        {"extra": {"x": "y"}},
        {"chunks": (Chunk("a", tokens=("reanalysed",)),)},
        {"chunks": (Chunk("a", heading="H", tokens=("a",)),)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_document_that_differs_in_anything_is_written_again(
    database: Database, document: Make, change: dict[str, Any]
) -> None:
    put(database, document("k", "a"))
    assert put(database, document("k", "a")) == Put(1, "unchanged")
    assert put(database, replace(document("k", "a"), **change)) == Put(1, "updated")


def test_pending_embeddings_are_completed_by_an_equal_document_or_by_chunk(
    database: Database, document: Make, unit: Unit
) -> None:
    put(database, document("k", "a", "b"))
    put(database, document("l", "c", "d"))
    connection = database.reader()
    assert reader.pending_chunks(connection, 3) == [(2, 1), (3, 1), (5, 4)]
    assert put(database, document("k", "a", "b"), unit(1, 2)) == Put(1, "updated")
    assert reader.get_memory(connection, "k").embedding_status == "done"

    with database.write() as txn:
        assert writer.set_vectors(txn, {5: unit(3)[0], 77: unit(9)[0], 2: unit(9)[0]}, "m") == 1
    assert reader.get_memory(connection, "l").embedding_status == "pending"
    with database.write() as txn:
        assert writer.set_vectors(txn, {6: np.zeros(4, np.float32)}, "m") == 1
    assert reader.get_memory(connection, "l").embedding_status == "done"

    ids, matrix = loading.load_vectors(connection)
    assert ids.tolist() == [2, 3, 5]
    assert matrix.tolist() == unit(1, 2, 3).tolist()
    assert database.check() == []


def test_an_update_without_vectors_is_pending_again(database: Database, document: Make, unit: Unit) -> None:
    put(database, document("k", "a"), unit(1))
    put(database, document("k", "b"))
    assert reader.get_memory(database.reader(), "k").embedding_status == "pending"
    assert loading.load_vectors(database.reader())[0].tolist() == []
    assert database.check() == []


@pytest.mark.parametrize(
    ("vectors", "model_id"),
    [
        (np.full((1, 4), np.nan, np.float32), "m"),
        (np.full((1, 4), np.inf, np.float32), "m"),
        (np.full((1, 4), 3.0, np.float32), "m"),
        (np.eye(1, 5, dtype=np.float32), "m"),
        (np.eye(2, 4, dtype=np.float32), "m"),
        (np.ones(4, np.float32) / 2, "m"),
        (np.eye(1, 4, dtype=np.float32), "another model"),
        (np.eye(1, 4, dtype=np.float32), None),
    ],
    ids=["nan", "infinite", "not unit", "dimension", "rows", "shape", "model", "no model"],
)
def test_unusable_vectors_are_refused_before_anything_is_written(
    database: Database, document: Make, unit: Unit, dump: Dump, vectors: np.ndarray, model_id: str | None
) -> None:
    put(database, document("k", "a"), unit(1))
    before = dump(database)
    with database.write() as txn, refused("E002"):
        writer.put_document(txn, document("l", "b"), vectors, NOW, model_id)
    assert dump(database) == before


@pytest.mark.parametrize("token", ["", "two words", " "])
def test_a_token_that_would_not_come_apart_again_is_refused(
    database: Database, document: Make, dump: Dump, token: str
) -> None:
    before = dump(database)
    with pytest.raises(ValueError, match="analysed token"):
        put(database, document("k", "a", title_tokens=("fine", token)))
    assert dump(database) == before


def rich(document: Make, key: str, *passages: str) -> Document:
    return document(
        key, *passages, triggers=("one", "two"), links=(Link(Relation.SUPPORTS, "other"),), title_tokens=("title",)
    )


@pytest.mark.parametrize("caught_inside", [False, True], ids=["whole transaction", "one document of a batch"])
@pytest.mark.requirement("M1")
def test_a_failure_at_any_statement_leaves_nothing_behind(
    database: Database, document: Make, unit: Unit, dump: Dump, caught_inside: bool
) -> None:
    put(database, document("other", "x"), unit(9))
    put(database, rich(document, "k", "a", "b"), unit(1, 2))
    before = dump(database)
    statements = 0
    while True:
        statements += 1
        try:
            interrupted_put(database, rich(document, "k", "c", "d", "e"), unit(3, 4, 5), statements, caught_inside)
        except InterruptedError:
            pass
        else:
            if dump(database) != before:
                break
        assert dump(database) == before
        assert database.check() == []
    # One statement at least for each table that a document is written to.
    assert statements > 9
    assert reader.get_memory(database.reader(), "k").chunk_count == 3


def interrupted_put(
    database: Database, document: Document, vectors: np.ndarray, statement: int, caught_inside: bool
) -> None:
    seen = 0

    def interrupt(*_: object) -> bool:
        nonlocal seen
        seen += 1
        if seen == statement:
            raise InterruptedError
        return True

    with database.write() as txn, watched(txn.connection, interrupt):
        try:
            writer.put_document(txn, document, vectors, NOW, "m")
        except InterruptedError:
            if not caught_inside:
                raise


@contextmanager
def watched(connection: Any, each: Callable[..., bool]) -> Iterator[None]:
    """Calls this before every statement of either engine."""
    if isinstance(connection, apsw.Connection):
        connection.exec_trace = each
        yield
        connection.exec_trace = None
        return
    statements = connection.statements
    connection.statements = lambda sql: (each(), statements(sql))[1]
    yield
    connection.statements = statements


@pytest.mark.requirement("M1")
def test_deleting_leaves_no_row_anywhere(database: Database, document: Make, unit: Unit, dump: Dump) -> None:
    put(database, document("other", "x", "y"), unit(8, 9))
    before = dump(database)
    put(database, rich(document, "k", "a", "b"), unit(1, 2))
    put(database, document("l", "c", links=(Link(Relation.CAUSED, "k"),)), unit(3))
    with database.write() as txn:
        assert resolve_links(txn, NOW) == 2
        edges.add_edge(txn, 1, 4, Relation.ENABLED, 0.5, "", "manual", NOW)
        txn.connection.execute("INSERT INTO triggers VALUES (4, 'learned', 'taught', 'taught', 0, 0.7, 900.0, NULL)")

    with database.write() as txn:
        assert writer.delete_memories(txn, [4, 7, 12345]) == 2

    after = dump(database)
    logs = {
        "changes",
        "changed_keys",
        "changed_links",
        "id_sequence",
        "sqlite_sequence",
        "last_ids",
        "uncounted_folders",
    }
    logs |= {"graph_state"}  # counts changes too
    # FTS5 keeps deleted rows as marks until its segments merge; what it can still find is compared instead.
    fulltexts = ("memory_fts", "surface_fts")
    segments = {f"{table}_{part}" for table in fulltexts for part in ("data", "idx", "docsize")}
    compared = before.keys() - logs - segments
    assert {name: after[name] for name in compared} == {name: before[name] for name in compared}
    for table in fulltexts:
        ids = [row[0] for row in database.reader().execute(f"SELECT rowid FROM {table}")]
        assert ids == [1]
    assert fulltext.match(database.reader(), ["a", "b", "c", "title"], (1, 1, 1, 1), 9)[0].tolist() == []
    assert database.check() == []


def test_deleting_nothing_is_no_change(database: Database, dump: Dump) -> None:
    before = dump(database)
    with database.write() as txn:
        assert writer.delete_memories(txn, []) == 0
    assert dump(database) == before


def test_only_living_attributes_can_be_set(database: Database, document: Make) -> None:
    put(database, document("k", "a"))
    with database.write() as txn, refused("E033"):
        writer.set_attribute(txn, "content_hash", {1: 1.0})


Operation = tuple[str, int, int, int]
operations = st.lists(
    st.tuples(st.sampled_from(["put", "delete"]), st.integers(0, 3), st.integers(0, 3), st.integers(0, 5)), max_size=12
)


@given(operations)
@settings(max_examples=examples(0.14))
def test_no_id_is_ever_used_again(
    new_database: Callable[[], Database], document: Make, unit: Unit, steps: list[Operation]
) -> None:
    owner: dict[int, str] = {}
    dead: set[int] = set()
    with new_database() as database:
        for action, name, passages, words in steps:
            key = f"k{name}"
            if action == "put":
                chunks = [f"w{words} p{number}" for number in range(passages)]
                put(database, document(key, *chunks), unit(*range(passages)) if passages else None)
            else:
                known = reader.known_files(database.reader(), key)
                with database.write() as txn:
                    writer.delete_memories(txn, [known[key].id] if key in known else [])
            memories = {row[0]: row[1] for row in loading.load_attributes(database.reader())}
            chunk_rows = list(loading.load_chunks(database.reader()))
            alive = memories.keys() | {row[0] for row in chunk_rows}
            assert not alive & dead
            # A chunk with its memory's id may come and go with the number of passages; the memory lives on.
            dead |= owner.keys() - alive
            owner = {**memories, **{row[0]: memories[row[1]] for row in chunk_rows}}
        assert database.check() == []
