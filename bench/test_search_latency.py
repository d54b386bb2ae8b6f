"""Latency of whole searches at 10,000 memories, per complexity and stage (feature P10).

Budgets are held to processor time of this thread: a search runs in one thread and waits for nothing but the processor,
so on an idle machine the two are the same, and on a busy one only processor time speaks of us.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.synthetic import Corpus, build
from engine import Memory

QUERIES = 60
BUDGETS_MS = {"simple": 30.0, "moderate": 100.0, "complex": 300.0}
AIMS_MS = {"simple": 10.0, "moderate": 20.0, "complex": 40.0}
"""What the default pipeline is meant to reach on an idle machine; reported, while the budgets are held."""
OVERHEAD_SHARE = 0.2
"""The frame's own part of a search, as a ratio, which does not depend on how busy the machine is; 1 ms is the aim."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Corpus]:
    return build(tmp_path_factory.mktemp("search"))


@pytest.fixture(scope="module", params=["default", "catalogue"])
def memory(store: tuple[Path, Corpus], request: pytest.FixtureRequest) -> Iterator[Memory]:
    with Memory.open(store[0], request.param) as opened:
        for query in store[1].queries("complex", 3):
            opened.search(query, deadline_ms=None)
        yield opened


@pytest.mark.parametrize("complexity", list(BUDGETS_MS))
def test_p95_of_a_complexity_is_inside_its_budget(
    benchmark: Any, memory: Memory, store: tuple[Path, Corpus], complexity: str
) -> None:
    queries = iter(store[1].queries(complexity, QUERIES))
    spent, overhead = [], []
    stages: dict[str, list[float]] = {}

    def search() -> None:
        begin = time.thread_time()
        result = memory.search(next(queries), deadline_ms=None)
        spent.append((time.thread_time() - begin) * 1000)
        trace = result.outcome.trace
        overhead.append((trace.total_ns - sum(record.ns for record in trace.steps)) / 1e6)
        for stage, ns in trace.stage_ns.items():
            stages.setdefault(stage, []).append(ns / 1e6)
        if any(step.id == "complexity" for step in memory.pipeline.candidates.understand):
            assert result.plan["complexity"] == complexity

    benchmark.pedantic(search, rounds=QUERIES, iterations=1)

    p95 = float(np.percentile(spent, 95))
    benchmark.extra_info |= {
        "pipeline": memory.pipeline.name,
        "p50_ms": round(float(np.median(spent)), 2),
        "p95_ms": round(p95, 2),
        "aim_ms": AIMS_MS[complexity],
        "runner_ms": round(float(np.median(overhead)), 3),
        **{f"{stage}_ms": round(float(np.median(values)), 2) for stage, values in stages.items()},
    }
    print(benchmark.extra_info)
    assert p95 < BUDGETS_MS[complexity]
    assert float(np.median(overhead)) < OVERHEAD_SHARE * float(np.median(spent))
