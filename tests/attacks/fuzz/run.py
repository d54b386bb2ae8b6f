"""Runs targets in rounds: every round is a seeded search of Hypothesis, and the clock is looked at between rounds.

The same seed gives the same inputs in the same order, however fast the machine is; time decides how many there are.
"""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.internal.conjecture import engine
from tally import Tally

from tests.attacks.fuzz import documents, lives, queries, stores, tools, yaml_files
from tests.attacks.fuzz.target import Target

TARGETS = {
    target.name: target
    for target in (
        documents.TARGET,
        yaml_files.PIPELINES,
        yaml_files.SETTINGS,
        queries.TARGET,
        tools.TARGET,
        tools.PROCESSES,
        stores.TARGET,
        lives.TARGET,
    )
}
engine.MAX_SHRINKING_SECONDS = 60  # five minutes are too long where an input takes a second
CPU_SECONDS = 30
"""Of processor time that one input may take: thousands of times what an ordinary one does."""


class TooSlowError(AssertionError):
    """An input took more processor time than any should."""


@dataclass
class Fuzzed:
    """What became of a target: its counts, and the smallest input that broke a promise."""

    target: Target
    tally: Tally = field(default_factory=Tally)
    rounds: int = 0
    broken: Any = None
    why: str = ""


@contextmanager
def bounded() -> Iterator[None]:
    """Raises TooSlowError after `CPU_SECONDS` of processor time of this process."""

    def stop(*_: object) -> None:
        raise TooSlowError(f"more than {CPU_SECONDS} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def tried(target: Target, case: Any, tally: Tally) -> None:
    """One input."""
    with bounded():
        target.check(case, tally)


def search(fuzzed: Fuzzed, number: int, examples: int) -> bool:
    """One round; whether every input kept the promises. `number` decides which inputs there are."""
    last: list[Any] = []
    phases = (Phase.generate, Phase.shrink) if fuzzed.target.shrinks else (Phase.generate,)

    @seed(number)
    @settings(
        max_examples=examples, database=None, deadline=None, print_blob=False, derandomize=False,
        suppress_health_check=list(HealthCheck), phases=phases, report_multiple_bugs=False,
    )  # fmt: skip
    @given(fuzzed.target.cases)
    def round_(case: Any) -> None:
        last[:] = [case]
        tried(fuzzed.target, case, fuzzed.tally)

    fuzzed.rounds += 1
    try:
        round_()
    except Exception as error:  # whatever breaks is the finding
        fuzzed.broken, fuzzed.why = last[0], said(error)
        return False
    return True


def said(error: BaseException) -> str:
    """What broke, and where in our own files; of a group of errors, the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "site-packages" not in frame.filename]
    places = traceback.format_list(frames[-8:])
    return "".join([*places, f"{type(error).__name__}: {error!s:.2000}"])


def fuzz(names: list[str], first: int, seconds: float) -> Iterator[Fuzzed]:
    """Rounds of all targets in turn until the time is over; a target that broke takes no further part.

    Every target has one round at least.
    """
    ends = time.monotonic() + seconds
    running = [Fuzzed(TARGETS[name]) for name in names]
    while running:
        for fuzzed in list(running):
            over = time.monotonic() > ends
            if (over and fuzzed.rounds) or not search(
                fuzzed, first * 1_000_003 + fuzzed.rounds, fuzzed.target.per_round
            ):
                running.remove(fuzzed)
                yield fuzzed
