"""Logged queries asked again of two pipelines, one right after the other: what a change would have done to them."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from speckit_memory.config.workspace.extensions import extensions_in_force
from speckit_memory.config.workspace.settings import Settings, settings
from speckit_memory.config.workspace.vector_indexing_in_force import vector_indexing_in_force
from speckit_memory.engine import components
from speckit_memory.engine.recording.observations import pipeline_record
from speckit_memory.engine.shadowing.replayer import Replayer, ReplayTask
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.comparing.compare import with_and_without
from speckit_memory.evaluation.comparing.keeping import NOT_WANTED, not_kept
from speckit_memory.evaluation.experiments.experiment import judge_experiment
from speckit_memory.evaluation.experiments.experiment_sentence import names
from speckit_memory.evaluation.experiments.experiments import Judged, known_judgements
from speckit_memory.evaluation.experiments.flag_evidence import OfExperiment
from speckit_memory.evaluation.experiments.implicit_feedback import implicit_feedback
from speckit_memory.evaluation.experiments.kept_evidence import written
from speckit_memory.evaluation.running.run import loaded
from speckit_memory.evaluation.statistics.metrics import evaluate, relevant
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import (
    Arm,
    Experiment,
    Observation,
    Pair,
    PipelineRecord,
    Snapshot,
    StoredEvaluation,
    UseRecord,
)
from speckit_memory.pipeline.configuration.builder import examined
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.loading import PipelineSource

KIND = "eval replay"
SEED = 20
_ADVICE = re.compile(r" \(`eval judge [^`]*` asks for them\)")
WARM_UPS = 3
"""So many queries are asked before anything is timed: the first ones read what later ones have in memory."""
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What asking again has shown. `without_text` further queries of that time cannot be asked again, and
    `served_by_others` of those asked were once answered by another pipeline than the control.

    `keeping` tells where it is kept, or why it is not, and `is_kept` whether its id can be cited.
    """

    judged: Judged
    store: Path
    log: Path
    without_text: int
    served_by_others: int
    keeping: str = NOT_WANTED
    is_kept: bool = False

    def as_json(self) -> dict[str, Any]:
        """The document of `eval replay --json`."""
        return {
            "kind": KIND,
            "store": str(self.store),
            "log": str(self.log),
            "without_text": self.without_text,
            "served_by_others": self.served_by_others,
            **self.judged.report.as_json(),
            **({} if self.is_kept else {"id": None}),
            "keeping": self.keeping,
        }


def replay(
    log: Path,
    store: Path,
    pipeline: str = "",
    against: str = "",
    *,
    flag: str = "",
    since: float | None = None,
    overrides: Mapping[str, str] | None = None,
    progress: OnProgress | None = None,
    keep: bool = True,
) -> Replayed:
    """Asks the queries noted in `log` again in `store`, through a pipeline and through `against` ("" for the one in
    force), in a shuffled order that is always the same, and keeps what came of it in `log`.

    The control is asked twice, which shows the noise. Every question is asked as of the moment when it was asked first,
    and nothing is written to the store. `overrides` change single values of the pipeline. With a `flag` in its place
    the control is asked with that closed, and beside it with it open: evidence for the flag's promotion. Raises E030
    when no question is kept, E120 for a flag that no step waits for, and as opening the two files does.
    """
    if not log.exists():
        raise _nothing_to_ask(f"{log} does not exist")
    with EvaluationDatabase.open(log, create=False) as database:
        logged, uses, judgements = database.served(since), database.uses(since), known_judgements(database)
    asked = [seen for seen in logged if seen.query.question]
    if not asked:
        held = f"{len(logged):,} queries, all without their texts" if logged else "no query of that time"
        raise _nothing_to_ask(f"{log} holds {held}")
    config = settings(store)
    control, variant = _pipelines(config, pipeline, against, flag, overrides)
    extensions = extensions_in_force(config.environ, config.root)
    hashes = [examined(one, components.registry_of(extensions)).hash for one in (control, variant)]
    task = ReplayTask(
        store,
        config.root,
        config.environ,
        extensions,
        vector_indexing_in_force(config),
        Arm(hashes[0], hashes[1], ""),
        control,
        variant,
        flag,
    )
    with closing(Replayer(task)) as asking, closing(Replayer(replace(task, variant=control))) as again:
        pairs, noise = _asked_again(asked, asking, again, progress)
        pipelines = asking.pipelines
    if not pairs:
        raise _nothing_to_ask("the folders of all that was asked are not in the store any more")
    ids = {pair.query.id for pair in pairs}
    known = {query: grades for query, grades in judgements.items() if query in ids}
    found = _judged(pairs, noise, known, uses, (pipeline_record(pipelines[0]), pipeline_record(pipelines[1])), flag)
    others = sum(seen.control.pipeline != hashes[0] for seen in asked)
    result = Replayed(found, store, log, len(logged) - len(asked), others)
    return _kept(result) if keep else result


def _pipelines(
    config: Settings, pipeline: str, against: str, flag: str, overrides: Mapping[str, str] | None
) -> tuple[Effective, Effective]:
    """The control and the variant. Raises SpeckitError with all that is wrong with them."""
    environ = config.environ_of_root
    [control] = loaded([against or config.pipeline], None, environ)
    variant: PipelineSource = pipeline
    if flag:
        control, [variant] = with_and_without(control, [flag])
    return control, loaded([variant], overrides, environ)[0]


def _asked_again(
    asked: Sequence[Observation], asking: Replayer, again: Replayer, progress: OnProgress | None
) -> tuple[list[Pair], list[Pair]]:
    """Pairs of control and variant, and of the control with itself. Which of the two comes first is drawn by lot."""
    chance = random.Random(SEED)
    for seen in asked[:WARM_UPS]:
        asking.replay(seen)
    pairs: dict[Replayer, list[Pair]] = {asking: [], again: []}
    for done, seen in enumerate(chance.sample(asked, len(asked)), 1):
        for replayer in chance.sample([asking, again], 2):
            found = replayer.replay(seen)
            if found.basis != "gone":
                pairs[replayer].append(Pair(seen.query, found.control, found.variant, found.basis))
        if progress is not None:
            progress(done, len(asked))
    return pairs[asking], pairs[again]


def _judged(
    pairs: Sequence[Pair],
    noise: Sequence[Pair],
    judgements: Mapping[str, Mapping[int, float]],
    uses: Sequence[UseRecord],
    pipelines: tuple[PipelineRecord, PipelineRecord],
    flag: str,
) -> Judged:
    control, variant = pipelines
    moments = [pair.query.at for pair in pairs]
    failed = sum(bool(pair.variant.answer.failure) for pair in pairs)
    experiment = Experiment(control, variant, "shadow", flag, min(moments), max(moments), len(pairs), failed)
    ids = {pair.query.id for pair in pairs}
    seen = tuple(use for use in uses if use.query in ids)
    feedback = implicit_feedback((pair.query for pair in pairs), uses, now=time.time())
    report = judge_experiment(
        pairs, experiment=experiment, judgements=judgements, uses=seen, noise=noise, feedback=feedback
    )
    # what was asked live and what was asked again are two experiments, and only the live one can be judged by hand
    # and later queries are another comparison, which may confirm an earlier one
    name = sha256(f"replay:{control.hash}:{variant.hash}:{' '.join(sorted(ids))}".encode()).hexdigest()[:12]
    told = _ADVICE.sub("", report.sentence)
    return Judged(replace(report, id=name, sentence=told), tuple(pairs), judgements, seen)


def _kept(result: Replayed) -> Replayed:
    """The same, kept beside the queries, or with the reason why that could not be done."""
    report, asked = result.judged.report, sorted(pair.query.id for pair in result.judged.pairs)
    digest = sha256("\n".join(asked).encode()).hexdigest()[:12]
    name = f"{len(asked)} logged queries"
    document = {
        **replace(result, is_kept=True).as_json(),
        **written(report, OfExperiment(result.judged)),
        "per_query": _per_query(result.judged),
    }
    stored = StoredEvaluation(report.id, KIND, time.time(), name, digest, document)
    figures = []
    if (agreement := report.agreement) is not None:
        means = {"overlap@10": agreement.overlap_10, "kendall_tau_b": agreement.kendall_tau_b, "rbo": agreement.rbo}
        figures = [Snapshot(report.variant.hash, name, one.mean, one.n) for name, one in means.items() if one]
    try:
        with EvaluationDatabase.open(result.log) as database:
            database.keep(stored, figures)
    except SpeckitError as error:
        return replace(result, keeping=not_kept(error))
    return replace(result, keeping=f"kept as {report.id} in {result.log}", is_kept=True)


def _per_query(judged: Judged) -> dict[str, Any]:
    """The queries that both answered, with each one's time and metrics by pipeline; None where nothing relevant is
    known of a query."""
    pairs, report = judged.answered(), judged.report
    known = [{str(memory): grade for memory, grade in judged.judgements.get(one.query.id, {}).items()} for one in pairs]
    told = [place for place, grades in enumerate(known) if relevant(grades)]
    sides = zip(
        names(report.control, report.variant, report.flag),
        ([pair.control for pair in pairs], [pair.variant.answer for pair in pairs]),
        strict=True,
    )
    times: dict[str, list[float]] = {}
    values: dict[str, dict[str, list[float | None]]] = {}
    for name, answers in sides:
        times[name] = [answer.total_ms for answer in answers]
        rankings = [[str(memory) for memory in answers[place].memories] for place in told]
        measured = evaluate(rankings, [known[place] for place in told]) if told else {}
        values[name] = {
            metric: [by_place.get(place) for place in range(len(pairs))]
            for metric, column in measured.items()
            if (by_place := dict(zip(told, column.tolist(), strict=True)))
        }
    return {"queries": [one.query.id for one in pairs], "ms": times, "values": values}


def _nothing_to_ask(why: str) -> SpeckitError:
    return SpeckitError(
        "E030",
        f"there is nothing to ask again: {why}",
        hint="The words of queries are kept for seven days unless the workspace says otherwise.",
        actions=(
            "write `evaluation: {keep_texts: 30}` into .speckit/config.yaml and go on asking",
            "leave out --since",
        ),
    )
