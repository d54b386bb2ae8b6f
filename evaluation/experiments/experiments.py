"""Reads and judges the experiments of the evaluation database (features P4, P5)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from speckit_memory.evaluation.experiments.experiment import judge_experiment
from speckit_memory.evaluation.experiments.experiment_evidence import Judgements
from speckit_memory.evaluation.experiments.experiment_figures import answered_pairs, contrasts
from speckit_memory.evaluation.experiments.experiment_report import ExperimentReport, QueryContrast
from speckit_memory.evaluation.experiments.implicit_feedback import implicit_feedback
from speckit_memory.evaluation.experiments.interleaving import Team, Teams
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import ExperimentRecord, RecordedPair, UseRecord, experiment_id


@dataclass(frozen=True, slots=True)
class JudgedExperiment:
    """An experiment: its report, the pairs it rests on, by time, and the known grades and uses of their answers."""

    report: ExperimentReport
    pairs: tuple[RecordedPair, ...]
    judgements: Judgements
    uses: tuple[UseRecord, ...] = ()

    def answered(self) -> list[RecordedPair]:
        """The queries that both pipelines answered."""
        return answered_pairs(self.pairs)

    def contrasts(self) -> list[QueryContrast]:
        """The answered queries, compared one by one; empty where the report compares no rankings."""
        return [] if self.report.agreement is None else contrasts(self.answered())


@dataclass(frozen=True, slots=True)
class PipelineLabel:
    """The name of a pipeline without a recorded answer, and the flag that makes it, "" for none."""

    name: str
    flag: str = ""


def judge_experiments(
    database: EvaluationDatabase,
    *,
    since: float | None = None,
    experiment: str = "",
    known: Callable[[], Mapping[str, PipelineLabel]] = dict,
) -> list[JudgedExperiment]:
    """Judges all experiments, or the one with this id; the one seen last comes first.

    An experiment in which the control answered twice, with both answers stored, is the noise floor of all experiments
    of that control. Evidence is the judgements of people and commands, and the uses of served memories.

    Args:
        database: The evaluation database.
        since: Only pairs since this time (epoch seconds); None for all.
        experiment: The id of one experiment; "" for all.
        known: Called for the names, by hash, of pipelines without a recorded answer.
    """
    asked = database.experiments(since, experiment=experiment)
    if not all(one.pairs for one in asked):
        called = known()
        asked = [one if one.pairs else _called(one, called) for one in asked]
    again = [one for one in asked if one.control.hash == one.variant.hash and one.mode == "shadow"]
    # the selection left out the experiment that measures noise: read it separately
    if experiment and asked and not again:
        control = asked[0].control.hash
        again = database.experiments(since, experiment=experiment_id(control, control, "shadow", asked[0].epoch))
    by_id = {one.id: tuple(database.pairs_of(one, since)) for one in (*asked, *again)}
    uses, now = database.uses(since), time.time()
    judgements = known_judgements(database)
    noise = {(one.control.hash, one.epoch): by_id[one.id] for one in again}
    variants = max(1, database.variants())  # all of them, so that no verdict depends on the selection

    def judge(one: ExperimentRecord) -> JudgedExperiment:
        pairs = by_id[one.id]
        queries = {pair.query.id for pair in pairs}
        graded = {query: grades for query, grades in judgements.items() if query in queries}
        seen = tuple(use for use in uses if use.query in queries)
        report = judge_experiment(
            pairs,
            experiment=one,
            judgements=graded,
            uses=seen,
            noise=noise.get((one.control.hash, one.epoch), ()),
            teams=teams_of(pairs),
            variants=variants,
            feedback=implicit_feedback((pair.query for pair in pairs), uses, now=now),
        )
        return JudgedExperiment(report, pairs, graded, seen)

    return [judge(one) for one in asked]


def _called(one: ExperimentRecord, known: Mapping[str, PipelineLabel]) -> ExperimentRecord:
    """An experiment that only lost queries, with the names of its pipelines."""
    control, variant = (
        record if record.name or record.hash not in known else replace(record, name=known[record.hash].name)
        for record in (one.control, one.variant)
    )
    flag = known[one.variant.hash].flag if one.variant.hash in known else one.flag
    return replace(one, control=control, variant=variant, flag=flag)


def teams_of(pairs: Iterable[RecordedPair]) -> Teams:
    """The pipeline that contributed each memory of interleaved answers; answers of one pipeline are left out."""
    names: dict[int, Team] = {1: "variant", -1: "control", 0: "both"}
    return {
        pair.query.id: {
            memory: names[team] for memory, team in zip(pair.control.memories, pair.variant.teams, strict=False)
        }
        for pair in pairs
        if pair.variant.teams
    }


def find_experiment(database: EvaluationDatabase, name: str) -> JudgedExperiment | None:
    """The experiment with this id, judged over all stored pairs; None where there is none."""
    return next(iter(judge_experiments(database, experiment=name)), None) if name else None


def known_judgements(database: EvaluationDatabase) -> Judgements:
    """Grades by people and commands, by query and memory; the latest grade of each counts."""
    known: dict[str, dict[int, float]] = {}
    # by time, so that the latest grade stays
    for judgement in database.judgements("judged"):
        known.setdefault(judgement.query, {})[judgement.memory] = float(judgement.grade)
    return known
