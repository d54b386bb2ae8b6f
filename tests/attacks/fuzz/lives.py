"""Lives of stores: whatever is done to files and memories in whatever order, indexes are those of a store made anew.

A case is a list of events in the life of one store. At its end the answers of the process that lived through it are
those of one that opens the store without a segment, and those after every file was read again.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st
from tally import Tally

from speckit_memory.engine import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.segments import shelf
from speckit_memory.memory.store.writing import writer
from tests.attacks.fuzz.shared import folder, opened, said_with_codes
from tests.attacks.fuzz.target import Target

BEGINS = 1_800_000_000.0
DAY = 86_400.0
DAYS_AT_ONCE = 20
NAMES = ("fusion.md", "wal.md", "deep/backup.md", "deep/er/cache.md", "Ranks.md")
TEXTS = (
    "# Fusion of ranks\n\nScores of lexical and dense channels cannot be compared, so that ranks are fused.\n",
    "# Fusion of ranks\n\nScores of lexical and dense channels can be compared after all: ranks are no longer fused.\n",
    "---\ntitle: Write-ahead log\ntrigger_phrases: [wal mode]\nimportance_tier: critical\n---\n\nSQLite runs in WAL.\n",
    "---\nimportance_tier: temporary\ncausalLinks: {supports: [wal.md], supersedes: [fusion.md]}\n---\n# Backup\n\n"
    "<!-- ANCHOR:how -->\nCopy the file online, in WAL mode.\n<!-- /ANCHOR:how -->\n",
    "# Cache\n\n" + "".join(f"## Part {n}\n\nThe cache keeps {n} warm entries of the log. \n\n" * 3 for n in range(5)),
    "---\nimportance_tier: constitutional\n---\n# House rules\n\nNever fuse scores on Fridays.\n",
    "---\nimportance_tier: deprecated\n---\n# Old ranks\n\nRanks of the cache, deprecated long ago.\n",
    "no title\n",
    "",
    "---\nbroken: [\n---\n",
)
QUESTIONS = ("why are ranks fused in wal mode", "rules of the cache backup")
RELATIONS = ("caused", "supersedes", "contradicts", "supports")


class TornError(BaseException):
    """What no code of the product catches."""


class Life:
    """One store, its folder of documents and a clock."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.docs = root / "docs"
        self.docs.mkdir(parents=True)
        self.now = BEGINS
        self.memory = opened(root, shadows=False)

    def file(self, number: int) -> Path:
        return self.docs / NAMES[number % len(NAMES)]

    def key(self, number: int) -> str:
        return f"docs/{NAMES[number % len(NAMES)]}"

    def write(self, number: int, text: int) -> None:
        self.file(number).parent.mkdir(parents=True, exist_ok=True)
        self.file(number).write_text(TEXTS[text % len(TEXTS)], encoding="utf-8")

    def rename(self, number: int, other: int) -> None:
        if self.file(number).exists():
            self.file(other).parent.mkdir(parents=True, exist_ok=True)
            self.file(number).replace(self.file(other))

    def delete(self, number: int, _: int) -> None:
        self.file(number).unlink(missing_ok=True)

    def index(self, force: int, _: int) -> None:
        self.memory.index([self.docs], force=force == 1)

    def save(self, number: int, way: int) -> None:
        self.memory.save_file(self.file(number), force=way % 2 == 1, defer_embedding=way // 2 % 2 == 1)

    def validate(self, number: int, useful: int) -> None:
        self.memory.validate(self.key(number), useful=useful % 2 == 0)

    def link(self, number: int, other: int) -> None:
        relation = RELATIONS[(number * 7 + other) % len(RELATIONS)]
        self.memory.link([(self.key(number), relation, self.key(other), 0.7)])

    def search(self, question: int, session: int) -> None:
        text = QUESTIONS[question % len(QUESTIONS)]
        self.memory.served(self.memory.search(text, session=f"s{session % 2}", now=self.now, deadline_ms=None))

    def wait(self, times: int, _: int) -> None:
        self.now += times * DAYS_AT_ONCE * DAY

    def maintain(self, _: int, __: int) -> None:
        self.memory.maintain()

    def unarchive(self, number: int, _: int) -> None:
        self.memory.unarchive(self.key(number))

    def segment(self, _: int, __: int) -> None:
        self.memory.write_segment()

    def reopen(self, _: int, __: int) -> None:
        self.memory.close()
        self.memory = opened(self.root, shadows=False)

    def another(self, _: int, __: int) -> None:
        """Another process indexes, of which the one that lives here learns by the log of changes."""
        with opened(self.root, shadows=False) as other:
            other.index([self.docs])

    def torn(self, after: int, _: int) -> None:
        """An index run that ends in the midst of its documents."""
        whole, left = writer.put_document, after % 3

        def put(*arguments: Any, **more: Any) -> Any:
            nonlocal left
            made = whole(*arguments, **more)
            left -= 1
            if left < 0:
                raise TornError
            return made

        with patch.object(writer, "put_document", put):
            try:
                self.memory.index([self.docs], force=True)
            except TornError:
                return


EVENTS: tuple[Callable[[Life, int, int], None], ...] = (
    Life.write, Life.rename, Life.delete, Life.index, Life.save, Life.validate, Life.link, Life.search, Life.wait,
    Life.maintain, Life.unarchive, Life.segment, Life.reopen, Life.another, Life.torn,
)  # fmt: skip
NAMED = {event.__name__: event for event in EVENTS}
_OFTEN = ("write", "write", "write", "index", "save", "rename")
_EVENT = st.tuples(st.sampled_from([*_OFTEN, *NAMED]), st.integers(0, 9), st.integers(0, 9))
CASES = st.lists(_EVENT, min_size=3, max_size=14)


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


@cache
def _place() -> Path:
    return folder()


def check(case: list[tuple[str, int, int]], tally: Tally) -> None:
    """Lives through the events, then holds the answers to those of stores made anew."""
    root = _place()
    shutil.rmtree(root)
    root.mkdir()
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
            _held(life)
        finally:
            life.memory.close()
    tally.tried()


def _held(life: Life) -> None:
    life.memory.index([life.docs])  # what was deferred is embedded, and what was torn is whole
    life.memory._open.usage.write()  # uses are counted a little after the answer
    lived = told(life.memory, life.now)
    assert life.memory.check() == ()
    life.memory.close()
    shutil.rmtree(shelf.folder_of(life.root / "memory.db"), ignore_errors=True)
    with opened(life.root, shadows=False) as anew:
        assert told(anew, life.now) == lived, "a process that opens the store answers otherwise"
        anew.index([life.docs], force=True)
        assert told(anew, life.now) == lived, "reading every file again changes answers"
        anew.write_segment()
    with opened(life.root, shadows=False) as mapped:
        assert told(mapped, life.now) == lived, "a segment changes answers"


TARGET = Target("lives", CASES, check, ".json", "lives")
