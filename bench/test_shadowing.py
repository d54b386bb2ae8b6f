"""What a caller feels of pipelines that are compared with the one that is served, and measured beside it (features P4,
P10): at most a fiftieth of a search.

Queries come as an agent sends them, with a pause between, and one after the other without any. They are asked in
blocks, each with eight shadows and a dark run and twice without: what is felt of a variant stays in the block with
variants, and none is always the first to ask something. How far the two without are apart is what a machine does by
itself, without variants.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.stats import ttest_1samp

if TYPE_CHECKING:
    from bench.synthetic import Corpus

PAUSE_SECONDS = 0.06
ROUNDS = 18
BLOCK = 10
ALLOWED = 1.02
"""The median beside variants against the median without (docs/decisions/0100-shadows-are-replays.md)."""
SIGNIFICANCE = 0.01
"""The ratio is over the limit when the rounds say so with at most this chance of error, by a one-sided t test of their
logarithms: what a machine does in a second by itself moves one round by a fifth and more."""
SHADOWS = "[default, bm25, rrf, rsf, fts5, vector, catalogue]"
BESIDE = f"extends: default\nshadows: {SHADOWS}\ndark_runs: [{{use: bm25, name: dark}}]\n"


@pytest.mark.requirement("P10")
@pytest.mark.parametrize("pause", [PAUSE_SECONDS, 0.0])
def test_the_median_search_takes_hardly_longer_beside_variants(
    benchmark: Any, store: tuple[Path, Corpus], tmp_path: Path, pause: float
) -> None:
    from speckit_memory.engine import Memory

    file, corpus = store
    pipeline = tmp_path / "beside.yaml"
    pipeline.write_text(BESIDE)
    times: dict[str, list[float]] = {"alone": [], "again": [], "beside": []}
    with (
        Memory.open(file, "default", root=tmp_path, environ={}) as alone,
        Memory.open(file, "default", root=tmp_path, environ={}) as again,
        Memory.open(file, pipeline, root=tmp_path, environ={}) as beside,
    ):
        turns = list(zip(times, (alone, again, beside), strict=True))
        queries = [" ".join(corpus.words(4)) for _ in range(ROUNDS * BLOCK)]
        for _, memory in turns:
            for query in queries[:5]:
                memory.feedback.delivered(memory.search(query))

        def ask(number: int) -> None:
            first = number % len(turns)
            for name, memory in turns[first:] + turns[:first]:
                for query in queries[number * BLOCK : (number + 1) * BLOCK]:
                    begun = time.perf_counter()
                    result = memory.search(query)
                    times[name].append(time.perf_counter() - begun)
                    memory.feedback.delivered(result)
                    time.sleep(pause)

        rounds = iter(range(ROUNDS))
        benchmark.pedantic(lambda: ask(next(rounds)), rounds=ROUNDS, iterations=1)
        beside.feedback.write()
        waiting = {state.waiting for state in beside.shadows.list() if state.mode == "shadow"}

    medians = {name: np.median(np.reshape(taken, (ROUNDS, BLOCK)), axis=1) for name, taken in times.items()}
    ratios = np.log(medians["beside"]) - np.log((medians["alone"] + medians["again"]) / 2)
    chance = ttest_1samp(ratios, np.log(ALLOWED), alternative="greater").pvalue
    ratio = median(times["beside"]) / median(times["alone"] + times["again"])
    benchmark.extra_info["ratio"] = round(ratio, 3)
    said = ", ".join(f"{median(taken) * 1e3:.2f} ms {name}" for name, taken in times.items())
    print(f"median {said}, {ratio:.3f} (above {ALLOWED} with p {chance:.3f}); {waiting} wait")
    assert min(waiting) >= 3 * (len(queries) + 5)
    assert chance > SIGNIFICANCE
