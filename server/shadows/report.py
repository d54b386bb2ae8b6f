"""Builds the report on shadows and dark runs from the evaluation database, with the present names of memories."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from difflib import unified_diff
from functools import cache
from pathlib import Path

from speckit_memory.config.flags.flag import Flag
from speckit_memory.config.flags.flags import flags_for
from speckit_memory.config.workspace.settings import settings
from speckit_memory.engine import components
from speckit_memory.engine.pipelines.pipeline_text import as_lines
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.experiments.experiment_sentence import names
from speckit_memory.evaluation.experiments.experiments import JudgedExperiment, PipelineLabel, judge_experiments
from speckit_memory.evaluation.experiments.flag_evidence import missing
from speckit_memory.evaluation.statistics.report import CODE, Report, Table, as_document
from speckit_memory.memory.store.evaluation.database import evaluation_file, open_if_there
from speckit_memory.memory.store.evaluation.records import PlacementChange
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.reading.reader import get_memory
from speckit_memory.pipeline.configuration.builder import CheckedPipeline, check_pipeline
from speckit_memory.pipeline.configuration.loading import load
from speckit_memory.pipeline.configuration.variants import variants_of
from speckit_memory.server.shadows.comparison_text import (
    READING,
    NextStep,
    about,
    differing,
    facts,
    figures,
    headline,
    next_steps,
    plots,
    remarks,
)
from speckit_memory.server.shadows.wording import iso, moment


@dataclass(frozen=True, slots=True)
class CurrentPipelines:
    """The served pipeline and its shadows, by hash; empty if they cannot be read."""

    names: Mapping[str, PipelineLabel]
    pipelines: Mapping[str, CheckedPipeline]

    def difference(self, control: str, variant: str) -> list[str] | None:
        """The lines of a diff between two pipelines; None if one of them is no longer in force."""
        if not {control, variant} <= set(self.pipelines):
            return None
        before, after = (as_lines(self.pipelines[one]) for one in (control, variant))
        # [2:] drops the two header lines of a unified diff; n=0 asks for no context.
        lines = list(unified_diff(before, after, lineterm="", n=0))[2:]
        return [line for line in lines if not line.startswith("@@")]


def current_pipelines(store: Path) -> CurrentPipelines:
    """The pipelines in force at a store."""
    config = settings(store)
    environ = config.environ_of_root
    try:
        registry = components.registry(environ, config.root)
        control = load(config.pipeline, environ, offered=registry.flag_files)
        variants = variants_of(control, environ, registry.flag_files)
        checked = [check_pipeline(one, registry) for one in (control, *(one.effective for one in variants))]
    except SpeckitError:
        return CurrentPipelines({}, {})
    names = [PipelineLabel(control.name), *(PipelineLabel(one.name, one.flag) for one in variants)]
    # reversed, so that on equal hashes the first pipeline (the control) wins
    found = {one.hash: (name, one) for name, one in reversed(list(zip(names, checked, strict=True)))}
    return CurrentPipelines(
        {key: name for key, (name, _) in found.items()}, {key: one for key, (_, one) in found.items()}
    )


_WORST_FIRST = ("worse", "undecided", "same", "better")
DARK = "in a dark run"
"""Used instead of a verdict: a dark run records no results and cannot have one."""


@dataclass(frozen=True, slots=True)
class ShadowComparison:
    """A comparison of control and variant: names, results and next steps.

    `difference` has the differing values as a diff, None if one of them is no longer in force.
    """

    judged: JudgedExperiment
    control: str
    variant: str
    next_steps: Sequence[NextStep]
    retreats: Sequence[PlacementChange]
    difference: list[str] | None = None

    @property
    def headline(self) -> str:
        """The verdict in a few words."""
        return headline(self.judged.report, self.control, self.variant)

    def as_report(self, names: Mapping[int, str]) -> Report:
        """The verdict, figures, queries that differ and next steps; `names` are the keys of memories."""
        found = self.judged.report
        data = {
            **as_document(found),
            "headline": self.headline,
            "difference": self.difference,
            "retreats": [
                {"placement": one.placement, "reason": one.reason, "at": iso(one.at)} for one in self.retreats
            ],
            "next": [{"do": step.purpose, "commands": list(step.commands)} for step in self.next_steps],
        }
        steps = ["\n".join([f"{one.purpose}:", *(CODE + each for each in one.commands)]) for one in self.next_steps]
        return Report(
            f"{self.variant} compared with {self.control}",
            outcome=found.verdict,
            verdict=f"{self.headline}.\n{found.sentence}",
            about=about(found, self.difference),
            facts=list(facts(found)) if found.compared else (),
            tables=[*figures(found), *differing(found, self.control, self.variant, names)],
            figures=lambda: plots(self.judged, self.control, self.variant),
            notes=[
                *remarks(found, self.control),
                *(f"warning: {moment(one.at)}: moved to {one.placement}, {one.reason}" for one in self.retreats),
                *steps,
            ],
            data=data,
        )


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """All comparisons since a time.

    `since` is in epoch seconds, None for the beginning. `memories` has the keys of memories in the answers shown,
    without deleted ones. `nothing` is the reason why there is no comparison, "" if there is one.
    """

    since: float | None
    made: float
    comparisons: Sequence[ShadowComparison]
    memories: Mapping[int, str]
    nothing: str = ""

    def as_report(self) -> Report:
        """The comparison, or the verdicts on all of them and a part for each."""
        first = min((one.judged.report.first for one in self.comparisons), default=None)
        begin = first if self.since is None else self.since
        parts = [one.as_report(self.memories) for one in self.comparisons]
        data = {
            "since": None if begin is None else iso(begin),
            "comparisons": [part.data for part in parts],
            **({"nothing": self.nothing} if self.nothing else {}),
        }
        reading = Table(READING, "How to read these figures", detail=True)
        if len(parts) == 1:
            return replace(parts[0], tables=[*parts[0].tables, reading], data=data)
        notes = (
            [self.nothing] if self.nothing else ["`--experiment ID` shows the details of one, `--html FILE` of all."]
        )
        about = f"queries since {data['since']}" if parts else ""
        tables = [reading] if parts else []
        return Report(self.sentence(), about=about, notes=notes, tables=tables, parts=parts, data=data)

    def sentence(self) -> str:
        """The first line of every report: the verdict, or the verdicts counted over several variants."""
        if not self.comparisons and self.since is not None:
            return f"Nothing to report: no query has been answered by two pipelines since {iso(self.since)}."
        if not self.comparisons:
            return "Nothing to report: no shadow pipeline has run."
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
        return f"{len(self.comparisons)} variants compared with the served pipeline: {', '.join(parts)}."


def read(store: Path, *, since: float | None, experiment: str, now: float, nothing: Callable[[], str]) -> ShadowReport:
    """Reads the report on a store.

    Args:
        store: File of the store.
        since: Start of the period in epoch seconds; None for the beginning.
        experiment: Id of the only experiment to report; "" for all.
        now: The present time in epoch seconds.
        nothing: Returns the reason if there is no comparison.

    Raises:
        SpeckitError: E030 for an unknown experiment, or if a database cannot be opened.
    """
    current = cache(lambda: current_pipelines(store))
    kept = open_if_there(evaluation_file(store))
    if kept is None:
        if experiment:
            raise unknown(experiment, ())
        return ShadowReport(since, now, (), {}, nothing())
    with kept as database:
        found = judge_experiments(database, since=since, experiment=experiment, known=lambda: current().names)
        if experiment and not found:
            raise unknown(experiment, [one.id for one in database.experiments()])
        retreats = database.retreats()
        # distinguish "nothing in this period" from "nothing at all"
        before = [] if found or since is None else database.experiments()
    if before:
        last = iso(max(one.last for one in before))
        explained = f"The last query that two pipelines answered was at {last}: omit --since, or give an earlier time."
        return ShadowReport(since, now, (), {}, explained)
    memories = _memories(store, _shown_ids(found))
    flags = _flags(store, {one.report.flag for one in found} - {""})
    found.sort(key=_harm)
    comparisons = [_compared(one, memories, retreats, flags.get(one.report.flag), current()) for one in found]
    return ShadowReport(since, now, comparisons, memories, "" if comparisons else nothing())


def of_one(store: Path, one: JudgedExperiment, *, made: float) -> ShadowReport:
    """The report on one offline comparison, with the names of memories in this store."""
    memories = _memories(store, _shown_ids([one]))
    report = replace(one.report, keys=memories)
    control, variant = names(report.control, report.variant, report.flag)
    compared = ShadowComparison(replace(one, report=report), control, variant, (), (), [])
    return ShadowReport(None, made, [compared], memories)


def unknown(experiment: str, known: Iterable[str]) -> SpeckitError:
    """The error for an unknown experiment."""
    ids = ", ".join(known)
    return SpeckitError(
        "E030",
        f"there is no experiment '{experiment}'",
        hint=f"Known are {ids}." if ids else "No shadow pipeline has run.",
        actions=("omit --experiment to see all of them",),
    )


def _flags(store: Path, named: Collection[str]) -> Mapping[str, Flag]:
    """The flags after which variants are named, by name."""
    if not named:
        return {}
    config = settings(store)
    return flags_for(config.environ_of_root, named, components.registry(config.environ, config.root).flag_files)[0]


def _compared(
    one: JudgedExperiment,
    keys: Mapping[int, str],
    retreats: Sequence[PlacementChange],
    flag: Flag | None,
    current: CurrentPipelines,
) -> ShadowComparison:
    report = replace(one.report, keys=keys)
    pair = (report.control.hash, report.variant.hash)
    control, variant = names(report.control, report.variant, report.flag)
    mine = [retreat for retreat in retreats if (retreat.control, retreat.variant) == pair]
    lacks = missing(one, flag) if flag and report.mode == "shadow" else []
    steps = next_steps(report, lacks=lacks)
    return ShadowComparison(replace(one, report=report), control, variant, steps, mine, current.difference(*pair))


def _harm(one: JudgedExperiment) -> tuple[bool, int, int]:
    """Sort key of variants, worst first: those that only failed, then by verdict; dark runs last."""
    report = one.report
    # tuples sort by element: dark runs last, variants that never answered first, more failures first
    return report.mode == "dark_run", _WORST_FIRST.index(report.verdict) if report.compared else -1, -report.failed


def _shown_ids(found: Sequence[JudgedExperiment]) -> set[int]:
    pairs = [contrast.pair for one in found for contrast in one.report.differing]
    return {memory for pair in pairs for answer in (pair.control, pair.variant.answer) for memory in answer.memories}


def _memories(store: Path, wanted: Iterable[int]) -> dict[int, str]:
    """The keys of the memories that still exist."""
    found = {}
    with closing(Database.open(store, create=False)) as database:
        reader = database.reader()
        for memory in sorted(wanted):
            try:
                record = get_memory(reader, memory)
            except SpeckitError as error:
                # E080: the memory is gone; other errors concern the store itself.
                if error.code != "E080":
                    raise
                continue
            found[memory] = record.key
    return found
