"""What shadows and dark runs have shown: read from the evaluation database, with the names that memories have now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from speckit_memory.config.flags.flag import Flag
from speckit_memory.config.flags.flags import flags_for
from speckit_memory.config.workspace.settings import settings
from speckit_memory.engine import components
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.experiments.experiment_sentence import names
from speckit_memory.evaluation.experiments.experiments import Judged, judged
from speckit_memory.evaluation.experiments.flag_evidence import missing
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from speckit_memory.memory.store.evaluation.records import Pair, Retreat
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.reading.reader import get_memory
from speckit_memory.server.shadows.beside import CurrentPipelines, current_pipelines
from speckit_memory.server.shadows.headline import headline
from speckit_memory.server.shadows.next_steps import NextStep, next_steps
from speckit_memory.server.shadows.since import iso

_WORST_FIRST = ("worse", "undecided", "same", "better")
SHOWN_ROWS = 10
"""Rows of an answer that a reader is shown."""
DARK = "in a dark run"
"""In the place of a verdict: a dark run keeps no results, and cannot have one."""


@dataclass(frozen=True, slots=True)
class Named:
    """A memory as people know it."""

    key: str
    title: str


@dataclass(frozen=True, slots=True)
class Compared:
    """A control and a variant: what they are called here, what was seen, and what to do about it.

    `difference` holds the values in which they differ, None where one of them is in force no more.
    """

    judged: Judged
    control: str
    variant: str
    next_steps: Sequence[NextStep]
    retreats: Sequence[Retreat]
    difference: Sequence[str] | None = None

    @property
    def headline(self) -> str:
        """The verdict in a few words."""
        return headline(self.judged.report, self.control, self.variant)

    def as_json(self) -> dict[str, Any]:
        """The entry of `comparisons`."""
        return {
            **self.judged.report.as_json(),
            "headline": self.headline,
            "difference": self.difference,
            "retreats": [
                {"placement": one.placement, "reason": one.reason, "at": iso(one.at)} for one in self.retreats
            ],
            "next": [{"do": step.purpose, "commands": list(step.commands)} for step in self.next_steps],
        }


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """All that is known since `since`, epoch seconds, None for the beginning.

    `memories` names those of the answers that are shown; what is not in it is in the store no more. `nothing` says why
    there is no comparison, "" where there is one.
    """

    since: float | None
    made: float
    comparisons: Sequence[Compared]
    memories: Mapping[int, Named]
    nothing: str = ""

    def as_json(self) -> dict[str, Any]:
        """The document of `shadow report --json`."""
        first = min((one.judged.report.first for one in self.comparisons), default=None)
        moment = first if self.since is None else self.since
        return {
            "since": None if moment is None else iso(moment),
            "comparisons": [one.as_json() for one in self.comparisons],
            **({"nothing": self.nothing} if self.nothing else {}),
        }

    def sentence(self) -> str:
        """The first line of every report: the verdict, or how the verdicts are spread over several."""
        if not self.comparisons and self.since is not None:
            return f"Nothing to report: two pipelines have answered no query since {iso(self.since)}."
        if not self.comparisons:
            return "Nothing to report: no pipeline has run beside the one that is served."
        if len(self.comparisons) == 1:
            return self.comparisons[0].judged.report.sentence
        parts = []
        told: dict[str, list[str]] = {
            verdict: [] for verdict in ("failed", "worse", "better", "same", "undecided", DARK)
        }
        for one in self.comparisons:
            report = one.judged.report
            told[DARK if report.mode == "dark_run" else report.verdict].append(one.variant)
        for verdict, called in told.items():
            if called:
                parts.append(f"{len(called)} {verdict} ({', '.join(dict.fromkeys(called))})")
        return f"{len(self.comparisons)} variants beside what is served: {', '.join(parts)}."


def read(store: Path, *, since: float | None, experiment: str, now: float, nothing: Callable[[], str]) -> ShadowReport:
    """The report on a store. `nothing` is asked why there is none. Raises E030 for an experiment nobody knows, and as
    opening the two databases does."""
    current = cache(lambda: current_pipelines(store))
    file = evaluation_file(store)
    if not file.exists():
        if experiment:
            raise unknown(experiment, ())
        return ShadowReport(since, now, (), {}, nothing())
    with closing(EvaluationDatabase.open(file, create=False)) as database:
        found = judged(database, since=since, experiment=experiment, known=lambda: current().names)
        if experiment and not found:
            raise unknown(experiment, [one.id for one in database.experiments()])
        retreats = database.retreats()
        before = [] if found or since is None else database.experiments()
    if before:
        last = iso(max(one.last for one in before))
        explained = f"The last query that two pipelines answered was at {last}: ask without --since, or for longer ago."
        return ShadowReport(since, now, (), {}, explained)
    memories = _memories(store, _shown_ids(found))
    keys = {memory: named.key for memory, named in memories.items()}
    flags = _flags(store, {one.report.flag for one in found} - {""})
    found.sort(key=_harm)
    comparisons = [_compared(one, keys, retreats, flags.get(one.report.flag), current()) for one in found]
    return ShadowReport(since, now, comparisons, memories, "" if comparisons else nothing())


def of_one(store: Path, one: Judged, *, made: float) -> ShadowReport:
    """The report on one comparison that was not made live, with the names that memories have in this store."""
    memories = _memories(store, _shown_ids([one]))
    report = replace(one.report, keys={memory: named.key for memory, named in memories.items()})
    control, variant = names(report.control, report.variant, report.flag)
    return ShadowReport(None, made, [Compared(replace(one, report=report), control, variant, (), ())], memories)


def question(pair: Pair) -> str:
    """What was asked, where the texts of queries are kept; else ""."""
    return str((pair.query.question or {}).get("text", ""))


def unknown(experiment: str, known: Iterable[str]) -> SpeckitError:
    """The error of an id that names no experiment."""
    ids = ", ".join(known)
    return SpeckitError(
        "E030",
        f"there is no experiment '{experiment}'",
        hint=f"Known are {ids}." if ids else "No pipeline has run beside the one that is served.",
        actions=("leave out --experiment to see all of them",),
    )


def _flags(store: Path, named: Collection[str]) -> Mapping[str, Flag]:
    """The flags that variants are called by, where there are any."""
    if not named:
        return {}
    config = settings(store)
    return flags_for(config.environ_of_root, named, components.registry(config.environ, config.root).flag_files)[0]


def _compared(
    one: Judged,
    keys: Mapping[int, str],
    retreats: Sequence[Retreat],
    flag: Flag | None,
    current: CurrentPipelines,
) -> Compared:
    report = replace(one.report, keys=keys)
    pair = (report.control.hash, report.variant.hash)
    control, variant = names(report.control, report.variant, report.flag)
    mine = [retreat for retreat in retreats if (retreat.control, retreat.variant) == pair]
    lacks = missing(one, flag) if flag and report.mode == "shadow" else []
    steps = next_steps(report, lacks=lacks)
    return Compared(replace(one, report=report), control, variant, steps, mine, current.difference(*pair))


def _harm(one: Judged) -> tuple[bool, int, int]:
    """The order of variants, the worst first: those that only fail, then by verdict; dark runs last."""
    report = one.report
    return report.mode == "dark_run", _WORST_FIRST.index(report.verdict) if report.compared else -1, -report.failed


def _shown_ids(found: Sequence[Judged]) -> set[int]:
    pairs = [contrast.pair for one in found for contrast in one.report.differing]
    return {memory for pair in pairs for answer in (pair.control, pair.variant.answer) for memory in answer.memories}


def _memories(store: Path, wanted: Iterable[int]) -> dict[int, Named]:
    """Those of these memories that are still there."""
    found = {}
    with closing(Database.open(store, create=False)) as database:
        reader = database.reader()
        for memory in sorted(wanted):
            try:
                record = get_memory(reader, memory)
            except SpeckitError as error:
                if error.code != "E080":
                    raise
                continue
            found[memory] = Named(record.key, record.title)
    return found
