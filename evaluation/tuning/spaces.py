"""Compares the vectors of two embedding models on the same store and questions (feature I6).

The store is copied, the other vectors are activated in the copy, and both are searched with the pipeline in use:
recorded queries, whose answers can only be compared, and queries made of the memories, which have a right answer.
Lexical search answers most of these regardless of the vectors, so the bundled dataset is searched by vectors alone as
well: it shows whether any vectors are meaningful.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from speckit_memory.config.workspace.settings import EMBEDDER_VARIABLE, EVALUATION_VARIABLE
from speckit_memory.engine.api.memory import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation import bundled
from speckit_memory.evaluation.datasets.documents import DatasetDocument
from speckit_memory.evaluation.made_queries.kinds import KINDS
from speckit_memory.evaluation.made_queries.query_maker import QueryMaker
from speckit_memory.evaluation.measuring.measure import EvaluationProgress
from speckit_memory.evaluation.running.run import Evaluation
from speckit_memory.evaluation.statistics.agreement import agree_each
from speckit_memory.evaluation.statistics.comparison import Comparison, Values, compare
from speckit_memory.evaluation.statistics.metrics import DEPTH, METRICS, evaluate
from speckit_memory.evaluation.statistics.report import Report, Table, as_document
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, read_if_there
from speckit_memory.memory.store.file.copying import copy_into
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import Tier

MADE = 25
"""Number of queries made of each kind."""
ASKED_BEFORE = 200
"""Number of recorded queries that are asked again, the latest ones."""
READ = 2_000
"""Number of memories that queries are made of."""
ALONE = "vector"
"""The preset that ranks by vectors alone."""
JUDGED = bundled.FOLDER
"""The dataset that shows whether vectors are meaningful."""

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class SpaceComparison:
    """The effect of other vectors.

    `comparisons` are verdicts on the new vectors over `made` queries with a right answer; `alone` those over the
    `judged` questions of the bundled dataset, ranked by vectors alone. Nothing is called the same where `alone` finds
    the new vectors worse, or is empty. Of `asked` recorded queries, `other_first` get another first result;
    `overlap_10` is the mean share of the first ten results that both have, None without recorded queries.
    """

    before: str
    after: str
    made: int
    means: dict[str, tuple[float, float]]
    comparisons: tuple[Comparison, ...]
    asked: int
    other_first: int
    overlap_10: float | None
    judged: int = 0
    alone_means: dict[str, tuple[float, float]] = field(default_factory=dict)
    alone: tuple[Comparison, ...] = ()

    @property
    def worse(self) -> bool:
        """Whether any verdict is against the new vectors."""
        return any(one.verdict == "worse" for one in (*self.comparisons, *self.alone))

    def as_report(self) -> Report:
        """A table of the metrics for each kind of queries, and how far answers to recorded queries change."""
        tables, notes = [], []
        if self.made:
            title = f"over {self.made:,} queries made of the memories, each with a right answer"
            tables.append(_figures(title, self.means, self.comparisons))
        else:
            notes.append("no query can be made of the memories: there are too few of them")
        if self.judged:
            title = f"by vectors alone, over {self.judged:,} judged questions about the product's documents"
            tables.append(_figures(title, self.alone_means, self.alone))
        else:
            notes.append("the judged questions that ship were not asked: the model in use is not available")
        if self.overlap_10 is None:
            notes.append("no recorded query could be asked again")
        else:
            notes.append(
                f"of {self.asked:,} queries asked before, {self.other_first:,} get another first result; "
                f"{self.overlap_10:.0%} of the first ten results stay"
            )
        title = f"{self.before} now, {self.after} compared with it"
        return Report(title, tables=tables, notes=notes, data=as_document(self))


def compare_spaces(memory: Memory, name: str, progress: OnProgress | None = None) -> SpaceComparison:
    """Compares the vectors in use with those of a model, which must exist already. Writes nothing to the store."""
    made = _make_queries(memory)
    before = _asked_before(memory)
    environ = {**memory.session.settings.environ, EVALUATION_VARIABLE: "off", EMBEDDER_VARIABLE: name}
    pipeline = memory.session.settings.pipeline
    with TemporaryDirectory(prefix="speckit-models-") as folder:
        copy = Path(folder) / "memory.db"
        copy_into(memory.session.database.reader(), copy)
        with (
            Memory.open(copy, pipeline, root=memory.session.settings.root, environ=environ, shadows=False) as other,
            memory.using(pipeline) as control,
        ):
            changed = other.models.use(name)
            total, done = 2 * (len(made) + len(before)), 0

            def ask(which: Memory, **question: Any) -> list[str]:
                nonlocal done
                done += 1
                if progress:
                    progress(done, total)
                try:
                    asked = {**question, "limit": DEPTH, "snippet": 0, "deadline_ms": None}
                    found = which.search(**asked).results
                    return [row.key for row in found if row.tier != Tier.CONSTITUTIONAL]
                except SpeckitError:
                    return []

            rankings = {which: [ask(which, text=text) for text, _ in made] for which in (control, other)}
            pairs = [(ask(control, **question), ask(other, **question)) for question in before]
    alone = _alone(memory, name, progress)
    told = compare(alone, [("now", "compared")]) if alone else ()
    judged = [dict.fromkeys(relevant, 1.0) for _, relevant in made]
    sides = {
        "now": evaluate(rankings[control], judged),
        "compared": evaluate(rankings[other], judged),
    }
    # only orders are compared, so every score is 0
    agreed = agree_each(([(key, 0.0) for key in old], [(key, 0.0) for key in new]) for old, new in pairs)
    comparisons = compare(sides, [("now", "compared")]) if made else ()
    # lexical search hides vectors: without evidence from vectors alone, "same" is not shown
    if not told or any(one.verdict == "worse" for one in told):
        comparisons = tuple(replace(one, verdict="undecided") if one.verdict == "same" else one for one in comparisons)
    return SpaceComparison(
        before=changed.before,
        after=changed.after,
        made=len(made),
        means=_means(sides) if made else {},
        comparisons=comparisons,
        asked=len(before),
        other_first=sum(old[:1] != new[:1] for old, new in pairs),
        overlap_10=float(np.mean([one.overlap_10 for one in agreed])) if agreed else None,
        judged=len(alone["now"][METRICS[0]]) if alone else 0,
        alone_means=_means(alone) if alone else {},
        alone=told,
    )


def _means(sides: Mapping[str, Values]) -> dict[str, tuple[float, float]]:
    now, compared = sides["now"], sides["compared"]
    return {metric: (float(column.mean()), float(compared[metric].mean())) for metric, column in now.items()}


def _figures(title: str, means: Mapping[str, tuple[float, float]], comparisons: Sequence[Comparison]) -> Table:
    compared = {c.metric: (f"{c.ci95[0]:+.4f} to {c.ci95[1]:+.4f}", c.verdict) for c in comparisons}
    rows = [("metric", "now", "compared", "95 % interval", "verdict")]
    rows += [
        (metric, f"{old:.4f}", f"{new:.4f}", *compared.get(metric, ("", ""))) for metric, (old, new) in means.items()
    ]
    return Table(rows, title)


def _alone(memory: Memory, name: str, progress: OnProgress | None) -> dict[str, Values]:
    """The metrics of the vectors in use and of a model alone on the bundled dataset; empty where the model in use is
    not available any more."""
    known = memory.models.list()
    stamp = known.stamps.get(known.serving)

    def forward(now: EvaluationProgress) -> None:
        if progress:
            progress(now.done, now.total)

    sides: dict[str, Values] = {}
    for side, model in (("now", stamp.name if stamp else ""), ("compared", name)):
        environ = {**memory.session.settings.environ, EVALUATION_VARIABLE: "off", EMBEDDER_VARIABLE: model}
        try:
            measured = Evaluation(JUDGED, environ=environ, progress=forward).measure([ALONE])
        except SpeckitError:
            if side == "now":
                return {}
            raise
        # the name now gives another model than the one in use
        if side == "now" and measured.report.embedder != known.serving:
            return {}
        (sides[side],) = measured.values.values()
    return sides


def _make_queries(memory: Memory) -> list[tuple[str, tuple[str, ...]]]:
    records, _ = memory.list(limit=READ)
    connection = memory.session.database.reader()
    documents = [
        DatasetDocument(record.key, record.title, reader.body(connection, record.id), record.folder)
        for record in records
    ]
    maker = QueryMaker(documents, scoped=False)
    return [(query.query.text, query.relevant) for kind in KINDS for query in maker.make(kind, MADE)]


def _asked_before(memory: Memory) -> list[dict[str, Any]]:
    served = read_if_there(memory.session.database.path, EvaluationDatabase.served) or ()
    asked = [dict(seen.query.question) for seen in served if seen.query.question]
    return [
        {name: question[name] for name in ("text", "folder", "tier", "context_type") if name in question}
        for question in asked[-ASKED_BEFORE:]
        if question.get("text")
    ]
