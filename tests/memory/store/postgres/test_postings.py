"""The rows of words in PostgreSQL: their packed places, and changes that are sent late."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from postgres_server import link_at

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.tables.words import fulltext, surface

EVEN = (1.0, 1.0, 1.0, 1.0)
ROWS = "SELECT term, memory_id, analysed IS NOT NULL, written IS NOT NULL FROM postings ORDER BY term, memory_id"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    with Database.open(link_at(tmp_path / "store.db")) as database:
        yield database


@given(st.lists(st.lists(st.integers(0, 2**40), unique=True).map(sorted)))
def test_packed_places_are_unpacked_as_they_were(lists: list[list[int]]) -> None:
    from speckit_memory.memory.store.postgres.postings import pack, unpack

    numbers = np.array([number for each in lists for number in each], np.int64)
    assert list(unpack(pack(numbers, np.array([*map(len, lists)], np.int64)))) == lists


def fill(txn: Any, memory: int) -> None:
    fulltext.insert(txn, [(memory, "one", "", "", "two two")])
    surface.insert(txn, [(memory, "One", "two, and two")])


@pytest.mark.requirement("C2")
def test_both_tables_share_the_rows_of_a_memory_and_each_is_deleted_alone(store: Database) -> None:
    connection: Any = store.reader()
    with store.write() as txn:
        fill(txn, 1)
    both = [(word, 1, True, True) for word in ("", "one", "two")]
    assert sorted(connection.fetch(ROWS, []).rows) == sorted([*both, ("and", 1, False, True)])

    with store.write() as txn:
        fulltext.delete(txn, 1)
    assert fulltext.match(connection, ["two"], EVEN, 9)[0].tolist() == []
    assert surface.holding(connection, ["two and"], 9).tolist() == [1]
    with store.write() as txn:
        fulltext.insert(txn, [(1, "", "", "", "three")])
        surface.delete(txn, 1)
    assert fulltext.match(connection, ["three"], EVEN, 9)[0].tolist() == [1]
    assert surface.holding(connection, ["two"], 9).tolist() == []
    with store.write() as txn:
        fulltext.delete(txn, 1)
        fulltext.delete(txn, 1)
    assert connection.fetch(ROWS, []).rows == []


def fail(txn: Any) -> None:
    with txn.part():
        txn.connection.execute("DELETE FROM meta")
        fill(txn, 2)
        with txn.part():
            fill(txn, 3)
        raise KeyError


def fail_at_once(txn: Any) -> None:
    with txn.part():
        fill(txn, 4)
        raise KeyError


def fail_as_a_whole(store: Database) -> None:
    with store.write() as txn:
        fill(txn, 6)
        raise KeyError


def test_words_of_a_part_that_fails_are_not_kept_and_those_before_it_are(store: Database) -> None:
    with store.write() as txn:
        txn.connection.execute("INSERT INTO meta (key, value) VALUES ('k', 'v')")
        fill(txn, 1)
        for fails in (fail, fail_at_once):
            with pytest.raises(KeyError):
                fails(txn)
        fill(txn, 5)
        assert surface.holding(txn.connection, ["two"], 9).tolist() == [1, 5]
    with pytest.raises(KeyError):
        fail_as_a_whole(store)
    assert store.reader().execute("SELECT value FROM meta").get == "v"
    assert fulltext.match(store.reader(), ["two"], EVEN, 9)[0].tolist() == [1, 5]
    assert surface.holding(store.reader(), ["two"], 9).tolist() == [1, 5]


def test_of_common_words_no_more_is_read_than_tells(store: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("speckit_memory.memory.store.postgres.virtual_tables.FEW", 3)
    monkeypatch.setattr("speckit_memory.memory.store.postgres.session.MOST_ROWS", 3)
    texts = {memory: "b a" if memory % 2 else "a c b" for memory in range(1, 12)} | {12: "a b", 13: "rare a"}
    with store.write() as txn:
        surface.insert(txn, [(memory, "", text) for memory, text in texts.items()])
    with store.snapshot_read() as reading:
        connection: Any = reading
        for phrases, limit, trips in (
            (["a"], 2, 1),
            (["a", "b"], 1, 1),
            (["a b"], 1, 1),
            (["a", "rare"], 2, 2),
            (["rare a", "a"], 2, 0),
            (["a rare"], 2, 0),
            (["a", "nowhere"], 2, 1),
            (["b a", "c"], 1, 2),
            (["c", "b"], 5, 1),
            (["c b"], 5, 0),
        ):
            before = connection.round_trips
            found = surface.holding(connection, phrases, limit).tolist()
            assert (phrases, connection.round_trips - before) == (phrases, trips)
            holders = [memory for memory, text in texts.items() if all(f" {p} " in f" {text} " for p in phrases)]
            assert len(found) == min(limit, len(holders))
            assert sorted(set(found) & set(holders)) == found


def test_words_read_ahead_are_those_of_the_transaction(store: Database) -> None:
    connection: Any = store.reader()
    with store.write() as txn:
        fill(txn, 1)
    with store.snapshot_read():
        surface.prefetch(connection, ["two", "nowhere"])
        before = connection.round_trips
        assert surface.holding(connection, ["two"], 9).tolist() == [1]
        assert surface.holding(connection, ["two", "nowhere"], 9).tolist() == []
        assert connection.round_trips == before + 1
        with Database.open(store.path) as other, other.write() as txn:
            fill(txn, 2)
        assert surface.holding(connection, ["two"], 9).tolist() == [1]
    with store.snapshot_read():
        assert surface.holding(connection, ["two"], 9).tolist() == [1, 2]
