"""What queries of 10,000 characters that were made to be slow take at 10,000 memories (feature P10). The aim is 50 ms.

Most shapes reach the aim; all are held to a limit above it, because a machine that is busy slows them more than the
yardstick tells.

Processor time of the quickest of three memories that have not met the query, each with a store of its own, so that
nothing is known beforehand. A yardstick measured beside it tells by how much the machine is slower than an idle one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_queries import LENGTH, SHAPES

from bench.synthetic import Corpus, build
from bench.test_search_latency import YARDSTICK_MS, Yardstick
from speckit_memory.engine import Memory
from speckit_memory.errors import SpeckitError

AIM_MS = 50.0
LIMIT_MS = 90.0
TRIES = 3
YARDSTICKS = 5


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Corpus]:
    return build(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module", params=["default", "catalogue"])
def memories(store: tuple[Path, Corpus], request: pytest.FixtureRequest) -> Iterator[list[Memory]]:
    """Memories that have read the store and share nothing."""
    with ExitStack() as stack:
        several = [stack.enter_context(Memory.open(store[0], request.param)) for _ in range(TRIES)]
        for memory in several:
            for query in store[1].queries("complex", 3):
                memory.search(query, deadline_ms=None)
        yield several


@pytest.fixture(scope="module")
def yardstick() -> Yardstick:
    return Yardstick()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_query_made_to_be_slow_is_inside_the_limit(
    benchmark: Any, memories: list[Memory], store: tuple[Path, Corpus], yardstick: Yardstick, shape: str
) -> None:
    query = SHAPES[shape](list(map(str, store[1]._words)))
    assert len(query) <= LENGTH
    waiting = iter(memories)
    spent: list[float] = []
    yardsticks: list[float] = []

    def search() -> None:
        memory = next(waiting)
        begin = time.thread_time()
        with suppress(SpeckitError):  # too many letters, or none at all
            memory.search(query, deadline_ms=None)
        spent.append((time.thread_time() - begin) * 1000)
        yardsticks.extend(yardstick.measure() for _ in range(YARDSTICKS))

    benchmark.pedantic(search, rounds=TRIES, iterations=1)

    slowdown = max(1.0, float(np.median(yardsticks)) / YARDSTICK_MS)
    pipeline = memories[0].pipeline.name
    benchmark.extra_info |= {
        "pipeline": pipeline,
        "ms": round(min(spent), 1),
        "aim_ms": AIM_MS,
        "slowdown": round(slowdown, 2),
    }
    print(f"{shape} ({pipeline}): {min(spent):.1f} ms, aim {AIM_MS:.0f}, of {LIMIT_MS * slowdown:.0f} allowed here")
    if pipeline == "default":
        assert min(spent) < LIMIT_MS * slowdown
