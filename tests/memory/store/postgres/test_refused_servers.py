"""What keeps a store in PostgreSQL from being opened: each has its code, and the step to take."""

from __future__ import annotations

import itertools
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from postgres_server import server

from speckit_memory.config.workspace.store_address import store_link
from speckit_memory.errors import SpeckitError
from speckit_memory.errors.problems import Problem
from speckit_memory.memory.store.file.connection import Database

_numbers = itertools.count()


@pytest.fixture
def administrator() -> Iterator[Any]:
    """A session of a superuser in the database `postgres`."""
    address = server()
    import psycopg

    with psycopg.connect(address.replace("speckit@/speckit", "postgres@/postgres"), autocommit=True) as session:
        yield session


def refused(address: str, folder: Path, *, create: bool = True) -> Problem:
    """The problem with opening this store."""
    (folder / ".speckit").mkdir(exist_ok=True)
    with pytest.raises(SpeckitError) as caught:
        Database.open(store_link(address, folder / ".speckit", "the test"), create=create).close()
    (problem,) = caught.value.problems
    return problem


def test_without_the_driver_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    problem = refused("postgresql://speckit@localhost/speckit", tmp_path)
    assert (problem.code, problem.actions) == ("E050", ("pip install 'speckit-memory[postgres]'",))


def test_a_server_that_does_not_answer_is_told_apart_from_one_that_refuses(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    problem = refused(f"postgresql://speckit@/speckit?host={tmp_path}", tmp_path)
    assert (problem.code, problem.retryable) == ("E051", True)


def test_an_option_that_libpq_does_not_know_is_a_mistake_in_the_address(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    problem = refused("postgresql://speckit@localhost/speckit?sslmod=require", tmp_path)
    assert (problem.code, '"sslmod"' in problem.message) == ("E030", True)


def test_an_old_server_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("speckit_memory.memory.store.postgres.opening.OLDEST", 990_000)
    assert refused(server(), tmp_path).code == "E052"


def test_a_database_without_pgvector_names_the_statement(administrator: Any, tmp_path: Path) -> None:
    name = f"bare{next(_numbers)}"
    administrator.execute(f"CREATE DATABASE {name}")
    problem = refused(server().replace("/speckit?", f"/{name}?"), tmp_path)
    assert (problem.code, problem.actions[0].split("  ")[0]) == ("E053", "CREATE EXTENSION vector")


def test_a_role_without_rights_gets_the_grant(administrator: Any, tmp_path: Path) -> None:
    import psycopg

    name = f"shut{next(_numbers)}"
    administrator.execute(f"CREATE DATABASE {name}")
    address = server().replace("speckit@/speckit?", f"postgres@/{name}?")
    with psycopg.connect(address, autocommit=True) as session:
        session.execute("CREATE EXTENSION vector")
    problem = refused(server().replace("/speckit?", f"/{name}?"), tmp_path)
    assert (problem.code, problem.actions) == ("E054", (f'GRANT CREATE ON DATABASE "{name}" TO "speckit"',))
    administrator.execute(problem.actions[0])
    Database.open(store_link(server().replace("/speckit?", f"/{name}?"), tmp_path, "the test")).close()


def test_a_superuser_is_refused_since_no_policy_binds_it(tmp_path: Path) -> None:
    problem = refused(server().replace("speckit@/", "postgres@/"), tmp_path)
    assert (problem.code, problem.actions[0]) == ("E055", "CREATE ROLE speckit LOGIN")


@pytest.fixture
def without_tls() -> Iterator[int]:
    """The port of a server that has no TLS: it answers N to the request for it, as PostgreSQL does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.recv(8)
                        connection.sendall(b"N")

        thread = threading.Thread(target=answer)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_server_without_tls_is_refused_where_the_address_asks_for_it(without_tls: int, tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    problem = refused(f"postgresql://speckit@127.0.0.1:{without_tls}/speckit?sslmode=require", tmp_path)
    assert (problem.code, problem.actions[0]) == (
        "E056",
        "in postgresql.conf: ssl = on, with ssl_cert_file and ssl_key_file",
    )


def test_a_missing_password_names_the_file_that_it_belongs_in(administrator: Any, tmp_path: Path) -> None:
    administrator.execute("CREATE ROLE locked LOGIN PASSWORD 'h0rse-battery'")
    (rules,) = administrator.execute("SHOW hba_file").fetchone()
    file = Path(rules)
    file.write_text(f"local all locked scram-sha-256\n{file.read_text()}")
    administrator.execute("SELECT pg_reload_conf()")
    problem = refused(server().replace("speckit@/", "locked@/"), tmp_path)
    assert (problem.code, "PGPASSFILE" in problem.actions[0]) == ("E058", True)


def test_a_role_and_a_database_that_are_missing_get_their_statements(tmp_path: Path) -> None:
    role = refused(server().replace("speckit@/", "nobody@/"), tmp_path)
    database = refused(server().replace("/speckit?", "/nothing?"), tmp_path)
    assert (role.code, role.actions[0]) == ("E058", 'CREATE ROLE "nobody" LOGIN')
    assert (database.code, database.actions) == ("E059", ('CREATE DATABASE "nothing" OWNER "speckit"',))


def test_a_workspace_that_is_not_there_is_a_store_that_is_missing(tmp_path: Path) -> None:
    address = f"{server()}&workspace=unknown"
    problem = refused(address, tmp_path, create=False)
    assert (problem.code, "'unknown'" in problem.message) == ("E010", True)
