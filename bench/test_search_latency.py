"""Latency of whole searches at 10,000 memories, per complexity and stage (feature P10).

Limits are held to processor time of this thread: a search runs in one thread and waits for nothing but the processor,
so on an idle machine the two are the same, and on a busy one only processor time speaks of us. Even that grows, to the
double, when other programs take memory bandwidth and caches. So each search is made by several memories that have not
met its query before and counts as the quickest of them; and a yardstick, measured between the searches, tells by how
much the machine is slower than an idle one.
"""

from __future__ import annotations

import ast
import inspect
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.synthetic import Corpus, build
from speckit_memory.engine import Memory

QUERIES = 60
TRIES = 3
LIMITS_MS = {
    "default": {"simple": 12.0, "moderate": 20.0, "complex": 40.0},
    "catalogue": {"simple": 30.0, "moderate": 100.0, "complex": 300.0},
}
"""The default pipeline is held to its aims, except that the aim for simple queries is 10, and the catalogue's to the
budgets."""
YARDSTICK_MS = 2.0
"""What the yardstick takes on the machine that the limits are meant for, where a simple search takes about 7 ms.
Measured between searches: 3.8 where simple ones took 13.6 ms, and 5.1 where they took 19.3."""
OVERHEAD_SHARE = 0.2
"""The frame's own part of a search, as a ratio, which does not depend on how busy the machine is; 1 ms is the aim."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Corpus]:
    return build(tmp_path_factory.mktemp("search"))


@pytest.fixture(scope="module", params=["default", "catalogue"])
def memories(store: tuple[Path, Corpus], request: pytest.FixtureRequest) -> Iterator[list[Memory]]:
    """Memories that have opened the store each for itself, and share nothing that a query has left behind."""
    with ExitStack() as opened:
        several = [opened.enter_context(Memory.open(store[0], request.param)) for _ in range(TRIES)]
        for memory, query in product(several, store[1].queries("complex", 3)):
            memory.search(query, deadline_ms=None)
        yield several


class Yardstick:
    """Work like that of a search which does not change with the product: one product with a large matrix, Python
    objects and small arrays by the hundred, and much code that runs once each, as the parsing of a module does. The
    last is what a neighbour who empties the caches slows down most, as it does a search."""

    def __init__(self) -> None:
        self._rows = np.random.default_rng(0).random((17_000, 256), dtype=np.float32)
        self._ids = np.arange(10_000)
        self._source = Path(inspect.__file__).read_text(encoding="utf-8")[:6_000].rpartition("\n\n\n")[0]

    def measure(self) -> float:
        """Milliseconds of processor time."""
        begin = time.thread_time()
        self._rows @ self._rows[0]
        for number in range(300):
            part = self._ids[number : number + 100]
            np.flatnonzero(part[::-1] > number + 50)
            {id_: str(id_) for id_ in part[:10].tolist()}
        ast.unparse(ast.parse(self._source))
        return (time.thread_time() - begin) * 1000


@pytest.mark.parametrize("complexity", ["simple", "moderate", "complex"])
def test_p95_of_a_complexity_is_inside_its_limit(
    benchmark: Any, memories: list[Memory], store: tuple[Path, Corpus], complexity: str
) -> None:
    pipeline = memories[0].pipeline
    limit = LIMITS_MS[pipeline.name][complexity]
    searches = product(memories, store[1].queries(complexity, QUERIES))
    yardstick = Yardstick()
    spent, overhead, yardsticks = [], [], []
    stages: dict[str, list[float]] = {}

    def search() -> None:
        memory, query = next(searches)
        begin = time.thread_time()
        result = memory.search(query, deadline_ms=None)
        spent.append((time.thread_time() - begin) * 1000)
        yardsticks.append(yardstick.measure())
        trace = result.outcome.trace
        overhead.append((trace.total_ns - sum(record.ns for record in trace.steps)) / 1e6)
        for stage, ns in trace.stage_ns.items():
            stages.setdefault(stage, []).append(ns / 1e6)
        if any(step.id == "complexity" for step in pipeline.candidates.understand):
            assert result.plan.complexity == complexity

    benchmark.pedantic(search, rounds=TRIES * QUERIES, iterations=1)

    quickest = np.reshape(spent, (TRIES, QUERIES)).min(axis=0)
    slowdown = max(1.0, float(np.median(yardsticks)) / YARDSTICK_MS)
    p95 = float(np.percentile(quickest, 95))
    benchmark.extra_info |= {
        "pipeline": pipeline.name,
        "p50_ms": round(float(np.median(quickest)), 2),
        "p95_ms": round(p95, 2),
        "limit_ms": limit,
        "slowdown": round(slowdown, 2),
        "all_p50_ms": round(float(np.median(spent)), 2),
        "all_p95_ms": round(float(np.percentile(spent, 95)), 2),
        "runner_ms": round(float(np.median(overhead)), 3),
        **{f"{stage}_ms": round(float(np.median(values)), 2) for stage, values in stages.items()},
    }
    print(benchmark.extra_info)
    assert p95 < limit * slowdown
    assert float(np.median(overhead)) < OVERHEAD_SHARE * float(np.median(spent))
