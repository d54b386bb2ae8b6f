"""Asks questions that a store can answer and questions that it cannot, and records the strength of the evidence."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from speckit_memory.engine.answers.request import MAX_LIMIT
from speckit_memory.evaluation.measuring.measure import EvaluationProgress, Report
from speckit_memory.evaluation.running.trials import OpenSet
from speckit_memory.evaluation.statistics.folds import Rows, folds
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
    sets: Sequence[OpenSet], rule: EvidenceRule, count: int, *, seed: int, now: float, progress: Report
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
        asked = _Asked(opened, opened.memory.store(), rule, now)
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
