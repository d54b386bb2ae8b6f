"""Sessions of PostgreSQL that end: reads are repeated, and a write is known to be done or not; and round trips."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
from postgres_server import database, link_at, server

from speckit_memory import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.file.guarding.failures import LostConnectionError
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.postgres import opening
from speckit_memory.memory.store.tables import jobs

FIND = "SELECT value FROM meta WHERE key = 'k'"
PUT = "INSERT INTO meta (key, value) VALUES ('k', 'v')"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    with Database.open(link_at(tmp_path / "store.db")) as database:
        yield database


def terminate(database: Database) -> None:
    """Ends this thread's session from another one."""
    mine: Any = database.reader()
    other: Any = database.bare()
    pid = mine.session.info.backend_pid
    other.fetch("SELECT pg_terminate_backend($1::int)", [pid])
    while other.fetch("SELECT count(*) FROM pg_stat_activity WHERE pid = $1", [pid]).rows != [(0,)]:
        pass
    other.close()


def test_a_session_that_ended_between_transactions_is_replaced_unnoticed(store: Database) -> None:
    terminate(store)
    assert value(store.reader(), FIND) is None
    terminate(store)
    with store.write() as txn:
        txn.connection.execute(PUT)
    terminate(store)
    with store.snapshot_read() as connection:
        assert value(connection, FIND) == "v"


@pytest.mark.parametrize("late", ["connected", "configured"])
def test_a_session_that_opens_while_the_store_is_closed_does_not_outlive_it(
    store: Database, late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []
    connect, bare = opening.connect, store.bare

    def connecting(*arguments: Any) -> Any:
        opened.append(connect(*arguments))
        if late == "connected":
            store.close()
        return opened[-1]

    def closing() -> Any:
        connection = bare()
        store.close()
        return connection

    monkeypatch.setattr(opening, "connect", connecting)
    if late == "configured":
        monkeypatch.setattr(store, "bare", closing)
    with ThreadPoolExecutor(1) as pool, pytest.raises(SpeckitError) as refusal:
        pool.submit(store.reader).result()

    assert refusal.value.code == "E027"
    assert [session.closed for session in opened] == [True]


def lose_in_read(database: Database) -> None:
    with database.snapshot_read() as connection:
        value(connection, FIND)
        terminate(database)
        with pytest.raises(LostConnectionError):
            value(connection, "SELECT count(*) FROM memories")


def lose_in_write(database: Database) -> None:
    with database.write() as txn:
        txn.connection.execute(PUT)
        terminate(database)


def test_a_read_that_loses_its_session_fails_as_a_whole_even_if_its_block_survives(store: Database) -> None:
    with pytest.raises(LostConnectionError, match="lost while reading"):
        lose_in_read(store)
    assert value(store.reader(), FIND) is None


def test_a_write_that_loses_its_session_says_that_nothing_was_written(store: Database) -> None:
    before = store.state()
    with pytest.raises(LostConnectionError, match="nothing of it was written") as raised:
        lose_in_write(store)
    assert raised.value.problems[0].retryable
    assert (store.state(), value(store.reader(), FIND)) == (before, None)


@pytest.mark.parametrize("sent", [True, False])
def test_a_session_lost_during_commit_is_asked_about_on_another_one(
    store: Database, monkeypatch: pytest.MonkeyPatch, sent: bool
) -> None:
    import psycopg

    execute = psycopg.Connection.execute

    def lose(session: Any, text: Any, *more: Any, **options: Any) -> Any:
        if not str(text).endswith("COMMIT"):
            return execute(session, text, *more, **options)
        if sent:
            execute(session, text)
        session.close()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(psycopg.Connection, "execute", lose)
    if sent:
        with store.write() as txn:
            txn.connection.execute(PUT)
        assert value(store.reader(), FIND) == "v"
    else:
        with pytest.raises(LostConnectionError, match="nothing of it was written"), store.write() as txn:
            txn.connection.execute(PUT)
        assert value(store.reader(), FIND) is None


def test_an_operation_that_only_read_is_repeated_once_and_one_that_wrote_is_not(tmp_path: Path) -> None:
    runs: list[str] = []
    with Memory.open(link_at(tmp_path / "store.db"), root=tmp_path) as memory:

        def read(opened: Any) -> int:
            runs.append("read")
            with opened.database.snapshot_read() as connection:
                found = value(connection, "SELECT count(*) FROM memories")
                if runs == ["read"]:
                    terminate(opened.database)
                return int(found + value(connection, "SELECT count(*) FROM chunks"))

        def write(opened: Any) -> None:
            runs.append("write")
            lose_in_write(opened.database)

        assert memory.session.read(read) == 0
        with pytest.raises(LostConnectionError):
            memory.session.write(write)
    assert runs == ["read", "read", "write"]


def test_a_writer_that_finds_the_workspace_locked_can_write_afterwards(store: Database, tmp_path: Path) -> None:
    with Database.open(store.path) as other, other.write() as txn:
        txn.connection.execute(PUT)
        with pytest.raises(SpeckitError) as raised, store.write(busy_timeout_ms=50):
            pass
    assert raised.value.code == "E022"
    with store.write() as txn:
        assert value(txn.connection, FIND) == "v"


def test_sessions_above_the_limit_are_closed_until_their_threads_use_them(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    from speckit_memory.memory.store.postgres import database

    monkeypatch.setattr(database, "MOST_SESSIONS", 1)
    mine: Any = store.reader()
    value(mine, FIND)
    done = threading.Event()
    thread = threading.Thread(target=lambda: (value(store.reader(), FIND), done.wait()))
    thread.start()
    while not mine.session.closed:
        pass
    assert value(mine, FIND) is None
    done.set()
    thread.join()


def test_the_commit_of_another_process_shows_at_the_next_look(tmp_path: Path) -> None:
    with Memory.open(link_at(tmp_path / "store.db"), root=tmp_path) as memory:
        before = memory.session.store.state()
        assert memory.session.store.state() == before
        with Database.open(tmp_path / "store.db") as other, other.write() as txn:
            txn.connection.execute(PUT)
        assert memory.session.store.state() == (before[0], before[1] + 1)


def test_of_several_writers_one_holds_the_lease_of_background_work(store: Database) -> None:
    taken = []

    def take(holder: str) -> None:
        with Database.open(store.path) as database, database.write() as txn:
            taken.append(jobs.take(txn, holder, 1_000.0))

    threads = [threading.Thread(target=take, args=(f"holder {number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [False] * 5 + [True]


def test_a_server_without_free_connections_is_a_coded_error(store: Database) -> None:
    import psycopg

    with psycopg.connect(server().replace("speckit@/speckit", "postgres@/postgres"), autocommit=True) as session:
        session.execute("ALTER ROLE speckit CONNECTION LIMIT 0")
        try:
            with pytest.raises(SpeckitError, match="too many connections") as raised:
                Database.open(store.path)
        finally:
            session.execute("ALTER ROLE speckit CONNECTION LIMIT -1")
    assert "raise max_connections" in raised.value.problems[0].actions[0]


def test_what_is_too_old_is_deleted_once_in_a_transaction_of_many_changes(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.md").write_text(f"# Topic {number}\n")
    sent: list[str] = []
    with Memory.open(link_at(tmp_path / "store.db"), root=tmp_path) as memory:
        memory.index([tmp_path])
        connection: Any = memory.session.database.reader()
        send_later = connection.send_later

        def counted(sql: str, values: list[Any]) -> None:
            sent.append(sql)
            send_later(sql, values)

        connection.send_later = counted
        assert memory.graph.add_edges([("0.md", "caused", f"{number}.md", 0.5) for number in range(1, 6)]) == 5
    # the second transaction, of one change, notes what was linked
    deleted = [sql.split()[2] for sql in sent if sql.startswith("DELETE")]
    assert deleted == ["edge_history", "changes", "changes"]


def test_many_edges_take_as_many_round_trips_as_few(tmp_path: Path) -> None:
    for number in range(14):
        (tmp_path / f"{number}.md").write_text(f"# Topic {number}\n")
    with Memory.open(link_at(tmp_path / "store.db"), root=tmp_path) as memory:
        memory.index([tmp_path])
        connection: Any = memory.session.database.reader()
        trips = []
        for last in (12, 13):
            before = connection.round_trips
            edges = [(f"{number}.md", "caused", f"{last}.md", 0.5) for number in range(8 + 4 * (last - 12))]
            assert memory.graph.add_edges(edges) == len(edges)
            trips.append(connection.round_trips - before)
        assert trips[0] == trips[1] < 20
        history = [change.id for change in memory.graph.history(limit=20)]
        assert history == list(range(20, 0, -1))


def test_a_new_database_is_analysed_with_its_first_memories(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.md").write_text(f"# Topic {number}\n")
    counted = "SELECT reltuples FROM pg_class WHERE oid = 'memories'::regclass"
    with Memory.open(link_at(tmp_path / "store.db", database("counted")), root=tmp_path) as memory:
        session = cast(Any, memory.session.database.reader()).session
        assert session.execute(counted).fetchone() == (-1,)
        memory.index([tmp_path / "0.md"])
        assert session.execute(counted).fetchone() == (1,)
        memory.index([tmp_path])
        assert session.execute(counted).fetchone() == (1,)


@pytest.mark.requirement("C3")
def test_a_warm_search_takes_four_round_trips_at_most_and_a_cold_one_reads_its_words_in_one(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(12):
        (folder / f"d{number}.md").write_text(f"# Topic {number}\n\nFusion of ranks, and backups of zebra {number}.\n")
    questions = (
        "fusion of ranks",
        "zebra backups",
        "zebar bakcups",
        "which ranks do the backups of a zebra need for their fusion",
        "which fuson of ranks do the bakcups of topic 7 need",
    )
    with Memory.open(link_at(tmp_path / "store.db"), root=tmp_path) as memory:
        memory.index([folder])
        memory.graph.add_edges([("docs/d1.md", "supersedes", "docs/d0.md", 1.0)])
        connection: Any = memory.session.database.reader()
        fetch = connection.fetch
        words: list[Any] = []

        def counted(sql: str, values: list[Any]) -> Any:
            words.extend(values if "JOIN postings" in sql else ())
            return fetch(sql, values)

        connection.fetch = counted
        memory.session.opened.read_model._builder.start = lambda *_: None  # type: ignore[method-assign]
        assert memory.search(questions[3]).results
        assert len([listed for listed in words if len(listed) > 1]) == 1, words
        assert not {word for listed in words if len(listed) == 1 for word in listed}, words
        del memory.session.opened.read_model._builder.start
        memory.session.opened.read_model.load()
        for warm in (False, False, True):
            for question in questions:
                before = connection.round_trips
                assert memory.search(question).results
                assert not warm or connection.round_trips - before <= 4, question
