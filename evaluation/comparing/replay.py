"""Asks logged queries again through two pipelines: the effect that a change would have had on them."""

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

from speckit_memory.config.workspace.settings import Settings, settings
from speckit_memory.config.workspace.workspace_file import extensions_in_force, load_workspace_config
from speckit_memory.engine import components
from speckit_memory.engine.recording.observations import pipeline_record
from speckit_memory.engine.shadowing.replayer import Replayer, ReplayTask
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.comparing.compare import with_and_without
from speckit_memory.evaluation.comparing.storage import NOT_WANTED, not_stored
from speckit_memory.evaluation.experiments.experiment import judge_experiment
from speckit_memory.evaluation.experiments.experiment_sentence import names
from speckit_memory.evaluation.experiments.experiments import JudgedExperiment, known_judgements
from speckit_memory.evaluation.experiments.flag_evidence import ExperimentFigures, archive_report
from speckit_memory.evaluation.experiments.implicit_feedback import implicit_feedback
from speckit_memory.evaluation.running.run import load_pipelines
from speckit_memory.evaluation.statistics.metrics import evaluate, relevant
from speckit_memory.evaluation.statistics.report import as_document
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_label
from speckit_memory.memory.store.evaluation.records import (
    Arm,
    EvaluationFigure,
    ExperimentRecord,
    Observation,
    PipelineRecord,
    RecordedPair,
    StoredEvaluation,
    UseRecord,
)
from speckit_memory.pipeline.configuration.builder import check_pipeline
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.loading import PipelineSource

KIND = "eval replay"
SEED = 20
_ADVICE = re.compile(r" \(`eval judge [^`]*` asks for them\)")
WARM_UPS = 3
"""Number of queries asked before timing starts, to fill the caches."""
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """The result of a replay.

    `without_text` further queries of the period have no stored text, so they cannot be replayed; `served_by_others` of
    the replayed ones were originally answered by a pipeline other than the control. `keeping` says where the result is
    stored, or why it is not; `is_kept` says whether its id can be cited.
    """

    judged: JudgedExperiment
    store: Path
    log: Path
    without_text: int
    served_by_others: int
    keeping: str = NOT_WANTED
    is_kept: bool = False

    def as_json(self) -> dict[str, Any]:
        """The JSON document of `eval replay --json`."""
        return {
            "kind": KIND,
            "store": str(self.store),
            "log": str(self.log),
            "without_text": self.without_text,
            "served_by_others": self.served_by_others,
            **as_document(self.judged.report),
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
) -> ReplayReport:
    """Asks the queries recorded in `log` again in `store`, through a pipeline and a control, in a fixed random order.

    The control is asked twice, which measures the noise. Every question is asked as of the time when it was first
    asked, and nothing is written to the store.

    Args:
        log: The evaluation database with the queries; it also receives the result.
        store: The store to search, possibly a copy.
        pipeline: The variant: a path or preset.
        against: The control; "" for the pipeline in use.
        flag: Instead of `pipeline`: the control is asked with this flag closed, the variant is the control with it
            open.
        since: Only queries since this time (epoch seconds); None for all.
        overrides: YAML values by "step.parameter", applied to the variant.
        progress: Called with the number of queries done and the total.
        keep: Whether the result is stored.

    Raises:
        SpeckitError: E030 when no question is stored, E120 for a flag that no step waits for, or with the problems of
            the pipelines, the store or the log.
    """
    if not log.exists():
        raise _nothing_to_ask(f"{log} does not exist")
    with EvaluationDatabase.open(log, create=False) as database:
        logged, uses, judgements = database.served(since), database.uses(since), known_judgements(database)
    asked = [seen for seen in logged if seen.query.question]
    if not asked:
        held = f"{len(logged):,} queries, all without texts" if logged else "no query of that period"
        raise _nothing_to_ask(f"{log} holds {held}")
    config = settings(store)
    control, variant = _pipelines(config, pipeline, against, flag, overrides)
    extensions = extensions_in_force(config.environ, config.root)
    hashes = [check_pipeline(one, components.registry_of(extensions)).hash for one in (control, variant)]
    task = ReplayTask(
        store,
        config.root,
        config.environ,
        extensions,
        load_workspace_config(config.root, config.environ).vector_index,
        Arm(hashes[0], hashes[1], ""),
        control,
        variant,
        flag,
    )
    with closing(Replayer(task)) as asking, closing(Replayer(replace(task, variant=control))) as again:
        pairs, noise = _asked_again(asked, asking, again, progress)
        pipelines = asking.pipelines
    if not pairs:
        # Every pair was "gone": its folder restriction names nothing that the store still has.
        raise _nothing_to_ask("the folders of all these queries are no longer in the store")
    ids = {pair.query.id for pair in pairs}
    known = {query: grades for query, grades in judgements.items() if query in ids}
    found = _judged(pairs, noise, known, uses, (pipeline_record(pipelines[0]), pipeline_record(pipelines[1])), flag)
    others = sum(seen.control.pipeline != hashes[0] for seen in asked)
    result = ReplayReport(found, store, log, len(logged) - len(asked), others)
    return _store(result) if keep else result


def _pipelines(
    config: Settings, pipeline: str, against: str, flag: str, overrides: Mapping[str, str] | None
) -> tuple[Effective, Effective]:
    """The control and the variant. Raises SpeckitError with every problem."""
    environ = config.environ_of_root
    [control] = load_pipelines([against or config.pipeline], None, environ)
    variant: PipelineSource = pipeline
    if flag:
        control, [variant] = with_and_without(control, [flag])
    return control, load_pipelines([variant], overrides, environ)[0]


def _asked_again(
    asked: Sequence[Observation], asking: Replayer, again: Replayer, progress: OnProgress | None
) -> tuple[list[RecordedPair], list[RecordedPair]]:
    """Pairs of control and variant, and of the control with itself. Their order is drawn at random for each query."""
    chance = random.Random(SEED)
    for seen in asked[:WARM_UPS]:
        asking.replay(seen)
    pairs: dict[Replayer, list[RecordedPair]] = {asking: [], again: []}
    for done, seen in enumerate(chance.sample(asked, len(asked)), 1):
        # random order within a query, so that caches favour neither
        for replayer in chance.sample([asking, again], 2):
            found = replayer.replay(seen)
            if found.basis != "gone":
                pairs[replayer].append(RecordedPair(seen.query, found.control, found.variant, found.basis))
        if progress is not None:
            progress(done, len(asked))
    return pairs[asking], pairs[again]


def _judged(
    pairs: Sequence[RecordedPair],
    noise: Sequence[RecordedPair],
    judgements: Mapping[str, Mapping[int, float]],
    uses: Sequence[UseRecord],
    pipelines: tuple[PipelineRecord, PipelineRecord],
    flag: str,
) -> JudgedExperiment:
    control, variant = pipelines
    moments = [pair.query.at for pair in pairs]
    failed = sum(bool(pair.variant.answer.failure) for pair in pairs)
    experiment = ExperimentRecord(control, variant, "shadow", flag, min(moments), max(moments), len(pairs), failed)
    ids = {pair.query.id for pair in pairs}
    seen = tuple(use for use in uses if use.query in ids)
    feedback = implicit_feedback((pair.query for pair in pairs), uses, now=time.time())
    report = judge_experiment(
        pairs, experiment=experiment, judgements=judgements, uses=seen, noise=noise, feedback=feedback
    )
    # A replay is a separate experiment from the live one (only the latter can be judged by hand), and its id covers the
    # queries: a replay of later queries is another comparison, which may confirm an earlier one.
    name = sha256(f"replay:{control.hash}:{variant.hash}:{' '.join(sorted(ids))}".encode()).hexdigest()[:12]
    told = _ADVICE.sub("", report.sentence)
    return JudgedExperiment(replace(report, id=name, sentence=told), tuple(pairs), judgements, seen)


def _store(result: ReplayReport) -> ReplayReport:
    """The result, stored next to the queries, or with the reason why that failed."""
    report, asked = result.judged.report, sorted(pair.query.id for pair in result.judged.pairs)
    digest = sha256("\n".join(asked).encode()).hexdigest()[:12]
    name = f"{len(asked)} logged queries"
    document = {
        **replace(result, is_kept=True).as_json(),
        **archive_report(report, ExperimentFigures(result.judged)),
        "per_query": _per_query(result.judged),
    }
    stored = StoredEvaluation(report.id, KIND, time.time(), name, digest, document)
    figures = []
    if (agreement := report.agreement) is not None:
        means = {"overlap@10": agreement.overlap_10, "kendall_tau_b": agreement.kendall_tau_b, "rbo": agreement.rbo}
        figures = [EvaluationFigure(report.variant.hash, name, one.mean, one.n) for name, one in means.items() if one]
    try:
        with EvaluationDatabase.open(result.log) as database:
            database.keep(stored, figures)
    except SpeckitError as error:
        return replace(result, keeping=not_stored(error))
    return replace(result, keeping=f"kept as {report.id} in {evaluation_label(result.log)}", is_kept=True)


def _per_query(judged: JudgedExperiment) -> dict[str, Any]:
    """The queries that both answered, with time and metrics of each by pipeline; None for a query without a relevant
    memory."""
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
        # `told` are the places of the queries with a relevant memory; the columns below have its length.
        rankings = [[str(memory) for memory in answers[place].memories] for place in told]
        measured = evaluate(rankings, [known[place] for place in told]) if told else {}
        # aligned with all queries; None where no relevant memory is known
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
        hint="The texts of queries are kept for seven days unless the workspace configures otherwise.",
        actions=(
            "write `evaluation: {keep_texts: 30}` into .speckit/config.yaml and go on asking",
            "leave out --since",
        ),
    )
