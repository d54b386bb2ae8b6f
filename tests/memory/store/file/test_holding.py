"""A state of the store that one thread reads on where another has stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from speckit_memory.memory.store.file import connection as connections
from speckit_memory.memory.store.file.connection import LOG_BYTES, SPARE, Connection, Database
from speckit_memory.memory.store.file.holding import Held
from speckit_memory.memory.store.tables.meta import get_meta, set_meta


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "store.db") as opened:
        put(opened, "first")
        yield opened


def put(database: Database, value: str) -> None:
    with database.write() as txn:
        set_meta(txn, "fact", value)


def fact(database: Database) -> str | None:
    with database.snapshot_read() as connection:
        return get_meta(connection, "fact")


def held(database: Database) -> Held:
    with database.snapshot_read() as connection:
        get_meta(connection, "fact")  # a transaction sees a state from its first SELECT on
        found = database.hand_over()
    assert found is not None
    return found


def elsewhere(work: Callable[[], str | None]) -> str | None:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def test_another_thread_sees_the_state_that_was_handed_over(database: Database) -> None:
    state = held(database)
    put(database, "second")

    def beside() -> str | None:
        with state.adopted():
            return fact(database)

    assert [elsewhere(beside), fact(database), elsewhere(lambda: fact(database))] == ["first", "second", "second"]
    state.end()
    assert fact(database) == "second"


def test_a_thread_that_adopts_a_state_has_its_own_connection_back_afterwards(database: Database) -> None:
    state = held(database)
    put(database, "second")
    own = database.reader()

    with state.adopted():
        assert fact(database) == "first"

    assert database.reader() is own
    assert fact(database) == "second"
    state.end()


def test_a_read_inside_of_another_one_is_not_handed_over(database: Database) -> None:
    with database.snapshot_read() as connection:
        get_meta(connection, "fact")
        with database.snapshot_read():
            assert database.hand_over() is None
        thread = threading.Thread(target=put, args=(database, "second"))
        thread.start()
        thread.join()

        assert fact(database) == "first"


def test_nothing_is_handed_over_outside_of_a_read(database: Database) -> None:
    assert database.hand_over() is None


def test_connections_that_were_held_are_used_again_and_never_pile_up(database: Database) -> None:
    states = [held(database) for _ in range(5)]
    connections = len(database._connections)
    for state in states:
        state.end()
        state.end()

    assert connections == 5
    assert len(database._spare) == SPARE == len(database._connections)
    assert database.reader() in [connection for _, connection in database._connections]
    assert len(database._spare) == SPARE - 1
    assert fact(database) == "first"


def test_a_state_that_is_given_up_is_not_used_again_by_whoever_still_has_it(database: Database) -> None:
    state = held(database)
    put(database, "second")
    with state.adopted():
        of_the_state = database.reader()
        state.abandon()

        assert fact(database) == "second"
        assert database.reader() is not of_the_state

    state.end()
    assert database._spare == []
    assert fact(database) == "second"


def test_a_store_with_a_state_that_is_held_can_be_closed(tmp_path: Path) -> None:
    with Database.open(tmp_path / "store.db") as database:
        put(database, "first")
        state = held(database)

    state.end()
    assert not database._connections


def test_the_log_begins_anew_where_every_write_comes_while_a_state_is_held(database: Database) -> None:
    log = database.path.with_name(f"{database.path.name}-wal")
    longest = 0
    for number in range(250):
        state = held(database)
        put(database, f"{number}" * 40_000)
        state.end(take_up_log=True)
        longest = max(longest, log.stat().st_size)

    assert 2 * LOG_BYTES > longest > LOG_BYTES  # 27 MB were written
    assert fact(database) == "249" * 40_000


def test_only_who_has_the_time_takes_up_the_log(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bool] = []
    monkeypatch.setattr(connections, "taken_up", lambda _: taken.append(True))
    put(database, "1" * 2 * LOG_BYTES)

    held(database).end()
    before = list(taken)
    held(database).end(take_up_log=True)

    assert (before, taken) == ([], [True])


def test_closing_waits_for_who_takes_up_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), []

    def slowly(connection: Connection) -> None:
        begun.set()
        numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000)"
        ended.append(next(iter(connection.execute(f"{numbers} SELECT sum(i) FROM n"))))

    monkeypatch.setattr(connections, "taken_up", slowly)
    database = Database.open(tmp_path / "store.db")
    state = held(database)
    put(database, "1" * 2 * LOG_BYTES)
    thread = threading.Thread(target=lambda: state.end(take_up_log=True))
    thread.start()
    assert begun.wait(30)

    database.close()

    assert len(ended) == 1
    thread.join()
    assert not database._connections
