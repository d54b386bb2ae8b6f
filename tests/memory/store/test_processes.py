"""Several processes on one file: real ones, that write, read, and are killed."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.reading import reader

pytestmark = pytest.mark.usefixtures("processes")

ROOT = Path(__file__).parents[3]

WORKER = """
import itertools, sys
from pathlib import Path
import numpy as np
from speckit_memory.memory.store.tables.words import fulltext
from speckit_memory.memory.store.reading import loading
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.tables.vectors import vectors
from speckit_memory.memory.store.writing import writer
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.writing.links import resolve_links
from speckit_memory.memory.store.records import Chunk, Document, Link, Relation

path, name, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
random = np.random.default_rng(sum(name.encode()))

def document(number, version):
    chunks = tuple(Chunk(f"text {n}", tokens=("word", f"v{version}", name)) for n in range(1 + number % 4))
    links = (Link(Relation.CAUSED, f"{name}/{number - 1}"),)
    return Document(f"{name}/{number}", "t", "b" * 3000, f"{version}", chunks=chunks, links=links, triggers=(name,))

print("ready", flush=True)
with Database.open(path) as database:
    for turn in itertools.count() if rounds == 0 else range(rounds):
        with database.write() as txn:
            for number in range(5):
                one = document((turn * 3 + number) % 40, turn)
                rows = random.normal(size=(len(one.chunks), 16)).astype(np.float32)
                rows /= np.linalg.norm(rows, axis=1, keepdims=True)
                writer.put_document(txn, one, rows, float(turn), "m")
            resolve_links(txn, float(turn))
            gone = reader.known_files(txn.connection, f"{name}/{turn % 40}")
            writer.delete_memories(txn, [file.id for file in gone.values()])
        with database.snapshot_read() as connection:
            ids = {row[0] for row in loading.load_attributes(connection)}
            assert {row[1] for row in loading.load_chunks(connection)} == ids
            assert set(fulltext.match(connection, ["word"], (1, 1, 1, 1), 999)[0].tolist()) == ids
            chunks = {row[0] for row in loading.load_chunks(connection)}
            assert set(loading.load_vectors(connection)[0].tolist()) == chunks
        print(turn, flush=True)
print("done", flush=True)
"""


def start(path: Path, name: str, rounds: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(path), name, str(rounds)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.mark.requirement("M1")
def test_processes_write_and_read_one_file_without_disturbing_each_other(path: Path) -> None:
    names = ["first", "second", "third"]
    with ExitStack() as stack:
        # They also make the store at the same moment.
        workers = [stack.enter_context(start(path, name, 60)) for name in names]
        results = [worker.communicate() for worker in workers]
    assert [(worker.returncode, errors) for worker, (_, errors) in zip(workers, results, strict=True)] == [(0, "")] * 3
    with Database.open(path, create=False) as database:
        assert database.check() == []
        keys = reader.known_files(database.reader())
        assert {key.split("/")[0] for key in keys} == set(names)


@pytest.mark.requirement("M1")
def test_a_process_killed_at_any_moment_leaves_a_healthy_store(path: Path) -> None:
    moments = random.Random(20)
    for attempt in range(12):
        with start(path, "killed", 0) as worker:
            assert worker.stdout is not None
            for _ in range(moments.randrange(1, 12)):
                worker.stdout.readline()
            worker.kill()
            worker.communicate()
        assert worker.returncode < 0, attempt
        with Database.open(path) as database:
            assert database.check() == [], attempt
            assert reader.statistics(database.reader()).pending_embeddings == 0
    with start(path, "survivor", 3) as worker:
        assert worker.communicate()[0].endswith("done\n")
