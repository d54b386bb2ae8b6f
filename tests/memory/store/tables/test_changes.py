from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.records import Document, Relation
from speckit_memory.memory.store.segment_files.segment_store import TrustedSegment
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.graph.edges import add_edge
from speckit_memory.memory.store.tables.meta import set_meta
from speckit_memory.memory.store.writing import writer

Make = Callable[..., Document]


def test_a_store_that_never_changed_has_no_changes(database: Database) -> None:
    assert changes.latest(database.reader()) == 0
    assert changes.since(database.reader(), 0) == (0, [])
    assert changes.since(database.reader(), 1) is None
    assert changes.content_since(database.reader(), 0) == (0, [])
    assert changes.content_since(database.reader(), 1) is None


def test_every_kind_of_write_is_logged(database: Database, document: Make) -> None:
    log: list[tuple[int, str]] = []
    seen = 0

    def follow() -> list[tuple[int, str]]:
        nonlocal seen
        seen, entries = changes.since(database.reader(), seen) or (0, [])
        log.extend(entries)
        return list(entries)

    with database.write() as txn:
        for key in ("a", "b"):
            writer.put_document(txn, document(key, "x"), None, 1.0, None)
    assert follow() == [(1, "put"), (2, "put")]
    with database.write() as txn:
        writer.put_document(txn, document("a", "x", mtime_ns=5), None, 1.0, None)
    assert follow() == []
    with database.write() as txn:
        writer.set_vectors(txn, {2: np.eye(1, 4, dtype=np.float32)[0]}, "m")
    assert follow() == [(2, "put")]
    with database.write() as txn:
        writer.set_attribute(txn, "access_count", {1: 3})
    assert follow() == [(1, "attributes")]
    with database.write() as txn:
        add_edge(txn, 1, 2, Relation.CAUSED, 1.0, "", "manual", 1.0)
    assert follow() == [(1, "edges"), (2, "edges")]
    with database.write() as txn:
        writer.delete_memories(txn, [1])
    assert follow() == [(1, "delete"), (2, "edges")]
    assert follow() == []


def test_an_undone_write_is_not_logged(database: Database, document: Make) -> None:
    with database.write() as txn:
        try:
            with txn.part():
                writer.put_document(txn, document("a", "x"), None, 1.0, None)
                raise KeyError
        except KeyError:
            pass
    assert changes.since(database.reader(), 0) == (0, [])


def test_the_log_reaches_back_ten_thousand_changes(database: Database) -> None:
    with database.write() as txn:
        changes.record(txn, range(1, 10_006), "put")
    connection = database.reader()
    assert connection.execute("SELECT count(*) FROM changes").get == 10_000
    assert changes.since(connection, 4) is None
    assert changes.content_since(connection, 4) is None
    seq, entries = changes.since(connection, 5) or (0, [])
    assert (seq, len(entries), entries[0]) == (10_005, 10_000, (6, "put"))
    assert changes.since(connection, 10_005) == (10_005, [])
    assert changes.since(connection, 10_006) is None
    assert changes.content_since(connection, 5) == (seq, entries)
    assert changes.content_since(connection, 10_006) is None


@pytest.mark.parametrize("spoilt", [False, True])
def test_the_log_keeps_what_came_since_the_segment(
    database: Database, monkeypatch: pytest.MonkeyPatch, spoilt: bool
) -> None:
    monkeypatch.setattr(changes, "MOST_KEPT", 11_000)
    segment = TrustedSegment("0" * 16 + ".seg", "", 1, 20, 0)
    with database.write() as txn:
        changes.record(txn, range(1, 31), "put")
        set_meta(txn, changes.SEGMENT, "{" if spoilt else json.dumps(segment._asdict()))
    with database.write() as txn:
        changes.record(txn, [7] * 10_000, "attributes")
    found = changes.since(database.reader(), 20)

    assert (found is None) == spoilt
    assert spoilt or (found and found[1][0] == (7, "attributes") and len(found[1]) == 11)

    with database.write() as txn:
        changes.record(txn, [7] * changes.MOST_KEPT, "attributes")
    assert changes.since(database.reader(), 20) is None


kinds = st.sampled_from(["put", "edges", "attributes", "delete"])


@given(st.lists(st.tuples(st.integers(1, 3), kinds), max_size=12), st.integers(0, 12))
def test_changes_of_a_memory_are_told_by_its_last_writing_or_deletion(
    new_database: Callable[[], Database], history: list[tuple[int, changes.Kind]], start: int
) -> None:
    start = min(start, len(history))
    expected: list[tuple[int, str]] = []
    for memory_id in (1, 2, 3):
        seen = [kind for number, kind in history[start:] if number == memory_id]
        content: list[str] = [kind for kind in seen if kind in ("put", "delete")]
        content = content or [kind for kind in seen if kind != "edges"]
        if {"edges", "delete"} & set(seen) and content[-1:] != ["delete"]:
            expected.append((memory_id, "edges"))
        expected += [(memory_id, kind) for kind in content[-1:]]
    with new_database() as database:
        with database.write() as txn:
            for memory_id, kind in history:
                changes.record(txn, [memory_id], kind)
        assert changes.since(database.reader(), start) == (len(history), expected)

        linked = any(kind in ("edges", "delete") for _, kind in history[start:])
        entries = [(0, "edges")] * linked + [entry for entry in expected if entry[1] != "edges"]
        assert changes.content_since(database.reader(), start) == (len(history), entries)
