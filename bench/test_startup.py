"""Start-up: the first MCP answer costs little more than importing the SDK, and the first search little more than
importing what it needs (feature T27).

Whole processes are measured, several of each kind in turns, and compared as ratios. It is processor time: start-up runs
in one thread and waits for nothing, so on an idle machine the two are the same, and on a busy one only processor time
says anything about us. Elapsed time is printed beside it. One process takes up to half as much again as the next one of
its kind, so that the ratio to the SDK is above its limit where a t test over the turns says so at 1 %.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import ttest_1samp

if TYPE_CHECKING:
    from bench.synthetic import Corpus

COMMAND = Path(sys.executable).parent / "speckit-memory"
RUNS = 7
TURNS = 15
"""So many of each kind where a difference of a few hundredths matters."""
SIGNIFICANCE = 0.01
OF_THE_SDK = 1.2
"""The first answer of a server, so many times the import of the SDK; that and 100 ms are the aim."""
OF_A_PLAIN_PROCESS = 2.0
"""The first search of 10,000 memories, without the interpreter and imports, so many times a process that only starts
and imports numpy and apsw (decision 0057). It was 0.58 on an idle machine and 1.26 beside two processes that tested;
the aim is 0.5: tighten it when that is reached."""
IMPORTING = """
import contextlib, gc, sys
gc.disable()
for name in sys.argv[1:]:
    with contextlib.suppress(ImportError):  # optional ones, that the search went without
        __import__(name)
print()
"""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}


class Cost(NamedTuple):
    """Seconds of one process: until its first line, and of processor time altogether."""

    elapsed: float
    processor: float


def _environment(folder: Path) -> dict[str, str]:
    # as an installation has it: with the bytecode of all modules
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**environ, "SPECKIT_ROOT": str(folder), "SPECKIT_DB": str(folder / "memory.db")}


def _cost(arguments: list[str | Path], sent: bytes, folder: Path) -> tuple[Cost, bytes]:
    """Starts a process, sends it a line, waits for its first line, and lets it end."""
    started = time.perf_counter()
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment(folder)
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(sent)
        process.stdin.flush()
        line = process.stdout.readline()
        elapsed = time.perf_counter() - started
        process.stdin.close()
        process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
    return Cost(elapsed, usage.ru_utime + usage.ru_stime), line


def _sdk_import(folder: Path) -> Cost:
    code = "import os, mcp.server.mcpserver; print('imported', flush=True); os._exit(0)"
    cost, line = _cost([sys.executable, "-c", code], b"", folder)
    assert line == b"imported\n"
    return cost


def _first_answer(folder: Path) -> Cost:
    cost, line = _cost([COMMAND, "serve"], json.dumps(INITIALIZE).encode() + b"\n", folder)
    assert json.loads(line)["result"]["serverInfo"]["name"] == "speckit-memory"
    return cost


def _usage(folder: Path) -> Cost:
    cost, line = _cost([COMMAND, "search", "--help"], b"", folder)
    assert line.startswith(b"Usage: speckit-memory search")
    return cost


def _plain(folder: Path) -> Cost:
    cost, _ = _cost([sys.executable, "-c", "import numpy, apsw; print()"], b"", folder)
    return cost


def _search(question: str) -> list[str | Path]:
    return [COMMAND, "search", question, "--json"]


def _first_search(question: str, folder: Path) -> Cost:
    cost, line = _cost(_search(question), b"", folder)
    assert line.startswith(b"{")
    return cost


def _imported(question: str, folder: Path) -> list[str]:
    """The names of all modules that a search imports, in that order."""
    told = subprocess.run(
        [sys.executable, "-X", "importtime", *_search(question)],
        env=_environment(folder), capture_output=True, text=True, check=True,
    ).stderr  # fmt: skip
    lines = [
        line.split("|") for line in told.splitlines() if line.startswith("import time:") and "cumulative" not in line
    ]
    return [parts[-1].strip() for parts in lines]


def _imports(modules: list[str], folder: Path) -> Cost:
    cost, _ = _cost([sys.executable, "-c", IMPORTING, *modules], b"", folder)
    return cost


def _in_turns(turns: int, folder: Path, *kinds: Callable[[Path], Cost]) -> list[list[Cost]]:
    """The costs of each turn, in the order of the kinds."""
    for kind in kinds:
        kind(folder)  # the file system's cache is warm for all of them
    return [[kind(folder) for kind in kinds] for _ in range(turns)]


def _medians(rounds: list[list[Cost]]) -> list[Cost]:
    return [Cost(*(median(values) for values in zip(*column, strict=True))) for column in zip(*rounds, strict=True)]


@pytest.mark.requirement("T27")
def test_the_first_answer_costs_little_more_than_importing_the_sdk(benchmark: Any, tmp_path: Path) -> None:
    rounds: list[list[Cost]] = []
    kinds = (_sdk_import, _first_answer, _usage)
    benchmark.pedantic(lambda: rounds.extend(_in_turns(TURNS, tmp_path, *kinds)), rounds=1)
    sdk, answer, usage = _medians(rounds)
    for name, cost in (("SDK import", sdk), ("first answer", answer), ("search --help", usage)):
        print(f"{name}: {cost.processor * 1000:.0f} ms of processor time, {cost.elapsed * 1000:.0f} ms elapsed")
    ratios = np.log([turn[1].processor / turn[0].processor for turn in rounds])
    chance = ttest_1samp(ratios, np.log(OF_THE_SDK), alternative="greater").pvalue
    times = float(np.exp(ratios.mean()))
    benchmark.extra_info |= {"times": round(times, 3), "chance": round(float(chance), 4)}
    print(f"{times:.3f} times the import, above {OF_THE_SDK} with p {chance:.3f}")
    assert chance > SIGNIFICANCE
    assert usage.processor <= sdk.processor


@pytest.mark.requirement("T27")
def test_the_first_search_costs_a_bounded_multiple_of_a_plain_process(
    benchmark: Any, store: tuple[Path, Corpus]
) -> None:
    folder, question = store[0].parent, store[1].queries("moderate", 1)[0]
    modules = _imported(question, folder)
    kinds = (_plain, partial(_imports, modules), partial(_first_search, question))
    rounds: list[list[Cost]] = []
    benchmark.pedantic(lambda: rounds.extend(_in_turns(RUNS, folder, *kinds)), rounds=1)
    plain, imports, search = _medians(rounds)
    times = (search.processor - imports.processor) / plain.processor
    benchmark.extra_info |= {"times": round(times, 2), "modules": len(modules)}
    for name, cost in (("plain process", plain), (f"{len(modules)} imports", imports), ("first search", search)):
        print(f"{name}: {cost.processor * 1000:.0f} ms of processor time, {cost.elapsed * 1000:.0f} ms elapsed")
    print(f"{times:.2f} plain processes, {OF_A_PLAIN_PROCESS} allowed")
    assert times < OF_A_PLAIN_PROCESS
