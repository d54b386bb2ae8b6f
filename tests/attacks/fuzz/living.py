"""One store, its folder of documents and a clock, and all that can happen to them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from crashing import crash_at
from files import write_file

from speckit_memory.engine import Memory
from speckit_memory.engine.search.searcher import Searcher
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.segment_files.segment_store import folder_of
from speckit_memory.memory.store.tables.sessions import selections
from speckit_memory.memory.store.writing import writer
from tests.attacks.fuzz import second_model
from tests.attacks.fuzz.shared import folder, model

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
QUESTIONS = ("ranks in wal mode", "backup cache")
RELATIONS = ("caused", "supersedes", "contradicts", "supports")
LEARNED = ("ranks", "wal mode", "backup", "cache")
MODELS = ("bundled", second_model.NAME)
ENVIRON = {"SPECKIT_LEARN_FROM_SELECTION": "true"}
CHECKPOINTS = ("one", "two", "three")
AFTER_A_DEATH = 300.0
"""Seconds: whoever held a lease is known to be gone by then."""


class TornError(BaseException):
    """What no code of the product catches."""


def opened(root: Path) -> Memory:
    """The store in a folder, with the models and the pipeline that were read already."""
    with patch.object(Searcher, "through", _prepared):
        memory = Memory.open(root / "memory.db", "default", root=root, environ=ENVIRON, shadows=False)
    models = memory.session.opened._models
    models.embedder = model()
    models._local.update({"bundled": model(), second_model.NAME: second_model.second_model()})
    return memory


_THROUGH = Searcher.through
_READ: dict[Path, Searcher] = {}


def _prepared(pipeline: Any, config: Any, overrides: Any, *, strict: bool) -> Searcher:
    """One pipeline for all lives, which read the same files: reading them takes longer than most of what happens."""
    if config.root not in _READ:
        _READ[config.root] = _THROUGH(pipeline, config, overrides, strict=strict)
    return _READ[config.root]


@cache
def _begun() -> Path:
    """A workspace with the first notes in its store: to copy it is faster than to make one."""
    place = folder() / "begun"
    for name, text in zip(NAMES, TEXTS[: len(NAMES) - 1], strict=False):
        write_file(place / "docs" / name, text)
    with patch.object(time, "time", lambda: BEGINS - 1), opened(place) as memory:
        memory.index([place / "docs"])
    return place


class Life:
    """One store, its folder of documents and a clock."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.docs = root / "docs"
        self.now = BEGINS
        shutil.copytree(_begun(), root, ignore=shutil.ignore_patterns("memory.db?*"))
        self.memory = opened(root)

    def file(self, number: int) -> Path:
        return self.docs / NAMES[number % len(NAMES)]

    def key(self, number: int) -> str:
        return f"docs/{NAMES[number % len(NAMES)]}"

    def write(self, number: int, text: int) -> None:
        write_file(self.file(number), TEXTS[text % len(TEXTS)])

    def rename(self, number: int, other: int) -> None:
        if self.file(number).exists():
            self.file(other).parent.mkdir(parents=True, exist_ok=True)
            self.file(number).replace(self.file(other))

    def remove(self, number: int, _: int) -> None:
        self.file(number).unlink(missing_ok=True)

    def index(self, force: int, _: int) -> None:
        self.memory.index([self.docs], force=force == 1)

    def save(self, number: int, way: int) -> None:
        self.memory.documents.save(self.file(number), force=way % 2 == 1, defer_embedding=way // 2 % 2 == 1)

    def update(self, number: int, way: int) -> None:
        changes: tuple[dict[str, Any], ...] = (
            {"title": f"Titled {way}"},
            {"triggers": ["wal mode", f"phrase {way}"]},
            {"tier": "important"},
            {"weight": 0.9},
        )
        self.memory.documents.update(self.key(number), **changes[way % len(changes)])

    def delete(self, number: int, way: int) -> None:
        if way % 3:
            self.memory.deletions.delete(self.key(number), confirm=True)
        else:
            self.memory.deletions.delete_folder("docs/deep", confirm=True)

    def undelete(self, number: int, _: int) -> None:
        if there := self.memory.deletions.list():
            self.memory.deletions.undelete(there[number % len(there)].name)

    def validate(self, number: int, useful: int) -> None:
        self.memory.learning.validate(self.key(number), useful=useful % 2 == 0)

    def take_back(self, number: int, way: int) -> None:
        """What was judged last, or before that, or all of a memory."""
        given = [one for one in self.memory.learning.judgements() if one.undone_at is None]
        if not given:
            return
        chosen = given[number % len(given)]
        if way % 3:
            self.memory.learning.undo_judgements([chosen.id])
        else:
            self.memory.learning.undo_judgements(name=chosen.memory)

    def promote(self, number: int, _: int) -> None:
        """What readers have judged often enough."""
        for _ in range(5):
            self.memory.learning.validate(self.key(number), useful=True)
        self.memory.learning.promote(self.key(number))

    def link(self, number: int, other: int) -> None:
        relation = RELATIONS[(number * 7 + other) % len(RELATIONS)]
        self.memory.graph.add_edges([(self.key(number), relation, self.key(other), 0.7)])

    def unlink(self, number: int, _: int) -> None:
        edges = self.memory.graph.lineage(self.key(number), depth=1).steps
        if edges:
            self.memory.graph.unlink(edges[0].edge)

    def undo(self, number: int, _: int) -> None:
        if changes := self.memory.graph.history():
            self.memory.graph.undo([changes[number % len(changes)].id])

    def learn(self, number: int, phrase: int) -> None:
        """What a selection teaches once two hundred were seen."""
        memory = self.memory.get(self.key(number))
        with self.memory.session.database.write() as txn:
            selections.learn(txn, memory.id, LEARNED[phrase % len(LEARNED)], self.now, self.now + 30 * DAY)

    def unlearn(self, number: int, _: int) -> None:
        self.memory.triggers.forget(self.key(number))

    def search(self, question: int, session: int) -> None:
        text = QUESTIONS[question % len(QUESTIONS)]
        self.memory.feedback.delivered(
            self.memory.search(text, session=f"s{session % 2}", now=self.now, deadline_ms=None)
        )

    def wait(self, times: int, _: int) -> None:
        self.now += times * DAYS_AT_ONCE * DAY

    def maintain(self, _: int, __: int) -> None:
        self.memory.lifecycle.maintain()

    def unarchive(self, number: int, _: int) -> None:
        self.memory.lifecycle.unarchive(self.key(number))

    def checkpoint(self, name: int, part: int) -> None:
        self.memory.checkpoints.create(CHECKPOINTS[name % len(CHECKPOINTS)], folder="" if part % 3 else "docs/deep")

    def restore(self, name: int, way: int) -> None:
        chosen = CHECKPOINTS[name % len(CHECKPOINTS)]
        self.memory.checkpoints.restore(chosen, replace=way % 2 == 0, keep_before=False)

    def model(self, number: int, _: int) -> None:
        self.memory.models.use(MODELS[number % len(MODELS)])

    def build(self, number: int, _: int) -> None:
        """Vectors beside those in use, which nobody puts in use."""
        self.memory.models.build(MODELS[number % len(MODELS)])

    def roll_back(self, _: int, __: int) -> None:
        self.memory.models.roll_back()

    def segment(self, _: int, __: int) -> None:
        self.memory.lifecycle.write_segment()

    def reopen(self, _: int, __: int) -> None:
        self.memory.close()
        self.memory = opened(self.root)

    def another(self, _: int, __: int) -> None:
        """Another process indexes, of which the one that lives here learns by the log of changes."""
        with opened(self.root) as other:
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

    def kill(self, number: int, point: int) -> None:
        """The process is killed at some point of something else, and another one goes on with what it left."""
        event = KILLED[number % len(KILLED)]
        self.memory.close()
        at = number + int(1.85**point)
        with crash_at(self.root, at) as crash, suppress(SpeckitError), opened(self.root) as self.memory:
            event(self, number + point, point)
        self.memory = opened(self.root)
        if crash.reached:
            self.now += AFTER_A_DEATH
            assert self.memory.lifecycle.check() == (), (
                f"{event.__name__} that was killed leaves a store that is wrong: {crash}"
            )

    def forget_segment(self) -> None:
        """Takes the segment away, as if none had ever been written. The store must be closed."""
        shutil.rmtree(folder_of(self.root / "memory.db"), ignore_errors=True)


Event = Callable[[Life, int, int], None]
EVENTS: tuple[Event, ...] = (
    Life.write, Life.rename, Life.remove, Life.index, Life.save, Life.update, Life.delete, Life.undelete,
    Life.validate, Life.take_back, Life.promote, Life.link, Life.unlink, Life.undo, Life.learn, Life.unlearn,
    Life.search, Life.wait, Life.maintain, Life.unarchive, Life.checkpoint, Life.restore, Life.model, Life.build,
    Life.roll_back, Life.segment, Life.reopen, Life.another, Life.torn, Life.kill,
)  # fmt: skip
KILLED: tuple[Event, ...] = (
    Life.index, Life.save, Life.restore, Life.model, Life.delete, Life.undelete, Life.checkpoint, Life.update,
    Life.maintain, Life.roll_back, Life.take_back,
)  # fmt: skip
"""What a process is killed in."""
