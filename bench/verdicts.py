"""How often verdicts are wrong, how often intervals miss, and how often a difference is shown: by simulation.

    python -m bench.verdicts [--runs 500]

Every column of differences is drawn with a known mean, and judged by what `eval compare` and a shadow report judge by.
The figures stand in docs/decisions/0102-one-bet-for-every-verdict.md.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from speckit_memory.evaluation.experiments.experiment_evidence import MetricEvidence
from speckit_memory.evaluation.experiments.experiment_quality import qualities
from speckit_memory.evaluation.experiments.experiment_report import QualityDifference
from speckit_memory.evaluation.statistics import comparison, sequential
from speckit_memory.evaluation.statistics.comparison import ALPHA
from speckit_memory.pipeline.ports import Column

Draw = Callable[[np.random.Generator, int, float], Column]
"""So many differences of a given mean."""

Judged = comparison.Comparison | QualityDifference

METRICS = comparison.COMPARED_METRICS
VARIANTS = 8


def symmetric(rng: np.random.Generator, n: int, mean: float) -> Column:
    """Half of the queries differ a little, either way; more of them one way where the mean is not 0."""
    size = np.where(rng.random(n) < 0.5, rng.beta(1, 3, n), 0.0)
    drawn: Column = np.where(rng.random(n) < 0.5 + mean / 0.25, size, -size)
    return drawn


def rare(rng: np.random.Generator, n: int, mean: float) -> Column:
    """Two queries in a hundred differ by 1 where the mean is 0; else so many more gain, or lose, as it takes."""
    return rng.choice([1.0, -1.0, 0.0], n, p=[0.01 + max(mean, 0), 0.01 + max(-mean, 0), 0.98 - abs(mean)])


def lost(rng: np.random.Generator, n: int, mean: float) -> Column:
    """Nothing differs but what is lost, or gained, altogether."""
    return np.where(rng.random(n) < abs(mean), np.sign(mean), 0.0)


def skewed(rng: np.random.Generator, n: int, mean: float) -> Column:
    """One in ten is much better, half are a little worse."""
    return rng.choice([0.5, -0.1, 0.0], n, p=[0.1 + 2 * mean, 0.5, 0.4 - 2 * mean])


def very_skewed(rng: np.random.Generator, n: int, mean: float) -> Column:
    """One in fifty is much better, all others a little worse."""
    return rng.choice([0.98, -0.02], n, p=[0.02 + mean, 0.98 - mean])


def judged(columns: dict[str, dict[str, Column]]) -> tuple[comparison.Comparison, ...]:
    """Every variant against a control of 0, as one report."""
    zeros = np.zeros(len(next(iter(columns.values()))[METRICS[0]]))
    values = {"control": dict.fromkeys(METRICS, zeros), **columns}
    return comparison.compare(values, [("control", name) for name in columns])


def single(draw: Draw, rng: np.random.Generator, n: int, mean: float = 0.0) -> tuple[comparison.Comparison, ...]:
    """One variant, both metrics from the same queries."""
    column = draw(rng, n, mean)
    return judged({"variant": dict.fromkeys(METRICS, column)})


def family(draw: Draw, rng: np.random.Generator, n: int) -> tuple[comparison.Comparison, ...]:
    """Several variants that are all equal to the control."""
    return judged({str(number): {metric: draw(rng, n, 0.0) for metric in METRICS} for number in range(VARIANTS)})


def live(draw: Draw, rng: np.random.Generator, n: int) -> bool:
    """Whether a shadow report on several variants, all equal to the control, calls any different."""
    entries = [
        [MetricEvidence("judgements", metric, draw(rng, n, 0.0), 0, 0) for metric in METRICS] for _ in range(VARIANTS)
    ]
    return wrong([one for found in entries for one in qualities(found, variants=VARIANTS)])


def wrong(found: Sequence[Judged]) -> bool:
    """Whether any of equal pipelines is called better or worse."""
    return any(one.verdict in ("better", "worse") for one in found)


def missed(found: Sequence[Judged]) -> bool:
    """Whether any interval leaves out a mean of 0."""
    return any(not one.ci95[0] <= 0.0 <= one.ci95[1] for one in found)


def peeked(draw: Draw, rng: np.random.Generator) -> bool:
    """Whether a comparison that is read ten times on the way to 500 queries is ever wrong."""
    column = draw(rng, 500, 0.0)
    return any(wrong(judged({"variant": dict.fromkeys(METRICS, column[:seen])})) for seen in range(50, 501, 50))


def report(runs: int) -> Iterator[str]:
    """The tables, line by line."""
    rng = np.random.default_rng(20)
    yield "| differences of mean 0 | one | read ten times | 8 variants | 8 live ones | an interval misses: one | of 8 |"
    yield "|---|---|---|---|---|---|---|"
    for draw in (symmetric, rare, skewed, very_skewed):
        alone = [single(draw, rng, 300) for _ in range(runs)]
        together = [family(draw, rng, 300) for _ in range(runs)]
        cells = [
            share(wrong(found) for found in alone),
            share(peeked(draw, rng) for _ in range(runs)),
            share(wrong(found) for found in together),
            share(live(draw, rng, 300) for _ in range(runs)),
            share(missed(found) for found in alone),
            share(missed(found) for found in together),
        ]
        yield f"| {draw.__name__} | {' | '.join(cells)} |"

    yield ""
    yield "| a loss of 0.01 is called the same | 65 queries | 300 | 1,000 | 3,000 |"
    yield "|---|---|---|---|---|"
    for draw in (lost, symmetric, rare, skewed):
        cells = [
            share(single(draw, rng, n, -0.01)[0].verdict == "same" for _ in range(runs))
            for n in (65, 300, 1_000, 3_000)
        ]
        yield f"| {draw.__name__} | {' | '.join(cells)} |"

    yield ""
    yield "| true difference | queries needed | shown by so many | by half | by 300 | wrong direction |"
    yield "|---|---|---|---|---|---|"
    for draw in (symmetric, rare, skewed):
        for mean in (0.02, 0.05):
            needed = sequential.queries_needed(draw(rng, 50_000, mean), alpha=ALPHA / len(METRICS), margin=None) or 0
            verdicts = [
                [single(draw, rng, n, mean)[0].verdict for _ in range(runs)] for n in (needed, needed // 2, 300)
            ]
            cells = [f"{draw.__name__} {mean}", f"{needed:,}"]
            cells += [share(one == "better" for one in found) for found in verdicts]
            cells += [share(one == "worse" for found in verdicts for one in found)]
            yield f"| {' | '.join(cells)} |"


def share(told: Iterable[bool]) -> str:
    """How many of them are true."""
    return f"{np.mean(list(told)):.1%}"


def main() -> None:
    """Prints the tables."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    for line in report(parser.parse_args().runs):
        print(line, flush=True)


if __name__ == "__main__":
    main()
