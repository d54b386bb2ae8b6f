"""What the evaluation database knows of pipelines side by side, read and judged (features P4, P5)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from speckit_memory.evaluation.experiments.experiment import judge_experiment
from speckit_memory.evaluation.experiments.experiment_agreement import contrast
from speckit_memory.evaluation.experiments.experiment_costs import answered
from speckit_memory.evaluation.experiments.experiment_evidence import Judgements
from speckit_memory.evaluation.experiments.experiment_report import Contrast, ExperimentReport
from speckit_memory.evaluation.experiments.implicit_feedback import implicit_feedback
from speckit_memory.evaluation.experiments.interleaving import Team, Teams
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import Experiment, Pair, UseRecord, experiment_id


@dataclass(frozen=True, slots=True)
class Judged:
    """An experiment: what it has shown, and the pairs that show it, by time, with what is known of their answers."""

    report: ExperimentReport
    pairs: tuple[Pair, ...]
    judgements: Judgements
    uses: tuple[UseRecord, ...] = ()

    def answered(self) -> list[Pair]:
        """The queries that both pipelines answered."""
        return answered(self.pairs)

    def contrasts(self) -> list[Contrast]:
        """These, compared one by one; none where the report compares no rankings."""
        return [] if self.report.agreement is None else [contrast(pair) for pair in self.answered()]


@dataclass(frozen=True, slots=True)
class Called:
    """What a pipeline is called where no answer of it was recorded, and the flag that makes it, "" for none."""

    name: str
    flag: str = ""


def judged(
    database: EvaluationDatabase,
    *,
    since: float | None = None,
    experiment: str = "",
    known: Callable[[], Mapping[str, Called]] = dict,
) -> list[Judged]:
    """All experiments since `since` (epoch seconds), or the one of this id; the one seen last comes first.

    What a control does when it answers twice, beside itself and with both answers kept, is the noise floor of all its
    experiments. Judgements of people and commands count, and what readers did with what was served. `known` is asked,
    by hash, for pipelines of which no answer was recorded.
    """
    asked = database.experiments(since, experiment=experiment)
    if not all(one.pairs for one in asked):
        called = known()
        asked = [one if one.pairs else _called(one, called) for one in asked]
    again = [one for one in asked if one.control.hash == one.variant.hash and one.mode == "shadow"]
    if experiment and asked and not again:
        control = asked[0].control.hash
        again = database.experiments(since, experiment=experiment_id(control, control, "shadow", asked[0].epoch))
    by_id = {one.id: tuple(database.pairs_of(one, since)) for one in (*asked, *again)}
    uses, now = database.uses(since), time.time()
    judgements = known_judgements(database)
    noise = {(one.control.hash, one.epoch): by_id[one.id] for one in again}
    variants = max(1, database.variants())  # also of those that are not asked for, so that each has one verdict

    def judge(one: Experiment) -> Judged:
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
        return Judged(report, pairs, graded, seen)

    return [judge(one) for one in asked]


def _called(one: Experiment, known: Mapping[str, Called]) -> Experiment:
    """An experiment that only lost queries, with what its pipelines are called."""
    control, variant = (
        record if record.name or record.hash not in known else replace(record, name=known[record.hash].name)
        for record in (one.control, one.variant)
    )
    flag = known[one.variant.hash].flag if one.variant.hash in known else one.flag
    return replace(one, control=control, variant=variant, flag=flag)


def teams_of(pairs: Iterable[Pair]) -> Teams:
    """Which pipeline put what into answers that were mixed; nothing for those that were served as they were."""
    names: dict[int, Team] = {1: "variant", -1: "control", 0: "both"}
    return {
        pair.query.id: {
            memory: names[team] for memory, team in zip(pair.control.memories, pair.variant.teams, strict=False)
        }
        for pair in pairs
        if pair.variant.teams
    }


def evidence(database: EvaluationDatabase, experiment: str) -> ExperimentReport | None:
    """What the experiment of this id has shown, over all that is kept; None where there is none."""
    return next((one.report for one in judged(database, experiment=experiment)), None) if experiment else None


def known_judgements(database: EvaluationDatabase) -> Judgements:
    """What people and commands said of memories, by query; the latest word on each holds."""
    known: dict[str, dict[int, float]] = {}
    for judgement in database.judgements("judged"):
        known.setdefault(judgement.query, {})[judgement.memory] = float(judgement.grade)
    return known
