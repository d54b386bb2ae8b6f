"""`eval sensitivity`: measures how much one number of a pipeline matters (feature E5)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Unpack

from speckit_memory.engine import components
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.ground_truth.ground import GroundSource
from speckit_memory.evaluation.running.run import Evaluation, EvaluationOptions
from speckit_memory.evaluation.statistics.agreement import agree_each, mean_tau
from speckit_memory.evaluation.statistics.comparison import COMPARED_METRICS, Comparison, compare
from speckit_memory.evaluation.statistics.report import Report, Table, as_document, warnings_of
from speckit_memory.evaluation.statistics.sequential import mean_interval
from speckit_memory.pipeline.configuration.builder import check_pipeline
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.loading import PipelineSource
from speckit_memory.pipeline.configuration.variants import with_values

RANK_FUSION = "rrf"
VALUES = (20.0, 40.0, 60.0, 80.0, 100.0)
"""The values of k of reciprocal rank fusion that are measured; 60 is the original one (Cormack et al., SIGIR 2009)."""


@dataclass(frozen=True, slots=True)
class MeanMetric:
    """The mean of a metric over the queries, and its 95 % interval."""

    mean: float
    ci95: tuple[float, float]

    def __str__(self) -> str:
        return f"{self.mean:.4f} ({self.ci95[0]:.4f} to {self.ci95[1]:.4f})"


@dataclass(frozen=True, slots=True)
class Point:
    """One value: the mean Kendall tau-b of its rankings with those of the present value, and its metrics.

    `comparisons` are with the present value, in one family over all values. `changed` counts the
    queries whose order differs.
    """

    value: float
    present: bool
    kendall_tau_b: float | None
    changed: int
    metrics: Mapping[str, MeanMetric]
    comparisons: tuple[Comparison, ...]
    ENTRIES: ClassVar = {"changed": "ordering_differences"}


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The effect of a parameter on the answers of one pipeline."""

    pipeline: str
    parameter: str
    dataset: str
    digest: str
    queries: int
    points: tuple[Point, ...]
    warnings: tuple[str, ...]
    ENTRIES: ClassVar = {"points": "values", "sentence": "sentence"}

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        better = [p for p in self.points if any(c.verdict == "better" for c in p.comparisons)]
        worse = [p for p in self.points if any(c.verdict == "worse" for c in p.comparisons)]
        others = [p for p in self.points if not p.present]
        if not any(point.changed for point in others):
            return f"{self.parameter} changes no answer to these {self.queries:,} queries"
        told = [
            f"{_list(points)} significantly {word} than the present value"
            for points, word in ((better, "better"), (worse, "worse"))
            if points
        ]
        if not told:
            taus = [p.kendall_tau_b for p in others if p.kendall_tau_b is not None]
            lowest = f", and the rankings agree with a tau of {min(taus):.3f} or more" if taus else ""
            return f"no value of {self.parameter} is significantly better or worse than the present one{lowest}"
        return f"{self.parameter}: {'; '.join(told)}"

    def as_report(self) -> Report:
        """The verdict and a row for each value."""
        rows = [[self.parameter, "tau-b", "reordered", *(f"{m} (95 %)" for m in COMPARED_METRICS), "verdict"]]
        for point in self.points:
            tau = "-" if point.kendall_tau_b is None else f"{point.kendall_tau_b:.3f}"
            verdict = "present" if point.present else ", ".join(dict.fromkeys(c.verdict for c in point.comparisons))
            rows.append([f"{point.value:g}", tau, str(point.changed), *map(str, point.metrics.values()), verdict])
        return Report(
            f"{self.parameter} of {self.pipeline} on {self.dataset}, {self.queries:,} queries",
            verdict=self.sentence,
            tables=[Table(rows)],
            notes=warnings_of(self.warnings),
            data=as_document(self),
        )


def _list(points: Sequence[Point]) -> str:
    names = ", ".join(f"{point.value:g}" for point in points)
    return f"{names} {'is' if len(points) == 1 else 'are'}"


def sensitivity(
    source: GroundSource,
    pipeline: PipelineSource | None = None,
    *,
    parameter: str = "",
    step: str = "",
    values: Sequence[float] = VALUES,
    overrides: Mapping[str, str] | None = None,
    **options: Unpack[EvaluationOptions],
) -> Sensitivity:
    """Measures a pipeline with each value of one parameter, and with its present value.

    Args:
        source: Dataset or other source to measure on.
        pipeline: Path, preset or value; None for the pipeline that a search would use.
        parameter: "step.name", or "step.name.key" for a value of a mapping; "" for the k of the rank fusion.
        step: The rank fusion whose k is measured when `parameter` is ""; "" for the first one.
        values: The values to measure.
        overrides: YAML values by "step.parameter".
        options: See `EvaluationOptions`.

    Raises:
        SpeckitError: E033 when the pipeline has no such number (the error lists those it has), or with every problem of
            the pipeline or the dataset.
    """
    evaluation = Evaluation(source, **options)
    (whole,) = evaluation.load([pipeline] if pipeline is not None else (), overrides)
    numbers = dict(_numbers(whole, evaluation.environ))
    name = parameter or _k_of(whole, step, numbers)
    if name not in numbers:
        raise _unknown(name, whole.name, numbers)
    present = numbers[name]
    others = [value for value in dict.fromkeys(values) if value != present]
    # an integer parameter must get integers
    whole_numbers = isinstance(present, int)
    variants = [
        replace(with_values(whole, {name: json.dumps(_as_number(value, whole_numbers))}), name=f"{name}={value:g}")
        for value in others
    ]
    evaluation.load(variants)  # report the problems of all values before any work is done
    measured = evaluation.measure([whole, *variants])
    control, *names = measured.values
    compared = compare(measured.values, [(control, one) for one in names])
    points = [
        _point(
            measured.answers[control],
            measured.answers[one],
            measured.values[one],
            value,
            one == control,
            tuple(c for c in compared if c.b == one),
        )
        for one, value in zip((control, *names), (present, *others), strict=True)
    ]
    return Sensitivity(
        pipeline=whole.name,
        parameter=name,
        dataset=measured.report.dataset,
        digest=measured.ground.digest,
        queries=measured.report.queries,
        points=tuple(sorted(points, key=lambda point: point.value)),
        warnings=tuple(measured.report.all_warnings()),
    )


def _point(
    before: Sequence[Any],
    after: Sequence[Any],
    values: Mapping[str, Any],
    value: float,
    present: bool,
    comparisons: tuple[Comparison, ...],
) -> Point:
    agreements = agree_each((one.ranking, other.ranking) for one, other in zip(before, after, strict=True))
    # mean_interval takes (n,) float64 and gives both ends of the 95 % interval.
    metrics = {one: MeanMetric(float(values[one].mean()), mean_interval(values[one])) for one in COMPARED_METRICS}
    return Point(
        value, present, mean_tau(agreements), sum(one.ordering_difference for one in agreements), metrics, comparisons
    )


def _as_number(value: float, whole: bool) -> float | int:
    # 60.0 becomes 60; a fraction stays one, and the check of the pipeline refuses it.
    return int(value) if whole and value == int(value) else value


def _k_of(whole: Effective, step: str, numbers: Mapping[str, float]) -> str:
    """The name of the k of the rank fusion. Raises SpeckitError (E033) when there is none."""
    fusers = [one.id for one in whole.slots["fusion"] if one.use == RANK_FUSION and step in ("", one.id)]
    if not fusers:
        asked = f"rank fusion called '{step}'" if step else "rank fusion"
        hint = _steps(numbers)
        raise SpeckitError("E033", f"'{whole.name}' has no {asked}, and so no k", hint=hint, actions=_ACTIONS)
    return f"{fusers[0]}.k"


_ACTIONS = (
    "name a number with --parameter STEP.PARAM and give --values",
    "see them all with `speckit-memory pipeline show --effective`",
    "measure the preset rrf",
)
_NEAR = 3
"""Number of suggested names."""


def _unknown(name: str, pipeline: str, numbers: Mapping[str, float]) -> SpeckitError:
    """The error for an unknown number: suggests near names, else the numbers of the named step, else the steps."""
    from difflib import get_close_matches

    step = name.partition(".")[0]
    own = [other for other in numbers if other.partition(".")[0] == step]
    near = (
        get_close_matches(name, numbers, n=_NEAR, cutoff=0.7)
        or [other for other in numbers if name in other.split(".")][:_NEAR]
    )
    if near:
        hint = f"Nearest are {', '.join(f'{other} ({numbers[other]:g})' for other in near)}."
    elif own:
        names = ", ".join(other.partition(".")[2] for other in own)
        hint = f"The step '{step}' has {names}."
    else:
        hint = _steps(numbers)
    return SpeckitError("E033", f"--parameter: '{name}' is not a number of '{pipeline}'", hint=hint, actions=_ACTIONS)


def _steps(numbers: Mapping[str, float]) -> str:
    """Lists the steps that have numbers, or the numbers when they all belong to one step."""
    steps = list(dict.fromkeys(name.partition(".")[0] for name in numbers))
    if len(steps) == 1:
        return f"Its step '{steps[0]}' has {', '.join(name.partition('.')[2] for name in numbers)}."
    return f"Its {len(numbers)} numbers belong to the steps {', '.join(steps)}."


def _numbers(whole: Effective, environ: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    """Every number of every step by its name."""
    for entry in check_pipeline(whole, components.registry(environ)).bound:
        if entry.params is not None:
            yield from _within(entry.step.id, entry.params.model_dump(mode="json", by_alias=True))


def _within(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _within(f"{name}.{key}", inner)
    # bool is an int in Python, but not a number to vary.
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, value
