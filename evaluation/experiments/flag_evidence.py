"""The comparisons that a flag can cite: live experiments and stored evaluations in one form (feature P11).

The figures of a live experiment are archived when it promotes a flag, because its queries are pruned in time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np

from speckit_memory.config.flags.criterion import METRICS, QUALITY
from speckit_memory.config.flags.flag import Flag
from speckit_memory.evaluation.experiments.criteria import Figure, Figures, promotion_lacks
from speckit_memory.evaluation.experiments.experiment_evidence import MetricEvidence
from speckit_memory.evaluation.experiments.experiment_quality import known_of, over_all, p_value, questions_of
from speckit_memory.evaluation.experiments.experiment_report import ExperimentReport
from speckit_memory.evaluation.experiments.experiments import JudgedExperiment, find_experiment
from speckit_memory.evaluation.statistics.comparison import COMPARED_METRICS
from speckit_memory.evaluation.statistics.report import as_document
from speckit_memory.evaluation.statistics.sequential import (
    anytime_interval,
    anytime_p,
    mean_interval,
    quantile_interval,
)
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase
from speckit_memory.memory.store.evaluation.records import StoredEvaluation
from speckit_memory.pipeline.ports import Column

LIVE = "live queries"
"""The origin of queries that users asked, in every store."""


@dataclass(frozen=True, slots=True)
class CitedComparison:
    """A comparison cited as evidence: the hash of its control, and its figures by the hash of each variant.

    It was made `at` (epoch seconds). `asked` holds each query as (origin, id); empty where they are not stored.
    """

    id: str
    control: str
    variants: Mapping[str, Figures]
    at: float = 0.0
    asked: frozenset[tuple[str, str]] = frozenset()


def find_comparison(database: EvaluationDatabase, name: str, *, promoted: bool = False) -> CitedComparison | None:
    """The comparison with this id, None where the database has none.

    The figures of a live experiment are stored when it promotes a flag. The stored figures are returned if they rest on
    more queries than are left.

    Args:
        database: The evaluation database.
        name: The id of the comparison.
        promoted: Returns the figures stored at the promotion of a flag, if there are any.
    """
    stored = database.evaluation(name)
    kept = stored is not None and "differences" in stored.document
    live = None if kept and promoted else find_experiment(database, name)
    if live is not None and not (stored and kept and stored.document["compared"] > live.report.compared):
        asked = frozenset((LIVE, pair.query.id) for pair in live.answered())
        latest = max(pair.query.at for pair in live.pairs) if live.pairs else 0.0
        shown = {live.report.variant.hash: ExperimentFigures(live)}
        return CitedComparison(name, live.report.control.hash, shown, latest, asked)
    if stored is None:
        return None
    control, *variants = (str(pipeline["hash"]) for pipeline in stored.document.get("pipelines", ({"hash": ""},)))
    if kept:
        figures: Mapping[str, Figures] = dict.fromkeys(variants, ArchivedFigures(stored.document))
    else:
        figures = {hashed: StoredFigures(stored, place) for place, hashed in enumerate(variants, 1)}
    origin = LIVE if kept else stored.dataset  # a replay asks live queries again
    queries = stored.document.get("per_query", {}).get("queries", ())
    return CitedComparison(name, control, figures, stored.at, frozenset((origin, str(query)) for query in queries))


def keep_evidence(database: EvaluationDatabase, name: str, at: float) -> None:
    """Stores the present figures of the live experiment with this id, unless figures over more queries are stored
    already.

    Other comparisons are stored anyway.
    """
    live, stored = find_experiment(database, name), database.evaluation(name)
    if live is None or (stored is not None and stored.document.get("compared", 0) > live.report.compared):
        return
    database.keep(as_evaluation(live.report, ExperimentFigures(live), at))


def missing(one: JudgedExperiment, flag: Flag) -> list[str]:
    """Lists what an experiment lacks to justify an enabled flag."""
    return promotion_lacks(flag, ExperimentFigures(one))


@dataclass(frozen=True, slots=True)
class ExperimentFigures:
    """The figures of an experiment, live or replayed, valid at any time.

    Only judgements can show that a variant is not worse: uses exist only for memories that the control served.
    """

    judged: JudgedExperiment

    def difference(self, metric: str) -> Figure | None:
        """A difference by interleaved answers, by times, or by judgements, else uses."""
        if metric == "interleaving":
            duels = self.judged.report.duels
            return Figure(duels.lead, duels.queries, duels.ci95, duels.p) if duels else None
        if metric == "p95_ms":
            return _apart(self._times(variant=True), self._times(variant=False))
        return self._quality(metric) if metric in QUALITY else None

    def _quality(self, metric: str) -> Figure | None:
        """The p is adjusted for the tests of all variants in the report and for this metric."""
        contrasts = self.judged.contrasts()
        metrics = tuple(dict.fromkeys((*COMPARED_METRICS, metric)))
        questions = questions_of(contrasts)
        family = known_of(questions, self.judged.judgements, self.judged.uses, metrics)
        if contrasts and not any(one.agreement.ordering_difference for one in contrasts):
            # equal rankings everywhere: every metric is known to differ by 0
            family = [MetricEvidence("judgements", metric, np.zeros(0), questions[1], 0)]
        tests = self.judged.report.variants * max(len(metrics), len(family))
        found = {one.evidence: one for one in family if one.metric == metric}
        best = found.get("judgements") or found.get("uses")
        if best is None:
            return None

        def over(times: float) -> tuple[float, float]:
            low, high = over_all(best.times(times))[1]
            # uses have no lower end, unless they show a gain
            return (low if best.evidence == "judgements" or low > 0 else -np.inf, high)

        delta = over_all(best)[0]
        known = len(best.column) + best.alike  # queries alike have a known difference of 0
        return Figure(delta, known, over(1), min(1.0, tests * p_value(best)), over)

    def own(self, metric: str) -> Figure | None:
        """The agreement of both pipelines, or the time of the variant."""
        if metric == "p95_ms":
            return _p95(self._times(variant=True))
        agreement = self.judged.report.agreement
        if agreement is None:
            return None
        if metric == "ordering_differences":
            return Figure(float(agreement.ordering_differences), agreement.queries)
        named = {"kendall_tau_b": agreement.kendall_tau_b, "overlap@10": agreement.overlap_10, "rbo": agreement.rbo}
        found = named.get(metric)
        return Figure(found.mean, agreement.queries, found.ci95) if found else None

    def _times(self, *, variant: bool) -> list[float]:
        pairs = self.judged.answered()
        return [(pair.variant.answer if variant else pair.control).total_ms for pair in pairs]


@dataclass(frozen=True, slots=True)
class StoredFigures:
    """The figures of a stored evaluation for the variant at index `place` of its pipelines; the control has index 0."""

    stored: StoredEvaluation
    place: int

    def difference(self, metric: str) -> Figure | None:
        """A difference over judged queries, by their stored values; times by their percentiles.

        An evaluation may be repeated until a criterion is met, so its interval is anytime-valid like that of a live
        experiment. It also allows for losses that no query has shown yet, which a bootstrap cannot draw.
        """
        if metric == "p95_ms":
            return _apart(self._times(self.place), self._times(0))
        # (n,) float64, variant minus control per query
        differences = self._differences(self.place, metric)
        if metric not in (*QUALITY, "interleaving") or differences is None:
            return None

        def over(times: float) -> tuple[float, float]:
            # np.resize repeats the column cyclically, as if more such queries had come
            return anytime_interval(np.resize(differences, round(times * len(differences))))

        verdict = self._entry("comparisons", "b", str(self._pipelines[self.place]["name"]), metric=metric).get(
            "verdict"
        )
        return Figure(
            float(differences.mean()), len(differences), over(1), self._p(metric, differences), over, str(verdict or "")
        )

    def _p(self, metric: str, differences: Column) -> float:
        """The p adjusted for this metric and all tests of the report, over all its variants; preferences are one
        test."""
        tested = {metric} if metric == "interleaving" else {metric, *COMPARED_METRICS}
        tests = (len(self._pipelines) - 1) * len(tested)
        return min(1.0, tests * anytime_p(differences))

    def _differences(self, place: int, metric: str) -> Column | None:
        values = self.stored.document.get("per_query", {}).get("values", {})
        names = [str(self._pipelines[one]["name"]) for one in (place, 0)]
        columns = [values.get(name, {}).get(metric) for name in names]
        if any(column is None for column in columns):
            return None
        return np.array(columns[0], np.float64) - np.array(columns[1], np.float64)

    def own(self, metric: str) -> Figure | None:
        """The mean of the variant, its agreement with the control, or its time."""
        if metric == "p95_ms":
            return _p95(self._times(self.place))
        pipeline = self._pipelines[self.place]
        if metric in QUALITY:
            values = self.stored.document.get("per_query", {}).get("values", {}).get(str(pipeline["name"]), {})
            if not values.get(metric):
                return None
            column = np.array(values[metric], np.float64)
            return Figure(float(column.mean()), len(column), mean_interval(column))
        found = self._entry("contrasts", "variant", str(pipeline["name"])).get(metric)
        return None if found is None else Figure(float(found), self._queries)

    @property
    def _pipelines(self) -> Sequence[Mapping[str, Any]]:
        pipelines: Sequence[Mapping[str, Any]] = self.stored.document["pipelines"]
        return pipelines

    @property
    def _queries(self) -> int:
        return len(self.stored.document.get("per_query", {}).get("queries", ()))

    def _times(self, place: int) -> Sequence[float]:
        times: Mapping[str, Sequence[float]] = self.stored.document.get("per_query", {}).get("ms", {})
        return times.get(str(self._pipelines[place]["name"]), ())

    def _entry(self, key: str, by: str, name: str, **wanted: str) -> Mapping[str, Any]:
        for entry in self.stored.document.get(key) or ():
            if entry.get(by) == name and all(entry.get(one) == value for one, value in wanted.items()):
                found: Mapping[str, Any] = entry
                return found
        return {}


def _p95(times: Sequence[float], level: float = 0.95) -> Figure | None:
    """The 95th percentile of times (ms) with its interval; None without queries."""
    if not times:
        return None
    column = np.array(times, np.float64)
    return Figure(float(np.percentile(column, 95)), len(times), quantile_interval(column, 0.95, level=level))


def _apart(variant: Sequence[float], control: Sequence[float]) -> Figure | None:
    """The difference of two 95th percentiles. Each interval has half the error rate, so that both hold together at
    95 %."""
    one, other = _p95(variant, 0.975), _p95(control, 0.975)
    if one is None or other is None or one.interval is None or other.interval is None:
        return None
    # the difference of two intervals: low - high, high - low
    ends = (one.interval[0] - other.interval[1], one.interval[1] - other.interval[0])
    return Figure(one.value - other.value, one.queries, ends)


KIND = "promotion"


def as_evaluation(report: ExperimentReport, figures: Figures, at: float) -> StoredEvaluation:
    """The report and every figure that a criterion can use, under the id of the experiment; no query is quoted."""
    document = {**archive_report(report, figures), "report": as_document(report)}
    return StoredEvaluation(report.id, KIND, at, "live", "", document)


def archive_report(report: ExperimentReport, figures: Figures) -> dict[str, Any]:
    """The two pipelines and every figure that a criterion can use, as a document for `ArchivedFigures`."""
    return {
        "pipelines": [{"name": one.name, "hash": one.hash} for one in (report.control, report.variant)],
        "compared": report.compared,
        "differences": _as_document(figures.difference),
        "own": _as_document(figures.own),
    }


@dataclass(frozen=True, slots=True)
class ArchivedFigures:
    """The figures of an experiment at the time when it promoted a flag."""

    document: Mapping[str, Any]

    def difference(self, metric: str) -> Figure | None:
        """The variant minus the control at that time."""
        return _read(self.document["differences"].get(metric))

    def own(self, metric: str) -> Figure | None:
        """The variant's own figure, or the agreement of both, at that time."""
        return _read(self.document["own"].get(metric))


def _as_document(figure: Callable[[str], Figure | None]) -> dict[str, dict[str, Any]]:
    found = {metric: figure(metric) for metric in METRICS}
    return {
        metric: {
            "value": one.value,
            "queries": one.queries,
            # JSON has no infinity: an open end is null, and `_read` restores it
            "interval": one.interval and [end if isfinite(end) else None for end in one.interval],
            "p": one.p,
        }
        for metric, one in found.items()
        if one is not None
    }


def _read(entry: Mapping[str, Any] | None) -> Figure | None:
    if entry is None:
        return None
    interval = None
    if entry["interval"]:
        low, high = entry["interval"]
        interval = (-inf if low is None else low, inf if high is None else high)
    return Figure(entry["value"], entry["queries"], interval, entry["p"])
