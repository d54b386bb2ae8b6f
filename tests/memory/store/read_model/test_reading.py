"""What is read inside one `ReadModel.reading` is of one state, whoever writes meanwhile."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from storing.answers import NOW, PARTS, WEIGHTS, answers
from storing.indexes import read_model

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.snapshot import Snapshot
from speckit_memory.memory.store.records import Document, Relation
from speckit_memory.memory.store.tables.graph import edges
from speckit_memory.memory.store.writing import writer

Make = Callable[..., Document]

WRITER = """
import sys
from pathlib import Path
import numpy as np
from storing.by_hand import delete_edge, focus, list_edges
from storing.models import WORDS, token_sets
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.tables.sessions import sent_texts
from speckit_memory.memory.store.records import Chunk, Document, Relation, Tier
from speckit_memory.memory.store.tables.graph import edges
from speckit_memory.memory.store.writing import writer

def write(txn, side):
    '''Every memory says something else on each side; so do facts, vectors, tokens, triggers, edges and sessions.'''
    ids = []
    for number in range(6):
        word = WORDS[(number + side) % len(WORDS)]
        row = np.eye(4, dtype=np.float32)[(number + side) % 4]
        text = f"alpha {word}"
        one = Document(
            f"memory {number}", f"{word} {side}", text, f"{side}", created_at=100.0, updated_at=200.0 + side,
            folder="ab"[side], tier=list(Tier)[1 + side], triggers=(word,), title_tokens=(word, "title"),
            trigger_tokens=(word,), path_tokens=(WORDS[side],), chunks=(Chunk(text, tokens=("alpha", word)),),
        )
        ids.append(writer.put_document(txn, one, row[None], 1000.0, "m", token_sets(text)).id)
    writer.set_attribute(txn, "access_count", {ids[0]: side})
    for edge in list_edges(txn.connection, ids[0]):
        delete_edge(txn, edge)
    edges.add_edge(txn, ids[0], ids[1 + side], Relation.CAUSED, 0.5, "", "test", 1000.0)
    txn.connection.execute("DELETE FROM working_memory; DELETE FROM session_sent")
    sent_texts.mark_sent(txn, "session", [(ids[side], "a text")], 1000.0)
    focus(txn, "session", ids[side], 0.5, 1000.0)

with Database.open(Path(sys.argv[1])) as database:
    for line in sys.stdin:
        side = int(line)
        with database.write() as txn:
            write(txn, side)
        print(side, flush=True)
"""
SUPPORT = Path(__file__).parents[3] / "support"


class OtherProcess:
    """A process that writes one of two states when it is told, each in one transaction."""

    def __init__(self, running: subprocess.Popen[str]) -> None:
        self._running = running

    def writes(self, side: int) -> None:
        """Returns when the state is committed."""
        self.is_told(side)
        self.is_done()

    def is_told(self, side: int) -> None:
        """Returns at once."""
        assert self._running.stdin is not None
        self._running.stdin.write(f"{side}\n")
        self._running.stdin.flush()

    def is_done(self) -> None:
        assert self._running.stdout is not None
        assert self._running.stdout.readline().strip()


@contextmanager
def other_process(path: Path) -> Iterator[OtherProcess]:
    running = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(SUPPORT), "OPENBLAS_NUM_THREADS": "1"},
    )
    try:
        with running:
            yield OtherProcess(running)
            assert running.stdin is not None
            running.stdin.close()
    finally:
        running.kill()


@pytest.mark.requirement("M1.state")
@pytest.mark.usefixtures("processes")
def test_what_is_read_while_another_process_writes_is_of_the_state_before_or_of_the_state_after(
    database: Database,
) -> None:
    """Threads share a model, so that states are refreshed and loaded in races; every third reading is of a new one."""
    with other_process(database.path) as other:
        states = []
        for side in (0, 1):
            other.writes(side)
            states.append(repr(answers(read_model(database).current())))
        assert states[0] != states[1]
        shared = read_model(database)
        seen: list[str] = []

        def look(number: int) -> None:
            model = shared if number % 3 else read_model(database)
            with model.reading() as store:
                seen.append(repr(answers(store)))

        with ThreadPoolExecutor(3) as pool:
            for turn in range(12):
                looks = [pool.submit(look, number) for number in range(4)]
                other.is_told(turn % 2)
                looks += [pool.submit(look, number) for number in range(4)]
                other.is_done()
                for each in looks:
                    each.result()
        assert set(seen) <= set(states)


@pytest.mark.usefixtures("processes")
def test_parts_that_are_read_late_are_of_the_state_that_the_reading_began_with(database: Database) -> None:
    with other_process(database.path) as other:
        other.writes(0)
        before = answers(read_model(database).current())
        with read_model(database).reading() as store:
            other.writes(1)
            assert answers(store) == before
        other.writes(0)
        kept = read_model(database)
        answers(kept.current())
        with kept.reading() as store:
            other.writes(1)
            assert answers(store) == before


def test_a_part_that_another_state_was_read_for_is_not_kept(database: Database, document: Make) -> None:
    """Whoever asks outside of a reading gets what is there now; searches of the state never see it."""
    model = read_model(database)
    write(database, document("a", "alpha"), document("b", "beta"))
    with ThreadPoolExecutor(1) as pool, model.reading() as store:
        expected = answers(read_model(database).current())
        stranger = read_model(database)
        assert model.current() is store
        with Database.open(database.path) as writing:
            write(writing, document("a", "gamma"), document("c", "beta"), linked=True)
        late = pool.submit(parts, store).result()
        assert late != parts(stranger.current())
        assert answers(store) == expected


def test_a_reading_inside_a_reading_is_of_the_same_state(database: Database, document: Make) -> None:
    model = read_model(database)
    write(database, document("a", "alpha"))
    with model.reading() as store:
        with Database.open(database.path) as writing:
            write(writing, document("b", "beta"))
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(lambda: model.current().attributes.count).result() == 2
        with model.reading() as inner:
            assert (inner.sequence, inner.attributes.count) == (store.sequence, 1)
            assert answers(inner) == answers(store)
    assert model.current().attributes.count == 2


def write(database: Database, *documents: Document, linked: bool = False) -> None:
    with database.write() as txn:
        ids = [writer.put_document(txn, each, None, NOW, None).id for each in documents]
        if linked:
            edges.add_edge(txn, ids[0], ids[1], Relation.CAUSED, 0.5, "", "test", NOW)


def parts(store: Snapshot) -> list[Any]:
    """What a state reads when it is first asked."""
    ids = np.arange(9)
    return [
        *(store.lexicon.index(*part).postings("alpha").rows.tolist() for part in PARTS),
        sorted(store.lexicon.words()),
        store.vectors.dimensions,
        [tokens.tolist() for tokens in store.tokens.of_passages(ids)],
        store.graph.edge_count,
        [column.tolist() for column in store.graph.degrees(WEIGHTS)],
        [ends.tolist() for ends in store.graph.in_edges(ids, "caused")],
        store.graph.regions(ids).tolist(),
        store.folders.described(),
    ]
