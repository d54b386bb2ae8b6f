"""No step of default searches became slower than the stored measurement says, and the comparison tells what is slower.

`python -m bench.compare` shows all steps; `--save` accepts what is measured.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from bench.compare import BASELINE, machine, report, save, stored

if TYPE_CHECKING:
    from bench.comparing import Verdict
    from bench.steps import Costs
    from bench.synthetic import Corpus


def test_no_step_became_slower(benchmark: Any, store: tuple[Path, Corpus]) -> None:
    from bench.comparing import compared
    from bench.steps import measure
    from bench.synthetic import Corpus

    where, before = stored(BASELINE)
    measured: list[Costs] = []
    benchmark.pedantic(lambda: measured.append(measure(store[0], Corpus())), rounds=1)
    changes = compared(before, measured[0])
    print(report(changes))
    if where != machine():
        pytest.skip(f"the baseline is of another machine: {where}; here {machine()}")
    assert [change for change in changes if change.verdict == "slower"] == []


@pytest.mark.parametrize(
    ("whole", "step", "verdicts"),
    [
        (1.0, 1.0, ("as before", "as before")),
        (1.15, 1.3, ("as before", "as before")),
        (1.6, 1.3, ("slower", "as before")),
        (1.15, 2.0, ("as before", "slower")),
        (0.5, 0.4, ("faster", "faster")),
    ],
)
def test_slower_is_what_no_chance_explains(
    benchmark: Any, whole: float, step: float, verdicts: tuple[Verdict, Verdict]
) -> None:
    """With noise of a fifth from query to query."""
    from bench.comparing import compared

    random = np.random.default_rng(3)

    def costs(whole: float, step: float, least: float) -> Costs:
        steps = {"search": 10.0 * whole, "candidates: bm25": 5.0 * step, "annotate: evidence_gap": 0.01 * least}
        return {"simple": {name: (cost * random.lognormal(0, 0.2, 60)).tolist() for name, cost in steps.items()}}

    changes = benchmark.pedantic(lambda: compared(costs(1.0, 1.0, 1.0), costs(whole, step, 3.0)), rounds=1)

    # a step that moves nothing of the whole may change as it likes
    assert [change.verdict for change in changes] == [*verdicts, "as before"]


def test_a_stored_measurement_is_read_as_it_was(benchmark: Any, tmp_path: Path) -> None:
    from bench.comparing import compared

    costs: Costs = {"simple": {"search": [2.0, 3.5], "fusion: fuse": [0.5, 0.25]}, "complex": {"search": [9.0, 8.0]}}
    file = tmp_path / "baseline.json"
    benchmark.pedantic(lambda: save(costs, file), rounds=1)

    assert stored(file) == (machine(), costs)
    later = {"simple": {"search": [2.0, 3.5], "fusion: other": [0.5, 0.25]}, "complex": {"search": [9.0, 8.0]}}
    told = {(change.step, change.verdict) for change in compared(costs, later)}
    assert {("fusion: fuse", "gone"), ("fusion: other", "new"), ("search", "as before")} == told
