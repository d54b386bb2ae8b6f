"""The smallest single change of a search that brings a lost memory in, found and verified by searching (feature P8)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from speckit_memory.engine.answers.absence import Absence, absence
from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.engine.explain.change_candidates import Candidate
from speckit_memory.engine.explain.changes import Change
from speckit_memory.pipeline.ports import Store

RUNS = 60
"""So many searches are made at most."""
SECONDS = 2.0
"""After so long no further one is begun."""
MODERATE = 0.5
"""Twice or half as much: what is tried of a number before its farthest value."""
NAMED = 3
"""So many memories that leave are named in the sentence."""

Run = Callable[[Change], SearchResult | None]
"""Searches with a change; None when it makes no pipeline or no answer."""


@dataclass(frozen=True, slots=True)
class SmallestChange:
    """The smallest change that brings a memory in, None when no single one was found to.

    With it the memory is result `rank`, and the results with the keys `leaves` are no longer shown. `runs` searches
    were made in `ms` milliseconds over the values called `tried`; `complete` is false when runs or time were over
    before all of these were tried to the end, or when what was found was enough. `nearest` is the change that came
    nearest where none did, and `got` says how far the memory got with it. `never` says why nothing could, "" when
    something might have.
    """

    change: Change | None = None
    rank: int = 0
    leaves: tuple[str, ...] = ()
    runs: int = 0
    ms: float = 0.0
    complete: bool = True
    tried: tuple[str, ...] = ()
    nearest: Change | None = None
    got: str = ""
    never: str = ""

    @property
    def sentence(self) -> str:
        """The finding in words, with changes as they are typed at the command line."""
        return self.told(lambda change: change.told)

    def told(self, tell: Callable[[Change], str]) -> str:
        """The finding in words, with changes as a door tells them."""
        spent = f"{self.runs} search{'es' if self.runs != 1 else ''} in {self.ms:,.0f} ms"
        if self.never:
            return f"No change of a value brings it in: {self.never}."
        if self.change:
            smallest = "The smallest single change" if self.complete else "The smallest single change found so far"
            said = f"{smallest} that brings it in: {tell(self.change)}. It becomes result {self.rank}"
            open_end = "" if self.complete else "; the search for a smaller one was ended there"
            return f"{said}, {_leaving(self.leaves)}. Verified by searching ({spent}{open_end})."
        if not self.runs and not self.complete:
            return "No time was left to try what would bring it in."
        what = f"{len(self.tried)} values, flags and steps" if len(self.tried) != 1 else self.tried[0]
        said = f"No single change brings it in: tried {what} in {spent}"
        said += "." if self.complete else ", where the search was ended before all were tried."
        if self.nearest and self.got:
            said += f" Nearest came {tell(self.nearest)}: {self.got}."
        return said

    def as_json(self, data: Callable[[Change], dict[str, Any]] = Change.as_json) -> dict[str, Any]:
        """The entry `why_not_change` of `search --json`; `data` makes the entries of changes."""
        return {
            "change": data(self.change) if self.change else None,
            "sentence": self.sentence,
            "rank": self.rank or None,
            "leaves": list(self.leaves),
            "runs": self.runs,
            "ms": round(self.ms, 3),
            "complete": self.complete,
            "tried": list(self.tried),
            "nearest": data(self.nearest) if self.nearest else None,
        }


def _leaving(keys: Sequence[str]) -> str:
    if not keys:
        return "and no other result leaves"
    more = f" and {len(keys) - NAMED} more" if len(keys) > NAMED else ""
    return f"and {', '.join(keys[:NAMED])}{more} {'leave' if len(keys) > 1 else 'leaves'}"


def _got(lost: Absence) -> str:
    match lost.where:
        case "limit":
            return f"it is ranked {lost.rank} then"
        case "step":
            return f"it is found then, and the step '{lost.step}' takes it out"
    return "it is inside the scope then, and no channel finds it"


class _SpentError(Exception):
    """Runs or time are over, or no more is wanted."""


@dataclass(slots=True)
class _Search:
    """What was tried so far, and the best of it."""

    run: Run
    result: SearchResult
    memory: int
    store: Store
    steps: tuple[str, ...]
    clock: Callable[[], float]
    ends: float
    runs: int = 0
    best: tuple[Change, SearchResult] | None = None
    nearest: tuple[tuple[int, int], Change, Absence] | None = None
    tried: dict[str, None] = field(default_factory=dict)

    def progress(self, change: Change) -> tuple[int, int]:
        """How far the memory gets with a change, as `Absence.progress`; (-1, 0) when there is no answer."""
        if self.runs >= RUNS or self.clock() >= self.ends:
            raise _SpentError
        self.runs += 1
        self.tried[change.name] = None
        result = self.run(change)
        if result is None:
            return -1, 0
        lost = absence(result, self.memory, self.store)
        reached = lost.progress(self.steps)
        if lost.where == "served":
            if self.best is None or change.order < self.best[0].order:
                self.best = change, result
        elif self.nearest is None or reached > self.nearest[0]:
            self.nearest = reached, change, lost
        return reached

    def smaller(self, way: Sequence[Change]) -> list[Change]:
        """The part of a way that is worth a search: what is smaller than the best so far."""
        return [change for change in way if self.best is None or change.order < self.best[0].order]


def smallest_change(
    candidates: Iterable[Candidate],
    run: Run,
    result: SearchResult,
    memory: int,
    store: Store,
    steps: tuple[str, ...],
    clock: Callable[[], float] = time.perf_counter,
    until: float = math.inf,
    enough: Collection[str] = (),
) -> SmallestChange:
    """Tries candidates in their order; every one that works narrows what is worth trying of the others.

    Nothing is tried after the moment `until` of the `clock`, in seconds, nor once a candidate named in `enough` works.
    `run` searches with a change, as `result` came about without; `memory` is the id of what that lost; `steps` are
    those of the pipeline in running order.
    """
    begun = clock()
    search = _Search(run, result, memory, store, steps, clock, min(begun + SECONDS, until))
    before, complete = absence(result, memory, store), True
    present = before.progress(steps)
    try:
        for candidate in candidates:
            for way in candidate.ways:
                if _along(search, way, candidate.first, present) and len(way) > 1:
                    break  # the other direction leads away
            if search.best and search.best[0].name in enough:
                raise _SpentError
    except _SpentError:
        complete = False
    facts: dict[str, Any] = {}
    if search.best:
        change, found = search.best
        ids = {row.id for row in found.results}
        facts["change"] = change
        facts["rank"] = 1 + [row.id for row in found.results].index(memory)
        facts["leaves"] = tuple(row.key for row in result.results if row.id not in ids)
    elif search.nearest and search.nearest[0] > present:
        _, facts["nearest"], lost = search.nearest
        facts["got"] = _got(lost)
    spent = (clock() - begun) * 1000
    return SmallestChange(runs=search.runs, ms=spent, complete=complete, tried=tuple(search.tried), **facts)


def _along(search: _Search, way: Sequence[Change], first: float | None, present: tuple[int, int]) -> bool:
    """Looks for the nearest value of one direction that works; whether the memory gets farther in it."""
    way = search.smaller(way)
    if not way:
        return False
    failing, better = -1, False
    for at in _probes(way, first):
        if at <= failing:
            continue
        reached = search.progress(way[at])
        if _works(search, way[at]):
            _bisected(search, way, failing, at, likely=first is not None)
            return True
        if reached < present:
            return better
        failing, better = at, better or reached > present
    return better


def _probes(way: Sequence[Change], first: float | None) -> list[int]:
    """What is tried before anything is known: where it probably works, a moderate change, and the farthest."""
    likely = [at for at, change in enumerate(way) if first is not None and not _below(change, first)][:1]
    near = sum(change.size <= MODERATE for change in way) - 1
    return [*likely, *([near] if near >= 0 else []), len(way) - 1]


def _below(change: Change, number: float) -> bool:
    return isinstance(change.after, int | float) and change.after < number


def _bisected(search: _Search, way: Sequence[Change], failing: int, working: int, *, likely: bool) -> None:
    """Halves what lies between a change that does not work and one that does, until they are neighbours.

    Where `likely` the one that works is the first that does, its neighbour is tried before.
    """
    while working - failing > 1:
        middle = working - 1 if likely else (failing + working) // 2
        likely = False
        search.progress(way[middle])
        if _works(search, way[middle]):
            working = middle
        else:
            failing = middle


def _works(search: _Search, change: Change) -> bool:
    return search.best is not None and search.best[0] is change
