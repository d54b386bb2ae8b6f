from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import apsw
import numpy as np
import pytest
from answered import refused

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.reading import loading, reader
from speckit_memory.memory.store.reading.density import Density
from speckit_memory.memory.store.reading.reader import KnownFile, StoreStatistics
from speckit_memory.memory.store.records import Chunk, Document, Tier
from speckit_memory.memory.store.writing import writer
from speckit_memory.pipeline.ports import Passage

Make = Callable[..., Document]
Unit = Callable[..., np.ndarray]


@pytest.fixture
def filled(database: Database, document: Make, unit: Unit) -> Database:
    """Memories 1 (one passage), 2 (passages 3 and 4), 5 and 6."""
    documents = [
        document("a/one.md", "alpha", folder="a", tier=Tier.CRITICAL, triggers=("Z", "A"), mtime_ns=7, updated_at=9.0),
        document("a/b/two.md", "beta one", "beta two", folder="a/b", updated_at=8.0, created_at=1.0),
        document("ab/three.md", "gamma", folder="ab", updated_at=9.0, importance_weight=0.9),
        document("four.md", "delta", updated_at=1.0, created_at=300.0),
    ]
    with database.write() as txn:
        for number, each in enumerate(documents):
            rows = unit(*range(len(each.chunks))) if number < 2 else None
            writer.put_document(txn, each, rows, 1.0, "m" if number < 2 else None)
    return database


def listed(database: Database, **options: Any) -> list[str]:
    return [memory.key for memory in reader.list_memories(database.reader(), **options)[0]]


def test_memories_are_listed_by_folder_with_its_sub_folders(filled: Database) -> None:
    assert listed(filled, folder="a", sort="key") == ["a/b/two.md", "a/one.md"]
    assert listed(filled, folder="a/b") == ["a/b/two.md"]
    assert listed(filled, folder="nowhere") == []


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("updated_at", ["a/one.md", "ab/three.md", "a/b/two.md", "four.md"]),
        ("created_at", ["four.md", "a/one.md", "ab/three.md", "a/b/two.md"]),
        ("importance_weight", ["ab/three.md", "a/one.md", "a/b/two.md", "four.md"]),
        ("last_accessed", ["a/b/two.md", "a/one.md", "ab/three.md", "four.md"]),
        ("title", ["a/b/two.md", "a/one.md", "ab/three.md", "four.md"]),
    ],
)
def test_memories_are_listed_in_the_order_asked_and_then_by_id(
    filled: Database, sort: str, expected: list[str]
) -> None:
    with filled.write() as txn:
        writer.set_attribute(txn, "last_accessed", {2: 5.0})
    assert listed(filled, sort=sort) == expected


def test_a_page_comes_with_the_number_of_all(filled: Database) -> None:
    page, total = reader.list_memories(filled.reader(), sort="key", limit=2, offset=1)
    assert ([memory.key for memory in page], total) == (["a/one.md", "ab/three.md"], 4)
    assert page[0].triggers == ("Z", "A")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"sort": "created"}, "E030"),
        ({"limit": -1}, "E032"),
        ({"offset": -1}, "E032"),
    ],
)
def test_a_list_that_makes_no_sense_is_refused(filled: Database, options: dict[str, object], code: str) -> None:
    with refused(code):
        listed(filled, **options)


@pytest.mark.parametrize("name", [2**63, -(2**63) - 1, 10**5000], ids=["greatest", "least", "untellable"])
def test_an_id_beyond_64_bits_is_that_of_no_memory(filled: Database, name: int) -> None:
    with refused("E080", match="64 bits"):
        reader.get_memory(filled.reader(), name)


@pytest.mark.parametrize("name", [3, 99, "a/one", ""])
def test_an_unknown_memory_is_reported(filled: Database, name: int | str) -> None:
    with refused("E080"):
        reader.get_memory(filled.reader(), name)


def test_passages_come_in_the_order_asked_for_chunks_and_memories(filled: Database) -> None:
    connection = filled.reader()
    one = Passage(1, 1, "alpha", "", "", 1, 1)
    first, second = Passage(3, 2, "beta one", "", "", 1, 1), Passage(4, 2, "beta two", "", "", 2, 2)
    assert reader.passages(connection, [4, 1, 99, 2, 3, 1]) == [second, one, first, first, one]
    assert reader.passages(connection, []) == []
    assert reader.passages_of(connection, 2) == [first, second]
    assert reader.passages_of(connection, 99) == []


@pytest.mark.requirement("I2")
def test_passages_in_named_sections_and_short_memories_that_may_hold_one(database: Database) -> None:
    def chunk(text: str, anchor: str = "") -> Chunk:
        return Chunk(text, anchor=anchor)

    texts = {
        "long.md": (chunk("one", "state"), chunk("two", "other"), chunk("three", "next-steps")),
        "short.md": (chunk("<!-- anchor: state -->\nfour\n<!-- /anchor: state -->"),),
        "none.md": (chunk("a state without a tag"),),
    }
    with database.write() as txn:
        for key, chunks in texts.items():
            body = "\n".join(f"<!-- ANCHOR:{each.anchor} -->\n{each.text}" for each in chunks)
            document = Document(key=key, title=key, body=body, content_hash=key, chunks=chunks)
            writer.put_document(txn, document, None, 1.0, None)
    connection = database.reader()

    found = reader.passages_in(connection, ["state", "next-steps"])
    assert [passage.text for passage in found] == ["one", "three", texts["short.md"][0].text]
    assert [passage.text for passage in reader.passages_in(connection, ["other", "'; --"])] == ["two"]
    assert reader.passages_in(connection, []) == []


def test_named_sections_are_found_without_reading_all_passages(store_file: Database) -> None:
    connection, run = store_file.reader(), list[tuple[str, Any]]()

    def note(_: apsw.Cursor, statement: str, bindings: Any) -> bool:
        run.append((statement, bindings))
        return True

    connection.exec_trace = note
    reader.passages_in(connection, ["state"])
    connection.exec_trace = None
    [(statement, bindings)] = run
    plan = [step for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {statement}", bindings)]
    assert not [step for step in plan if step.startswith("SCAN chunks")]


def test_the_whole_text_is_kept(filled: Database) -> None:
    assert reader.body(filled.reader(), 2) == "beta one\nbeta two"
    with refused("E080"):
        reader.body(filled.reader(), 3)


@pytest.mark.requirement("I8")
def test_known_files_are_those_of_a_folder_or_one_file(filled: Database) -> None:
    connection = filled.reader()
    one = KnownFile(1, 7, "hash of ('alpha',)", "done")
    assert reader.known_files(connection, "a/one.md") == {"a/one.md": one}
    assert list(reader.known_files(connection, "a")) == ["a/b/two.md", "a/one.md"]
    assert list(reader.known_files(connection)) == ["a/b/two.md", "a/one.md", "ab/three.md", "four.md"]
    assert reader.known_files(connection, "four.md")["four.md"].embedding_status == "pending"


def test_a_name_that_only_begins_like_a_folder_is_not_inside_it(filled: Database, document: Make) -> None:
    with filled.write() as txn:
        for key in ("a-x/one.md", "a.md", "a0", "A/one.md"):
            writer.put_document(txn, document(key, "x", folder=key.rpartition("/")[0]), None, 1.0, None)
    assert list(reader.known_files(filled.reader(), "a")) == ["a/b/two.md", "a/one.md"]
    assert listed(filled, folder="a", sort="key") == ["a/b/two.md", "a/one.md"]


def test_statistics_count_everything(filled: Database) -> None:
    statistics = reader.statistics(filled.reader())
    assert statistics == StoreStatistics(
        memories=4,
        chunks=5,
        edges=0,
        triggers=2,
        pending_embeddings=2,
        pending_links=0,
        absent=0,
        by_tier={Tier.CRITICAL: 1, Tier.NORMAL: 3},
        by_folder={"": 1, "a": 1, "a/b": 1, "ab": 1},
        oldest=1.0,
        newest=300.0,
        embedding_model="m",
        dimensions=4,
        bytes=statistics.bytes,
        density=Density(0, 4, 0),
    )
    assert statistics.bytes > 0


def test_figures_of_memories_leave_out_an_absent_one_as_if_it_were_deleted(filled: Database) -> None:
    for key in reader.keys(filled.reader()):
        gone = reader.get_memory(filled.reader(), key).id
        with filled.write() as txn:
            writer.put_aside(txn, [gone], 5.0)
        absent = reader.statistics(filled.reader())
        with filled.write() as txn:
            writer.delete_memories(txn, [gone])
        deleted = reader.statistics(filled.reader())

        assert absent.absent == 1
        assert absent == replace(deleted, absent=1, bytes=absent.bytes, density=absent.density)


def test_an_empty_store_has_no_dates(database: Database) -> None:
    statistics = reader.statistics(database.reader())
    assert (statistics.memories, statistics.oldest, statistics.newest) == (0, None, None)
    assert (statistics.embedding_model, statistics.dimensions, statistics.by_folder) == ("", 0, {})


def test_loading_can_be_restricted_to_some_memories(filled: Database, document: Make, unit: Unit) -> None:
    connection = filled.reader()
    assert [row[0] for row in loading.load_attributes(connection)] == [1, 2, 5, 6]
    assert [row[0] for row in loading.load_attributes(connection, [6, 2, 3])] == [2, 6]
    assert [row[0] for row in loading.load_fields(connection, np.array([5, 1]))] == [1, 5]
    assert list(loading.load_chunks(connection, [2])) == [(3, 2, 0, "beta one"), (4, 2, 1, "beta two")]
    assert [part.tolist() for part in loading.load_chunk_parents(connection)] == [[1, 3, 4, 5, 6], [1, 2, 2, 5, 6]]
    assert [part.tolist() for part in loading.load_chunk_parents(connection, [])] == [[], []]
    assert list(loading.load_triggers(connection, [2])) == []
    with filled.write() as txn:
        writer.put_document(txn, document("a/one.md", "alpha", "more"), unit(0, 0), 1.0, "m")
    chunks, parents = loading.load_chunk_parents(connection)
    assert (chunks.tolist(), parents.tolist()) == ([3, 4, 5, 6, 7, 8], [2, 2, 5, 6, 1, 1])
    ids, matrix = loading.load_vectors(connection, [2, 5])
    assert (ids.tolist(), matrix.tolist()) == ([3, 4], unit(0, 1).tolist())
    assert loading.load_vectors(connection)[0].tolist() == [3, 4, 7, 8]
    assert loading.load_vectors(connection, [])[1].shape == (0, 4)
