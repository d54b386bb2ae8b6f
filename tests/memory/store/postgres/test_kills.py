"""Clients, sessions and the server are killed while processes save: no acknowledged save is lost or doubled."""

from __future__ import annotations

import time
from pathlib import Path

import postgres_server
import pytest
from postgres_kills import WAYS, Figures, Worker, try_kills

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.reading import reader

pytestmark = pytest.mark.usefixtures("processes")

KILLS = 2
"""In each way."""
PROCESSES = 10


@pytest.mark.parametrize("way", WAYS)
def test_a_kill_loses_and_doubles_no_acknowledged_save(tmp_path: Path, way: str) -> None:
    server = postgres_server.start()
    link = postgres_server.link_at(tmp_path / "store.db", postgres_server.address(server))
    figures = try_kills(way, server, link, KILLS)
    assert figures == Figures(kills=KILLS, saved=figures.saved, refused=figures.refused)


def test_ten_processes_write_and_read_at_once(tmp_path: Path) -> None:
    link = postgres_server.link_at(tmp_path / "store.db")
    workers = [Worker(link, f"w{number}") for number in range(PROCESSES)]
    until = time.monotonic() + 120
    while any(len(worker.numbers("saved")) < 10 for worker in workers):
        assert time.monotonic() < until, [worker.lines[-2:] for worker in workers]
        time.sleep(0.05)
    for worker in workers:
        worker.end()
    saved = {f"{worker.name}/{number}" for worker in workers for number in worker.numbers("saved")}
    with Database.open(link, create=False) as database:
        assert set(reader.known_files(database.reader())) == saved
        assert database.state().commits == len(saved)
    assert all(line.startswith("saved") for worker in workers for line in worker.lines)
