"""Measures what the console script runs: it leaves matrix products in one thread, before numpy is imported."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench.one_thread import one_thread

if TYPE_CHECKING:
    from bench.floor import Floor
    from bench.synthetic import Corpus
    from speckit_memory.engine import Memory

TRIES = 5
"""So many memories make each search; the quickest of them counts."""

one_thread()


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Corpus]:
    """The file of a store with 10,000 memories, and the corpus that asks it."""
    from bench.synthetic import build

    return build(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="session")
def floor(store: tuple[Path, Corpus]) -> Iterator[Floor]:
    """The least that a search of that store can do."""
    from bench.floor import Floor
    from speckit_memory.engine import Memory

    with Memory.open(store[0], "default", root=store[0].parent, environ={}, shadows=False) as memory:
        yield Floor(memory)


@pytest.fixture(scope="module", params=["default", "catalogue"])
def memories(store: tuple[Path, Corpus], request: pytest.FixtureRequest) -> Iterator[list[Memory]]:
    """Memories that have opened the store each for itself, and share nothing that a query has left behind."""
    from bench.settling import settle
    from speckit_memory.engine import Memory

    with ExitStack() as opened:
        several = [opened.enter_context(Memory.open(store[0], request.param)) for _ in range(TRIES)]
        queries = store[1].queries("complex", 20)
        for memory in several:
            settle(memory, queries)
        gc.collect()
        gc.freeze()  # or collections would go through all that several memories and the tests hold
        yield several
        gc.unfreeze()
