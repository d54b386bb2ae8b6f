"""Pairs a pipeline measured now with one that was measured earlier, query by query."""

from __future__ import annotations

import numpy as np

from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.evaluation.comparing.compare_report import CompareReport
from speckit_memory.evaluation.ground_truth.ground import GroundTruth
from speckit_memory.evaluation.running.run import EvaluationRun
from speckit_memory.evaluation.statistics.comparison import compare, without_losses
from speckit_memory.memory.store.evaluation.records import StoredEvaluation


def paired(
    measured: EvaluationRun, ground: GroundTruth, kept: StoredEvaluation, name: str, *, kind: str, at: float
) -> CompareReport:
    """The report on the one measured pipeline, with a stored pipeline as its control.

    Args:
        measured: The answers of one pipeline.
        ground: The source of the queries.
        kept: The stored evaluation.
        name: The stored pipeline; "" for the control of the stored evaluation.
        kind: The command that is recorded with the report.
        at: Time of the measurement in epoch seconds.

    Raises:
        SpeckitError: E030 unless the documents, queries and judgements are the stored ones, by their digest.
    """
    if kept.digest != ground.digest:
        message = (
            f"evaluation {kept.id} is of '{kept.dataset}' with the digest {kept.digest}, and this dataset has "
            f"{ground.digest}: the documents, queries or judgements differ, so nothing can be paired"
        )
        actions = ("gate against a pipeline or a revision", "measure again with `eval compare`")
        raise SpeckitError("E030", message, actions=actions)
    stored = kept.document["per_query"]
    names = list(stored["values"])
    if name and name not in names:
        raise SpeckitError("E030", f"evaluation {kept.id} has no pipeline '{name}'; {nearest(name, names)}")
    asked = tuple(query.id for query in measured.asked)
    if list(asked) != list(stored["queries"]):
        message = (
            f"evaluation {kept.id} is of {len(stored['queries']):,} queries; here {len(asked):,} other ones are asked"
        )
        raise SpeckitError("E030", message, actions=("leave out --queries",))
    chosen = name or names[0]
    ((now, values),) = measured.values.items()
    then = f"{chosen} of {kept.id}"
    columns = {metric: np.array(column) for metric, column in stored["values"][chosen].items()}
    entry = next(one for one in kept.document["pipelines"] if one["name"] == chosen)
    sides = {then: columns, now: values}
    (pipeline,) = measured.report.pipelines
    found = compare(sides, [(then, now)])
    return CompareReport(
        kind=kind,
        at=at,
        dataset=measured.report.dataset,
        digest=ground.digest,
        documents=measured.report.documents,
        queries=asked,
        no_relevant=measured.report.no_relevant,
        pipelines=({**entry, "name": then}, pipeline.as_json()),
        comparisons=without_losses(found) if ground.by_use else found,
        noise=None,
        contrasts=(),
        values=sides,
        warnings=(*measured.report.all_warnings(), *ground.warnings),
    )
