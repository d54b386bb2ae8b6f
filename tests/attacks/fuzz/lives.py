"""Lives of stores: whatever is done to files and memories in whatever order, indexes are those of a store made anew.

A case is a list of events in the life of one store. At its end the answers of the process that lived through it are
those of one that opens the store without a segment, of one that has a segment, and those after every file was read
again; and its indexes are, row by row, those of a new store that is made of the same files.
"""

from __future__ import annotations

import os
import shutil
import time
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st
from tally import Tally

from speckit_memory.engine import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.tables.memories.judgements import Judgement
from tests.attacks.fuzz.living import EVENTS, KILLED, MODELS, QUESTIONS, Life, opened
from tests.attacks.fuzz.made_anew import differences, indexes
from tests.attacks.fuzz.shared import folder, give_up_absent, said_with_codes
from tests.attacks.fuzz.target import Target

NAMED = {event.__name__: event for event in EVENTS}
_OFTEN = ("write", "write", "write", "write", "index", "index", "save", "rename", "kill", "kill")
_EVENT = st.tuples(st.sampled_from([*_OFTEN, *NAMED]), st.integers(0, len(KILLED) - 1), st.integers(0, 9))
CASES = st.lists(_EVENT, min_size=5, max_size=20)
IN_MEMORY = Path("/dev/shm")
"""Where a store's files are written to no disk: of what a killed process left nothing is lost there either."""


def told(memory: Memory, now: float) -> list[Any]:
    """The answers of a store to all questions, to the last bit of every score, and what it lists.

    One question is asked in a session that lived along, to which what it was sent is not sent again.
    """
    found: list[Any] = []
    for question, session in zip(QUESTIONS, ("", "s0"), strict=True):
        answer = memory.search(question, now=now, deadline_ms=None, limit=20, session=session)
        found.append((question, [row.key for row in answer.results], repr(answer.outcome.pool.score.tolist())))
        found.append([(row.tier, row.state, repr(row.channels), row.snippet) for row in answer.results])
    found += [repr((one.key, one.title, one.tier)) for one in memory.list(limit=100)[0]]
    return found


def _stands(one: Judgement) -> bool:
    return one.kind == "promoted" and one.undone_at is None


@cache
def _place() -> Path:
    return folder(IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None) / "life"


def check(case: list[tuple[str, int, int]], tally: Tally) -> None:
    """Lives through the events, then holds the answers to those of stores made anew."""
    root = _place()
    shutil.rmtree(root, ignore_errors=True)
    life = Life(root)
    with patch.object(time, "time", lambda: life.now):
        try:
            for name, first, second in case:
                life.now += 1.0
                try:
                    NAMED[name](life, first, second)
                except SpeckitError as error:
                    said_with_codes(error, "E199")
                tally.survived()
            held(life)
        finally:
            life.memory.close()
    tally.tried()


def held(life: Life) -> None:
    """Holds a life to stores made anew. It must not go on afterwards."""
    life.memory.index([life.docs])  # what was deferred is embedded, and what was torn is whole
    life.memory.session.opened.usage.write()  # uses are counted a little after the answer
    if promoted := [one.id for one in life.memory.learning.judgements(limit=10_000) if _stands(one)]:
        life.memory.learning.undo_judgements(promoted)  # a store that is made anew knows the tiers of documents alone
    lived = told(life.memory, life.now)
    assert (wrong := life.memory.lifecycle.check()) == (), wrong
    serving = life.memory.models.list().serving
    life.memory.close()
    store = life.root / "memory.db"
    life.forget_segment()
    with opened(life.root) as anew:
        assert told(anew, life.now) == lived, "a process that opens the store answers otherwise"
        anew.index([life.docs], force=True)
        anew.lifecycle.write_segment()
    with opened(life.root) as mapped:
        assert told(mapped, life.now) == lived, "reading every file again, or a segment, changes answers"
        _follow_files(mapped, life.docs)
    different = differences(indexes(store), *_made_anew(life, serving))
    assert not different, f"the indexes are not those of a store that is made of the same files: {different}"


def _follow_files(memory: Memory, docs: Path) -> None:
    """Has a store hold what its files say alone: nothing of a restored checkpoint, and nothing whose file is away."""
    with memory.session.database.write() as txn:
        txn.connection.execute("DELETE FROM restorations; DELETE FROM removed_files")
    memory.index([docs], force=True)
    give_up_absent(memory)


def _made_anew(life: Life, serving: str) -> tuple[dict[str, list[Any]], set[str]]:
    """The indexes of a new store, made of the same files by the same model, and the files that make no memory."""
    for file in life.root.glob("memory.db*"):
        (shutil.rmtree if file.is_dir() else os.unlink)(file)
    with opened(life.root) as fresh:
        report = fresh.index([life.docs])
        if serving not in ("", fresh.models.list().serving):
            fresh.models.use(MODELS[1])
    return indexes(life.root / "memory.db"), {problem.where.file for problem in report.problems if problem.where}


TARGET = Target("lives", CASES, check, ".json", "lives")
