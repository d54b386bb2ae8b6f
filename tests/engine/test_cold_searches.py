"""The first search of a process is a whole one, however long the store takes to open.

Time is told by hand: whatever is opened takes a minute, everything else a microsecond per look at the clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import rmtree
from threading import RLock
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest
from files import write_file

from speckit_memory.engine import Memory
from speckit_memory.engine.background.lazy import Lazy
from speckit_memory.memory.models.crossencoders import GuardedCrossEncoder
from speckit_memory.memory.models.embedders import StaticEmbedder, static
from speckit_memory.memory.models.embedders.encoder import EncoderEmbedder
from speckit_memory.memory.models.embedders.model_folder import Prompts
from speckit_memory.memory.store.read_model.facts import columns, folders
from speckit_memory.memory.store.read_model.snapshot import Snapshot
from speckit_memory.memory.store.read_model.vectors import sqlite_vectors, token_space
from speckit_memory.memory.store.read_model.vectors.token_table import TokenTable
from speckit_memory.memory.store.read_model.words import fts_index
from speckit_memory.pipeline.ports import Column, Vectors
from speckit_memory.pipeline.process import clock

pytestmark = pytest.mark.requirement("P9", "T27")
NOTES = {
    "decisions/fusion.md": "# Fuse by score\n\nWe add standardised scores because ranks forget distances.\n",
    "decisions/storage.md": "---\ncausalLinks:\n  caused_by: [decisions/fusion.md]\n---\n# File\n\nIt holds scores.\n",
    "rules/always.md": "---\ntitle: House rules\nimportance_tier: constitutional\n---\nNever push on Fridays.\n",
}
QUESTION = "why are scores added and not ranks?"
MINUTE = 60_000_000_000
READ_ONCE: list[tuple[ModuleType | type, str]] = [
    (Snapshot, "load"),
    (fts_index.FileWords, "of"),
    (token_space, "TokenTable"),
    (columns, "natural"),
    (folders.FolderTable, "_complete"),
    (static, "_load"),
    (static, "_facts"),
]
"""What a search reads once, by the names through which it is read."""


class Time:
    """A clock that goes on by a microsecond with every look at it."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        self.now += 1_000
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    told = Time()
    monkeypatch.setattr(clock, "perf_counter_ns", told)
    return told


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, time: Time) -> list[str]:
    """The names of everything that was read, each in a minute; nobody has read the bundled model before."""
    for shared in (static._bundled_rows, static._bundled_library):
        shared.cache_clear()
    read: list[str] = []

    def slow(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def work(*arguments: Any, **named: Any) -> Any:
            read.append(name)
            time.now += MINUTE
            return original(*arguments, **named)

        return work

    for owner, name in READ_ONCE:
        monkeypatch.setattr(owner, name, slow(name, getattr(owner, name)))
    return read


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for key, text in NOTES.items():
        write_file(tmp_path / key, text)
    with Memory.open(tmp_path / "m.db", root=tmp_path, environ={}) as memory:
        memory.index([tmp_path])
    rmtree(segments_of(tmp_path), ignore_errors=True)  # from which there would be nothing to open
    return tmp_path


def segments_of(root: Path) -> Path:
    return root / "m.db.segments"


def open_memory(root: Path, pipeline: str = "default", **environ: str) -> Memory:
    return Memory.open(root / "m.db", pipeline, root=root, environ=environ, strict=True)


CATALOGUE = {
    "SPECKIT_FOLDER_DISCOVERY": "true", "SPECKIT_EMBEDDING_EXPANSION": "true", "SPECKIT_COMPLEXITY_ROUTER": "true",
    "SPECKIT_DEGREE_BOOST": "true", "SPECKIT_GRAPH_UNIFIED": "true", "SPECKIT_CAUSAL_BOOST": "true",
}  # fmt: skip


@pytest.mark.requirement("P9.opening")
@pytest.mark.parametrize(("pipeline", "environ"), [("default", {}), ("catalogue", CATALOGUE)])
def test_opening_is_not_the_time_of_the_query(
    workspace: Path, opened: list[str], pipeline: str, environ: dict[str, str]
) -> None:
    with open_memory(workspace, pipeline, **environ) as memory:
        cold = memory.search(QUESTION, now=2e9)
        memory.models.load_vectors()
        warming, warm = (memory.search(QUESTION, now=2e9) for _ in range(2))

    assert cold.notes.degraded == ()
    assert "rules/always.md" in [row.key for row in cold.results]
    for later in (warming, warm):
        assert [(row.key, row.score) for row in cold.results] == [(row.key, row.score) for row in later.results]
    assert {"load", "of", "_load", "_facts"} <= set(opened)
    assert cold.timings_ms.opening > len(opened) * 60_000 - 60_000  # all but what the segment in memory has to read
    assert max(each.timings_ms.total for each in (cold, warming)) < 1_000
    assert warm.timings_ms.opening < 1_000


@pytest.mark.requirement("P9.opening")
def test_what_the_file_answers_while_there_is_no_segment_is_no_time_of_the_query(
    workspace: Path, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = sqlite_vectors.nearest

    def slow(*arguments: Any) -> Any:
        time.now += MINUTE
        return original(*arguments)

    monkeypatch.setattr(sqlite_vectors, "nearest", slow)
    with open_memory(workspace) as memory:
        cold = memory.search(QUESTION)
        memory.models.load_vectors()
        warm = memory.search(QUESTION)

    assert cold.notes.degraded == warm.notes.degraded == ()
    assert cold.timings_ms.opening >= 60_000 > warm.timings_ms.opening


def test_without_time_for_anything_the_constitution_is_there_and_one_line_says_what_is_missing(
    workspace: Path, opened: list[str]
) -> None:
    with open_memory(workspace) as memory:
        result = memory.search(QUESTION, deadline_ms=1e-6)

    assert result.results[0].key == "rules/always.md"
    assert "decisions/fusion.md" in [row.key for row in result.results]
    [part] = result.notes.degraded
    assert (part.part, part.steps) == (
        "deadline",
        (
            "spelling",
            "acronyms",
            "coverage",
            "vector",
            "graph",
            "phrase",
            "surface",
            "regularise",
            "maxsim",
            "encoder",
        ),
    )
    assert set(opened) == {"load", "of", "natural"}


def test_a_deadline_of_the_call_goes_before_that_of_the_settings(workspace: Path, time: Time) -> None:
    with open_memory(workspace, SPECKIT_DEADLINE_MS="0.000001") as memory:
        late = memory.search(QUESTION)
        told = [memory.search(QUESTION, deadline_ms=allowed) for allowed in (60_000, 0, None)]

    assert [part.part for part in late.notes.degraded] == ["deadline"]
    assert [result.notes.degraded for result in told] == [(), (), ()]


def test_the_first_search_after_an_index_run_is_a_whole_one(workspace: Path, opened: list[str]) -> None:
    with open_memory(workspace) as memory, open_memory(workspace) as writer:
        memory.search(QUESTION)
        (workspace / "decisions" / "new.md").write_text("# Scores\n\nScores are added, says the new note.\n", "utf-8")
        writer.index([workspace], force=True)
        opened.clear()
        result = memory.search(QUESTION)

    assert "decisions/new.md" in [row.key for row in result.results]
    assert result.notes.degraded == ()


class Door:
    """A lock that tells when somebody waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.waited_for = threading.Event()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.waited_for.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@pytest.mark.requirement("P9.opening")
def test_who_waits_for_another_to_open_the_store_loses_no_time_either(
    workspace: Path, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = threading.Event()
    original = TokenTable
    with open_memory(workspace) as memory:
        door = Door()
        monkeypatch.setattr(memory.session.opened.read_model.current().tokens, "_loading", door)

        def slow(*arguments: Any) -> Any:
            inside.set()
            assert door.waited_for.wait(60)
            time.now += MINUTE
            return original(*arguments)

        monkeypatch.setattr(token_space, "TokenTable", slow)

        def second() -> Any:
            assert inside.wait(60)
            return memory.search(QUESTION)

        with ThreadPoolExecutor(2) as pool:
            answers = [pool.submit(memory.search, QUESTION), pool.submit(second)]
            results = [answer.result() for answer in answers]

    assert [result.notes.degraded for result in results] == [(), ()]
    assert all(result.timings_ms.opening >= 60_000 for result in results)


class SlowEncoder:
    """A sentence encoder that takes a minute to load."""

    name = "slow"

    def __init__(self, time: Time) -> None:
        self._time = time

    def fingerprint(self) -> str:
        self._time.now += MINUTE
        return "one"

    def prompts(self) -> Prompts:
        return Prompts("", "")

    def pooling(self) -> str:
        return "mean"

    def load(self) -> None:
        self._time.now += MINUTE

    def encode(self, text: str) -> Vectors:
        return np.array([3.0, 4.0], np.float32)


def test_loading_a_sentence_encoder_is_no_time_of_the_query(time: Time) -> None:
    embedder = EncoderEmbedder(SlowEncoder(time), StaticEmbedder())
    begin = clock.query_ns()
    embedder.embed_query("text")

    assert embedder.model_id.startswith("slow-")
    assert clock.query_ns() - begin < 1_000_000


class SlowReader:
    """A cross-encoder that takes a minute to load and reads the rest in no time."""

    def __init__(self, time: Time) -> None:
        self._time = time

    def load(self) -> None:
        self._time.now += MINUTE

    def logits(self, query: str, texts: Any) -> Column:
        return np.zeros(len(texts))


def test_loading_a_cross_encoder_leaves_time_to_read_everything(time: Time) -> None:
    guarded = GuardedCrossEncoder(SlowReader(time))

    relevance = guarded.score("query", ["text"] * 20, clock.query_ns() + 1_000_000_000)

    assert isinstance(relevance, np.ndarray)
    np.testing.assert_allclose(relevance, 0.5)


class Counted:
    """Counts how often its value was computed, while another thread asks for it too."""

    def __init__(self) -> None:
        self.door = Door()
        self.guard = cast("RLock", self.door)
        self.times = 0

    @Lazy
    def value(self) -> object:
        self.times += 1
        assert self.door.waited_for.wait(60)
        return object()


def test_what_threads_share_is_made_once() -> None:
    counted = Counted()
    with ThreadPoolExecutor(2) as pool:
        one, other = [pool.submit(lambda: counted.value) for _ in range(2)]

        assert one.result() is other.result()
    assert counted.times == 1


def test_an_answer_says_that_its_words_came_from_the_file_and_is_the_same_otherwise(workspace: Path) -> None:
    with open_memory(workspace) as memory:
        cold = memory.search(QUESTION, now=2e9)
        memory.models.load_vectors()
        warm = memory.search(QUESTION, now=2e9)

    assert cold.as_json()["notes"].pop("words_from") == "file"
    assert "words_from" not in warm.as_json()["notes"]
    assert [(row.id, row.score) for row in cold.results] == [(row.id, row.score) for row in warm.results]
    assert cold.notes.warnings == warm.notes.warnings
