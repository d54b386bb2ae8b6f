"""`python -m bench.ageing`: lives the years, asks the queries and prints what each signal does.

Years are kept below `--work` and not lived again; each moment of them is a dataset for `eval run --dataset` too.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.ageing import checkpoint
from bench.ageing.measure import Figures, measured
from bench.ageing.project import REGIMES
from bench.ageing.report import compared, lines
from bench.ageing.variants import SCALE, VARIANTS, Variant
from bench.ageing.year import Year

AGAINST = {variant.name: variant.against for variant in VARIANTS}


def lived(
    which: tuple[str, int], work: Path, moments: Sequence[float], size: int, days: int, queries: int
) -> list[Path]:
    """The folders of the moments of a year, which is lived unless it was before."""
    regime, seed = which
    whole = work / f"{regime}-{seed}-{size}-{days}-{queries}"
    wanted = [whole / str(int(days * share)) for share in moments]
    if not all((folder / checkpoint.ABOUT).exists() for folder in wanted):
        shutil.rmtree(whole, ignore_errors=True)
        with TemporaryDirectory(prefix="ageing-year-") as root:
            year = Year(REGIMES[regime], Path(root), seed, size, days, queries)

            def at(moment: Any) -> None:
                checkpoint.write(whole / str(moment.day), Path(root), regime, seed, moment)
                print(f"{regime} {seed}: day {moment.day}, {len(moment.queries)} queries", file=sys.stderr, flush=True)

            year.live([int(folder.name) for folder in wanted], at)
    return wanted


def asked(
    which: tuple[str, int],
    work: Path,
    moments: Sequence[float],
    last: bool,
    size: int,
    days: int,
    queries: int,
    variants: Sequence[Variant],
) -> tuple[list[dict[str, Figures]], dict[str, int]]:
    """The figures of each moment of a year, and what had happened at its end."""
    found = [checkpoint.read(folder) for folder in lived(which, work, moments, size, days, queries)]
    judged = found[-1:] if last else found
    figures = [measured(moment, variants, moment.folder / "figures.json") for moment in judged]
    print(f"{which[0]} {which[1]}: measured", file=sys.stderr, flush=True)
    return figures, dict(found[-1].events)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table, and writes all figures to `--out`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--regimes", nargs="+", choices=list(REGIMES), default=list(REGIMES))
    parser.add_argument("--size", type=int, default=60, help="components of a project")
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--queries", type=int, default=70, help="judged queries at each moment, at most")
    parser.add_argument(
        "--moments", type=float, nargs="+", default=[0.5, 0.99], help="when queries are judged, in years"
    )
    parser.add_argument("--last", action="store_true", help="measure the last of these moments alone")
    parser.add_argument(
        "--variants", nargs="+", choices=list(AGAINST), default=list(AGAINST), metavar="NAME",
        help="these alone, corrected as a family of their own",
    )  # fmt: skip
    parser.add_argument("--jobs", type=int, default=1, help="years at a time")
    parser.add_argument("--work", type=Path, default=Path(".ageing"), help="where years are kept")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args(arguments)
    which = [(regime, seed) for regime in chosen.regimes for seed in chosen.seeds]
    against = {name: other for name, other in AGAINST.items() if name in {SCALE, *chosen.variants}}
    ask = partial(
        asked,
        work=chosen.work,
        moments=chosen.moments,
        last=chosen.last,
        size=chosen.size,
        days=chosen.days,
        queries=chosen.queries,
        variants=[variant for variant in VARIANTS if variant.name in against],
    )
    if chosen.jobs > 1:
        with ProcessPoolExecutor(chosen.jobs) as pool:
            found = list(pool.map(ask, which))
    else:
        found = list(map(ask, which))
    by_year = dict(zip(which, found, strict=True))
    report = {
        regime: compared({seed: by_year[regime, seed][0] for seed in chosen.seeds}, against)
        | {"events": {seed: by_year[regime, seed][1] for seed in chosen.seeds}}
        for regime in chosen.regimes
    }
    print("\n".join(lines(report)))
    if chosen.out:
        chosen.out.write_text(json.dumps(report, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
