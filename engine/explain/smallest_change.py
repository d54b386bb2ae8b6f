"""Finds the smallest single change of a search that brings a lost memory in, verified by searching (feature P8)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.engine.answers.why_not import Absence, absence
from speckit_memory.engine.explain.change_candidates import Candidate
from speckit_memory.engine.explain.changes import QueryEdit
from speckit_memory.pipeline.ports import Store

RUNS = 60
"""Maximum number of searches."""
SECONDS = 2.0
"""Time after which no further search begins."""
MODERATE = 0.5
"""The size of doubling or halving: the change of a number that is tried before its extreme value."""
NAMED = 3
"""Maximum number of displaced results listed in the sentence."""

Run = Callable[[QueryEdit], SearchResult | None]
"""Searches with a change; None if it yields no valid pipeline or no answer."""


@dataclass(frozen=True, slots=True)
class SmallestChange:
    """The smallest change that brings a memory in, or None if no single change was found.

    With it the memory has `rank`, and the results with the keys `leaves` are displaced. `runs` searches were made in
    `ms` milliseconds over the values named in `tried`; `complete` is false if a limit ended the search early, or a
    sufficient change did. `nearest` is the best change if none worked, and `got` says how far the memory got with it.
    `never` is the reason why no change could work, "" if one might.
    """

    change: QueryEdit | None = None
    rank: int = 0
    leaves: tuple[str, ...] = ()
    runs: int = 0
    ms: float = 0.0
    complete: bool = True
    tried: tuple[str, ...] = ()
    nearest: QueryEdit | None = None
    got: str = ""
    never: str = ""

    @property
    def sentence(self) -> str:
        """The result in words, with changes as typed on the command line."""
        return self.told(lambda change: change.told)

    def told(self, tell: Callable[[QueryEdit], str]) -> str:
        """The result in words, with changes as an interface phrases them."""
        spent = f"{self.runs} search{'es' if self.runs != 1 else ''} in {self.ms:,.0f} ms"
        if self.never:
            return f"No change of a value brings it in: {self.never}."
        if self.change:
            smallest = "The smallest single change" if self.complete else "The smallest single change found so far"
            said = f"{smallest} that brings it in: {tell(self.change)}. It becomes result {self.rank}"
            open_end = "" if self.complete else "; the search for a smaller one ended there"
            return f"{said}, {_leaving(self.leaves)}. Verified by searching ({spent}{open_end})."
        if not self.runs and not self.complete:
            return "No time was left to try what would bring it in."
        what = f"{len(self.tried)} values, flags and steps" if len(self.tried) != 1 else self.tried[0]
        said = f"No single change brings it in: tried {what} in {spent}"
        said += "." if self.complete else "; the search ended before all were tried."
        if self.nearest and self.got:
            said += f" Nearest came {tell(self.nearest)}: {self.got}."
        return said

    def as_json(self, data: Callable[[QueryEdit], dict[str, Any]] = QueryEdit.as_json) -> dict[str, Any]:
        """The entry `why_not_change` of `search --json`; `data` converts changes."""
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
            return f"it is found then, but the step '{lost.step}' removes it"
    return "it is inside the scope then, and no channel finds it"


class _SpentError(Exception):
    """A limit is reached, or a change is sufficient."""


@dataclass(slots=True)
class _Search:
    """The changes tried so far, and the best of them."""

    run: Run
    result: SearchResult
    memory: int
    store: Store
    steps: tuple[str, ...]
    clock: Callable[[], float]
    ends: float
    runs: int = 0
    best: tuple[QueryEdit, SearchResult] | None = None
    nearest: tuple[tuple[int, int], QueryEdit, Absence] | None = None
    tried: dict[str, None] = field(default_factory=dict)

    def progress(self, change: QueryEdit) -> tuple[int, int]:
        """How far the memory gets with a change, as `Absence.progress`; (-1, 0) if there is no answer."""
        # Checked before each search, so that one search may exceed the time, but no further one begins.
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
            # Of changes that work, the smallest is kept, not the one with the best rank.
            if self.best is None or change.order < self.best[0].order:
                self.best = change, result
        elif self.nearest is None or reached > self.nearest[0]:
            self.nearest = reached, change, lost
        return reached

    def smaller(self, way: Sequence[QueryEdit]) -> list[QueryEdit]:
        """The changes that are smaller than the best so far."""
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
    """Tries candidates in order; each success narrows the values that are worth trying.

    Args:
        candidates: The changes to try.
        run: Searches with a change.
        result: The answer without any change.
        memory: The id of the lost memory.
        store: The store that was searched.
        steps: The ids of the pipeline's steps in running order.
        clock: Returns seconds.
        until: The time of `clock` after which nothing is tried.
        enough: Names of candidates; if one of them works, the search ends.
    """
    begun = clock()
    search = _Search(run, result, memory, store, steps, clock, min(begun + SECONDS, until))
    before, complete = absence(result, memory, store), True
    present = before.progress(steps)
    try:
        for candidate in candidates:
            for way in candidate.ways:
                if _along(search, way, candidate.first, present) and len(way) > 1:
                    # Only if the way has several values: a single one says nothing about a direction.
                    break  # the other direction makes it worse
            if search.best and search.best[0].name in enough:
                raise _SpentError
    except _SpentError:
        complete = False
    facts: dict[str, Any] = {}
    if search.best:
        change, found = search.best
        ids = {row.id for row in found.results}
        facts["change"] = change
        # Rank from 1 in the answer with the change.
        facts["rank"] = 1 + [row.id for row in found.results].index(memory)
        facts["leaves"] = tuple(row.key for row in result.results if row.id not in ids)
    elif search.nearest and search.nearest[0] > present:
        _, facts["nearest"], lost = search.nearest
        facts["got"] = _got(lost)
    spent = (clock() - begun) * 1000
    return SmallestChange(runs=search.runs, ms=spent, complete=complete, tried=tuple(search.tried), **facts)


def _along(search: _Search, way: Sequence[QueryEdit], first: float | None, present: tuple[int, int]) -> bool:
    """Finds the nearest working value in one direction; returns whether the memory gets farther in it."""
    way = search.smaller(way)
    if not way:
        return False
    # assumes that values beyond a working one work too: probe a few, then bisect between failing and working
    # way[failing] does not work, -1 if none was tried; `better` tells that some value brought the memory farther.
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


def _probes(way: Sequence[QueryEdit], first: float | None) -> list[int]:
    """The indices to try first: where it probably works, a moderate change, and the farthest."""
    likely = [at for at, change in enumerate(way) if first is not None and not _below(change, first)][:1]
    # Index of the last change of moderate size; ways are sorted by distance, so these come first.
    near = sum(change.size <= MODERATE for change in way) - 1
    return [*likely, *([near] if near >= 0 else []), len(way) - 1]


def _below(change: QueryEdit, number: float) -> bool:
    return isinstance(change.after, int | float) and change.after < number


def _bisected(search: _Search, way: Sequence[QueryEdit], failing: int, working: int, *, likely: bool) -> None:
    """Bisects between a failing and a working change until they are neighbours.

    If `likely` holds, the working one is probably the first that works, so its neighbour is tried first.
    """
    while working - failing > 1:
        middle = working - 1 if likely else (failing + working) // 2
        likely = False
        search.progress(way[middle])
        if _works(search, way[middle]):
            working = middle
        else:
            failing = middle


def _works(search: _Search, change: QueryEdit) -> bool:
    return search.best is not None and search.best[0] is change
