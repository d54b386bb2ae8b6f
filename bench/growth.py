"""How time, files and memory grow with the number of memories.

`python -m bench.growth --sizes 10000,100000 --out growth.json --plot growth.svg` writes a seeded store of each size
(bench/synthetic.py), asks it in fresh processes, and says with which power of the size each figure grows. A size that
the output has already is not measured again, and a store that is whole is not written again, so that it may be ended
and resumed. Memory is that of a second process beside a first one: what both have mapped is shared. A process's
own memory belongs to no file; the peak of it, where a store is written, is the largest of many looks. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from bench.one_thread import one_thread

ROOT = Path(__file__).parent.parent
BUILT = "built.json"
"""Beside a store that is whole: how long it took."""
LOOK_SECONDS = 0.05
"""Between two looks at the memory of who writes a store."""
Figures = dict[str, float]


def own_bytes(process: int) -> int:
    """What a process holds in memory that belongs to no file; 0 for one that has ended."""
    for line in Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def built(folder: Path, memories: int) -> Figures:
    """What writing the store takes; what it took, if it is there. What was left of an unfinished one is deleted."""
    note = folder / BUILT
    if not note.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.glob("memory.db*"):
            file.unlink()
        begun = time.monotonic()
        arguments = [sys.executable, "-m", "bench.synthetic", str(folder), "--memories", str(memories)]
        process = subprocess.Popen(arguments, cwd=ROOT)
        ended, own = 0, 0
        while not ended:
            own = max(own, own_bytes(process.pid))
            time.sleep(LOOK_SECONDS)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"writing {memories:,} memories failed with {process.returncode}")
        seconds = time.monotonic() - begun
        figures = {
            "index_seconds": seconds,
            "index_rate": memories / seconds,
            "index_processor_seconds": usage.ru_utime + usage.ru_stime,
            "index_peak_bytes": usage.ru_maxrss * 1024,
            "index_peak_anonymous_bytes": own,
        }
        note.write_text(json.dumps(figures), encoding="utf-8")
    found: Figures = json.loads(note.read_text(encoding="utf-8"))
    return found


def sizes_of_files(store: Path) -> Figures:
    """Bytes of the store, and of the files beside it that searches read instead."""
    beside = store.with_name(store.name + ".segments")
    segments = sum(file.stat().st_size for file in beside.rglob("*") if file.is_file()) if beside.is_dir() else 0
    return {"store_bytes": store.stat().st_size, "segments_bytes": segments}


def asked(store: Path, memories: int) -> Figures:
    """What the second of two processes over the store says of itself."""
    arguments = [sys.executable, "-m", "bench.growth_probe", str(store), str(memories)]
    with (
        subprocess.Popen(arguments, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first,
        first.stdout,  # type: ignore[union-attr]  # a pipe was asked for
    ):
        first.stdout.readline()  # type: ignore[union-attr]
        second = subprocess.run(arguments, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        first.communicate()
    found: Figures = json.loads(second.stdout)
    return found


def in_floors(store: Path, memories: int) -> Figures:
    """What searches take in multiples of the floor, which holds all words of the store in memory."""
    arguments = [sys.executable, "-m", "bench.growth_floors", str(store), str(memories)]
    found: Figures = json.loads(subprocess.run(arguments, cwd=ROOT, capture_output=True, check=True).stdout)
    return found


def exponents(figures: dict[int, Figures]) -> Figures:
    """With which power of the size each figure grows: the slope of its logarithm; from two sizes on."""
    import numpy as np

    if len(figures) < 2:
        return {}
    sizes = np.log(sorted(figures))
    values = {name: [figures[size].get(name, 0.0) for size in sorted(figures)] for name in next(iter(figures.values()))}
    return {
        name: float(np.polyfit(sizes, np.log(of_sizes), 1)[0]) for name, of_sizes in values.items() if min(of_sizes) > 0
    }


def main() -> None:
    """Measures each size and writes what is known after each."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description="How figures grow with the store.")
    parser.add_argument("--sizes", default="10000,100000", help="numbers of memories (default: %(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="JSON file with all figures; read again to resume")
    parser.add_argument("--plot", type=Path, help="SVG file")
    parser.add_argument(
        "--floors", type=int, default=300_000, help="up to this size searches are held to the floor (%(default)s)"
    )
    parser.add_argument("--stores", type=Path, help="folder for the stores, kept (default: beside --out)")
    chosen = parser.parse_args()
    one_thread()
    known = json.loads(chosen.out.read_text(encoding="utf-8"))["sizes"] if chosen.out.exists() else {}
    figures: dict[int, Figures] = {int(size): values for size, values in known.items()}
    stores = chosen.stores or chosen.out.with_suffix(".stores")
    for size in map(int, chosen.sizes.split(",")):
        if size not in figures:
            folder = (stores / str(size)).resolve()
            took = built(folder, size)
            figures[size] = took | sizes_of_files(folder / "memory.db") | asked(folder / "memory.db", size)
        if size <= chosen.floors and "simple_floor_ms" not in figures[size]:
            figures[size] |= in_floors((stores / str(size)).resolve() / "memory.db", size)
        said = {"sizes": {str(size): figures[size] for size in sorted(figures)}, "exponents": exponents(figures)}
        chosen.out.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    for name, exponent in exponents(figures).items():
        print(f"{name}: grows with the power {exponent:.2f} of the size")
    if chosen.plot:
        from bench.growth_plot import draw

        draw(figures, chosen.plot)


if __name__ == "__main__":
    main()
