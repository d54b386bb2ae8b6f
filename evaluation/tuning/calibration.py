"""Calibrated abstention: fits the evidence threshold below which a question is called unanswerable (feature A4).

`evidence_gap` warns below a threshold. The threshold is fitted on judged queries so that a stated share of answerable
questions gets a warning; detection is measured on questions that the store cannot answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Unpack

import numpy as np

from speckit_memory.engine import components
from speckit_memory.engine.answers.request import MAX_LIMIT
from speckit_memory.errors import SpeckitError, out_of_range
from speckit_memory.evaluation.ground_truth.ground import GroundSource
from speckit_memory.evaluation.measuring.measure import EvaluationProgress, OnMeasured
from speckit_memory.evaluation.running.run import Evaluation, EvaluationOptions
from speckit_memory.evaluation.running.trials import OpenSet, open_sets
from speckit_memory.evaluation.statistics import folds as splits
from speckit_memory.evaluation.statistics.folds import Rows, folds
from speckit_memory.evaluation.tuning.calibration_report import CalibrationReport, Detection, Rate
from speckit_memory.pipeline.configuration.builder import examine
from speckit_memory.pipeline.configuration.declared import evidence_rule
from speckit_memory.pipeline.configuration.loading import PipelineSource
from speckit_memory.pipeline.model.columns import Mask
from speckit_memory.pipeline.ports import Column, Store
from speckit_memory.pipeline.roles.hooks import EvidenceRule
from speckit_memory.pipeline.running.lookup import coverage


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence for each question asked of one dataset: the coverage [0, 1] of its best rows, -1 without a row.

    `answerable`: judged queries. `removed`: the same queries, aligned, with their relevant documents removed from the
    answer. `foreign`: judged queries of the other datasets, at most as many; empty without another dataset. `fold` is
    the fold of each answerable query, and of the foreign query at the same position.
    """

    answerable: Column
    removed: Column
    foreign: Column
    fold: Rows


def collect(
    sets: Sequence[OpenSet], rule: EvidenceRule, count: int, *, seed: int, now: float, progress: OnMeasured
) -> list[Evidence]:
    """Asks every dataset its own questions, and as many questions of the other datasets in the same folders.

    Args:
        sets: The open datasets.
        rule: The rule of the step whose evidence is measured.
        count: Number of folds.
        seed: Seeds the choice of foreign questions and the folds.
        now: Time of all queries in epoch seconds.
        progress: Called after every question.
    """
    rng = np.random.default_rng(seed)
    total = sum(len(opened.queries) for opened in sets)
    done = 0
    collected = []
    for opened in sets:
        asked = _Asked(opened, opened.memory.session.view(), rule, now)
        answerable, removed, foreign = [], [], []
        # foreign questions search the folder of the question they accompany
        for query, other in zip_longest(opened.queries, _foreign(opened, sets, rng)):
            judged = opened.dataset.judgements[query.id]
            relevant = {key for key, grade in judged.items() if grade > 0}
            own, without = asked.evidence(query.text, query.folder, relevant)
            answerable.append(own)
            removed.append(without)
            if other is not None:
                foreign.append(asked.evidence(other, query.folder, ())[0])
            done += 1
            progress(EvaluationProgress("search", done, total))
        own_fold = folds(len(answerable), count, rng)
        collected.append(Evidence(np.array(answerable), np.array(removed), np.array(foreign, np.float64), own_fold))
    return collected


def _foreign(opened: OpenSet, sets: Sequence[OpenSet], rng: np.random.Generator) -> Iterator[str]:
    """Questions of the other datasets, alternating between them, each once; at most as many as this dataset has.

    Without another dataset, the questions that the source knows to be unanswerable.
    """
    others = [[query.text for query in other.queries] for other in sets if other is not opened]
    others = others or [[query.text for query in opened.unanswerable]]
    shuffled = [[texts[row] for row in rng.permutation(len(texts))] for texts in others]
    turns = [text for turn in zip_longest(*shuffled) for text in turn if text is not None]
    yield from turns[: len(opened.queries)]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A store that answers questions, and the rule that measures its evidence."""

    opened: OpenSet
    store: Store
    rule: EvidenceRule
    now: float

    def evidence(self, text: str, folder: str, relevant: Collection[str]) -> tuple[float, float]:
        """The evidence that `evidence_gap` finds for a question, with and without the relevant documents."""
        result = self.opened.memory.search(
            text, limit=MAX_LIMIT, folder=folder, now=self.now, deadline_ms=None, snippet=0
        )
        # pinned tiers surface for every question and are no evidence
        counted = [row for row in result.results if row.tier not in self.rule.ignore_tiers]
        return (
            self._coverage(result.outcome.query.terms, [row.id for row in counted]),
            self._coverage(result.outcome.query.terms, [row.id for row in counted if row.key not in relevant]),
        )

    def _coverage(self, terms: tuple[str, ...], memories: list[int]) -> float:
        best = np.array(memories[: self.rule.top], np.int64)
        return coverage(terms, best, self.store.lexicon, self.store.attributes.count) if len(best) else -1.0


SEED = 20
FALSE_ALARMS = 0.05
STEPS = 20
"""The nominal rate is lowered in steps of 1/`STEPS` of the stated rate until the held-out rate does not exceed it."""


def calibrate(
    pipeline: PipelineSource,
    datasets: Sequence[Path | GroundSource],
    *,
    false_alarms: float = FALSE_ALARMS,
    folds: int = splits.FOLDS,
    seed: int = SEED,
    **options: Unpack[EvaluationOptions],
) -> CalibrationReport:
    """Fits the threshold of a pipeline's step `evidence_gap`, form `coverage`, to a stated false-alarm rate.

    The false-alarm rate is the share of judged queries with a warning, averaged over the datasets. The threshold is
    fitted on all queries. The figures come from thresholds fitted without the fold of each query and, with several
    datasets, also from thresholds fitted without each dataset. Equal arguments give equal reports.

    Args:
        pipeline: Path, preset or value; it must have a step `evidence_gap`.
        datasets: Dataset folders or other sources to calibrate on.
        false_alarms: The accepted rate, between 0 and 1 (exclusive).
        folds: Number of folds, at least 2.
        seed: Seeds the samples, the folds and the choice of foreign questions.
        options: See `EvaluationOptions`.

    Raises:
        SpeckitError: E030 without a step `evidence_gap`, E032 for a rate or a number of queries or folds that cannot be
            used, or with the problems of the pipeline or the datasets.
    """
    evaluation = Evaluation(*datasets, **options)
    environ, report = evaluation.environ, evaluation.progress
    checked = examine(pipeline, components.registry(environ), environ)
    if checked.problems:
        raise SpeckitError.of(checked.problems)
    found = [(entry.step.id, rule) for entry in checked.bound if (rule := evidence_rule(entry))]
    if not found:
        raise SpeckitError("E030", f"the pipeline '{checked.effective.name}' has no step 'evidence_gap' to calibrate")
    if not 0 < false_alarms < 1:
        raise SpeckitError.of([out_of_range("the false-alarm rate", f"{false_alarms:g}", "between 0 and 1")])
    step, rule = found[0]
    asked = [(ground, evaluation.sample(ground, seed)) for ground in evaluation.grounds]
    names = [ground.dataset.name for ground, _ in asked]
    splits.check_folds(folds, {ground.dataset.name: len(chosen) for ground, chosen in asked})
    with open_sets(asked, checked.effective, environ=environ, progress=report) as sets:
        moment = evaluation.now
        evidence = collect(sets, rule, folds, seed=seed, now=moment, progress=report)
        warnings = tuple(f"{opened.name}: {warning}" for opened in sets for warning in opened.warnings)
    answerable = [one.answerable for one in evidence]
    # thresholds without each fold, at a rate lowered until the held-out rate is kept
    nominal, by_fold = _held_out_rates(evidence, false_alarms, folds)
    # thresholds fitted without each dataset: how well do they transfer?
    without = [
        threshold([column for other, column in enumerate(answerable) if other != place], nominal)
        for place in range(len(sets) if len(sets) > 1 else 0)
    ]
    return CalibrationReport(
        pipeline=checked.effective.name,
        hash=checked.hash,
        step=step,
        start=rule.limit,
        false_alarm_rate=false_alarms,
        threshold=threshold(answerable, nominal),
        by_fold=tuple(by_fold),
        seed=seed,
        before=None if rule.limit is None else _overall(evidence, [rule.limit] * folds),
        overall=_overall(evidence, by_fold),
        held_out=tuple(_detection(name, one, by_fold) for name, one in zip(names, evidence, strict=True)),
        left_out=tuple(
            _detection(name, one, [limit] * folds) for name, one, limit in zip(names, evidence, without, strict=False)
        ),
        warnings=warnings,
    )


def threshold(answerable: Sequence[Column], rate: float) -> float:
    """The largest threshold that warns on at most a share `rate` of answerable questions, averaged over the datasets.

    `answerable` holds one column of evidence per dataset; a question below the threshold gets a warning. Each dataset
    is counted with one more warning and one more question than it has, so that the rate also holds for the next
    question (split conformal prediction; Vovk et al. 2005). The threshold is rounded down to four digits. Raises
    SpeckitError (E032) when there are too few questions for so low a rate.
    """
    # candidates: (c,) float64, sorted; warned: (c,) the mean rate (warnings + 1) / (n + 1) at each candidate.
    candidates = np.unique(np.concatenate(answerable))
    warned = np.mean(
        [(np.searchsorted(np.sort(column), candidates) + 1) / (len(column) + 1) for column in answerable], axis=0
    )
    # -1 marks answers without a row: no threshold
    kept = candidates[(warned <= rate) & (candidates >= 0)]
    if not len(kept):
        count = sum(len(column) for column in answerable)
        message = f"{count} judged queries are too few, or find too little, to keep a false-alarm rate of {rate:g}"
        raise SpeckitError("E032", message, hint="Give more judged queries, or a higher rate.")
    # rounded down: a higher threshold would warn on more questions
    return float(np.floor(kept[-1] * 1e4) / 1e4)


def _held_out_rates(evidence: Sequence[Evidence], rate: float, folds: int) -> tuple[float, list[float]]:
    """The nominal rate at which held-out queries do not exceed the stated one, and the threshold without each fold."""
    for step in range(STEPS, 0, -1):
        nominal = rate * step / STEPS
        by_fold = [threshold([one.answerable[one.fold != fold] for one in evidence], nominal) for fold in range(folds)]
        # [0]: the answerable questions, where a warning is a false alarm
        if np.mean([_warned(one, by_fold)[0].mean() for one in evidence]) <= rate:
            break
    return nominal, by_fold


def _detection(name: str, evidence: Evidence, by_fold: Sequence[float]) -> Detection:
    """The warning rates on one dataset; each question is compared with the threshold of its fold."""
    return Detection(name, *(Rate.of(warned, np.ones(len(warned))) for warned in _warned(evidence, by_fold)))


def _overall(evidence: Sequence[Evidence], by_fold: Sequence[float]) -> Detection:
    """The warning rates over all datasets, with equal weight for each dataset."""
    rates = []
    for columns in zip(*(_warned(one, by_fold) for one in evidence), strict=True):
        # weights with mean 1, so that each dataset counts the same
        share = sum(map(len, columns)) / len(columns)
        weights = [np.full(len(column), share / max(len(column), 1)) for column in columns]
        rates.append(Rate.of(np.concatenate(columns), np.concatenate(weights)))
    return Detection("mean of all", *rates)


def _warned(evidence: Evidence, by_fold: Sequence[float]) -> tuple[Mask, Mask, Mask]:
    """Masks of the answerable, foreign and removed questions that get a warning."""
    # (n,) float64: for each question, the threshold that was fitted without its fold
    limits = np.take(by_fold, evidence.fold)
    return (
        evidence.answerable < limits,
        evidence.foreign < limits[: len(evidence.foreign)],
        evidence.removed < limits,
    )
