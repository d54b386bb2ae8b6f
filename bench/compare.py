"""What a change costs or saves at each step of default searches, against a stored measurement.

`python -m bench.compare` measures searches of 10,000 memories (bench/steps.py), shows them beside `bench/baseline.json`
and ends with 1 where a step or the whole became slower than chance explains (bench/comparing.py). `--save` stores what
was measured instead. Figures are multiples of the floor, and those depend on the kind of processor: a baseline of
another one is shown, and nothing is held against it.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bench.one_thread import one_thread

if TYPE_CHECKING:
    from bench.comparing import Change
    from bench.steps import Costs

BASELINE = Path(__file__).parent / "baseline.json"
_DECIMALS = 4


def machine() -> str:
    """What multiples of the floor depend on."""
    import numpy as np

    model = ""
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    python = ".".join(platform.python_version_tuple()[:2])
    return f"{model or platform.machine()}, Python {python}, numpy {np.__version__}"


def save(costs: Costs, file: Path) -> None:
    """Writes a measurement, a line for each step."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    ).stdout.strip()
    steps = [
        f"    {json.dumps(f'{complexity} / {step}')}: {json.dumps([round(value, _DECIMALS) for value in values])}"
        for complexity, of_steps in costs.items()
        for step, values in of_steps.items()
    ]
    head = f'{{\n  "machine": {json.dumps(machine())},\n  "after_commit": {json.dumps(commit)},\n  "floors": {{\n'
    file.write_text(head + ",\n".join(steps) + "\n  }\n}\n", encoding="utf-8")


def stored(file: Path) -> tuple[str, Costs]:
    """The machine of a stored measurement, and what was measured."""
    content = json.loads(file.read_text(encoding="utf-8"))
    costs: Costs = {}
    for name, values in content["floors"].items():
        complexity, _, step = name.partition(" / ")
        costs.setdefault(complexity, {})[step] = values
    return content["machine"], costs


def report(changes: Sequence[Change]) -> str:
    """A table of all steps, in floors."""
    from speckit_memory.server.console.output import table

    rows = [("query", "step", "before", "now", "change", "")]
    for change in changes:
        moved = change.after / change.before - 1 if change.before and change.after is not None else None
        said = "" if change.verdict == "as before" else change.verdict
        rows.append((change.complexity, change.step, _floors(change.before), _floors(change.after),
                     "–" if moved is None else f"{moved:+.0%}", said))  # fmt: skip
    return table(rows, right=(2, 3, 4), headed=True)


def _floors(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def main() -> int:
    """Measures, and shows or stores it. 0, or 1 where something became slower."""
    one_thread()
    from bench.comparing import MARGIN, STEP_MARGIN, compared
    from bench.steps import measure
    from bench.synthetic import Corpus, build

    parser = argparse.ArgumentParser(prog="python -m bench.compare", description="Searches against a stored baseline.")
    parser.add_argument("--baseline", type=Path, default=BASELINE, help="the stored measurement (default: %(default)s)")
    parser.add_argument("--save", action="store_true", help="store what is measured as the baseline")
    parser.add_argument("--store", type=Path, help="a memory.db of `python -m bench.synthetic`; built if not given")
    chosen = parser.parse_args()
    if not chosen.save and not chosen.baseline.is_file():
        parser.error(f"{chosen.baseline} is missing; --save writes it")
    with TemporaryDirectory() as folder:
        store = chosen.store or build(Path(folder))[0]
        costs = measure(store, Corpus())
    if chosen.save:
        save(costs, chosen.baseline)
        print(f"stored in {chosen.baseline}")
        return 0
    where, before = stored(chosen.baseline)
    changes = compared(before, costs)
    print(report(changes))
    if where != machine():
        print(f"The baseline is of another machine ({where}; here {machine()}): nothing is held against it.")
        return 0
    slower = [change for change in changes if change.verdict == "slower"]
    allowed = f"{MARGIN:.0%} of the whole and {STEP_MARGIN:.0%} of a step are allowed"
    print(f"{len(slower)} became slower ({allowed})." if slower else f"Nothing became slower ({allowed}).")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
