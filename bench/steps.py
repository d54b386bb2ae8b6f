"""What each step of default searches takes, in multiples of the floor that was measured beside them.

Every query is asked by several memories that have not met it, and for each step the quickest of them counts. What a
search spends outside its steps is told as `frame` (the runner) and `answer` (everything around the pipeline), and the
whole as `search`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from bench.floor import Floor
from bench.settling import settle
from bench.synthetic import Corpus
from speckit_memory.engine import Memory
from speckit_memory.pipeline.process import clock

COMPLEXITIES = ("simple", "moderate", "complex")
WHOLE, FRAME, ANSWER = "search", "frame", "answer"
TRIES = 3
QUERIES = 60
AROUND = 7
"""Floors before and after a search that tell, by their median, how quick the machine was just then."""

Costs = dict[str, dict[str, list[float]]]
"""By complexity and step, a number for each query: so many floors."""


def measure(path: Path, corpus: Corpus, told: Callable[[str], None] = lambda _: None) -> Costs:
    """Costs of the default pipeline over a store. The same queries for a corpus that nothing was drawn from yet."""
    asked = {complexity: corpus.queries(complexity, QUERIES) for complexity in COMPLEXITIES}
    warming = corpus.queries("complex", 20)
    with ExitStack() as opened:
        # Steps are timed by the clock of queries; processor time of this thread says the same on a busy machine.
        opened.enter_context(patch.object(clock, "perf_counter_ns", time.thread_time_ns))
        memories = [
            opened.enter_context(Memory.open(path, "default", root=path.parent, environ={}, shadows=False))
            for _ in range(TRIES)
        ]
        floor = Floor(memories[0])
        for memory in memories:
            settle(memory, warming)
        costs: Costs = {}
        for complexity, queries in asked.items():
            told(complexity)
            tries = [_one_try(memory, floor, queries) for memory in memories]
            steps = dict.fromkeys(step for one in tries for step in one)
            costs[complexity] = {
                step: np.min([one.get(step, np.full(QUERIES, np.inf)) for one in tries], axis=0).tolist()
                for step in steps
            }
        return costs


def _one_try(memory: Memory, floor: Floor, queries: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    spent: dict[str, NDArray[np.float64]] = {}
    floors = []
    for number, query in enumerate(queries):
        question = floor.question(query)
        for step, milliseconds in _steps(memory, query).items():
            spent.setdefault(step, np.zeros(len(queries)))[number] = milliseconds
        floors.append(floor.measure(question))
    units = [float(np.median(floors[max(0, at - AROUND) : at + AROUND + 1])) for at in range(len(floors))]
    return {step: times / units for step, times in spent.items()}


def _steps(memory: Memory, query: str) -> dict[str, float]:
    """Milliseconds by step."""
    begin = time.thread_time_ns()
    trace = memory.search(query, deadline_ms=None).outcome.trace
    whole = time.thread_time_ns() - begin
    taken: dict[str, int] = {}
    for record in trace.steps:
        name = f"{record.stage}: {record.step}"
        taken[name] = taken.get(name, 0) + record.ns
    taken[FRAME] = trace.total_ns - sum(taken.values())
    taken[ANSWER] = max(0, whole - trace.total_ns)
    taken[WHOLE] = whole
    return {step: ns / 1e6 for step, ns in taken.items()}
