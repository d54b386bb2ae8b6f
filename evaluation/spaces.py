"""Are answers better with the vectors of another model? Both, on the same store and the same questions (feature I6).

The store is copied, the other vectors are put in use in the copy, and both are asked through the pipeline in force:
queries that were asked before, whose answers can only be told apart, and queries made of what is remembered, which have
a right answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from speckit_memory.config.settings import EMBEDDER_VARIABLE, EVALUATION_VARIABLE
from speckit_memory.engine.memory import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.agreement import agree
from speckit_memory.evaluation.comparison import Comparison, compare
from speckit_memory.evaluation.documents import DatasetDocument
from speckit_memory.evaluation.made_queries.kinds import KINDS
from speckit_memory.evaluation.made_queries.making import Maker
from speckit_memory.evaluation.metrics import DEPTH, evaluate
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from speckit_memory.memory.store.file.copying import copy_into
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import Tier

MADE = 25
"""Queries that are made of each kind."""
ASKED_BEFORE = 200
"""So many queries of those noted are asked again, the latest."""
READ = 2_000
"""So many memories queries are made of."""

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class SpaceComparison:
    """What other vectors change. `comparisons` are verdicts on the new ones over `made` queries with a right answer.

    Of `asked` queries that had been asked before, `other_first` get another first result; `overlap_10` is the mean
    share of the first ten results that both have, None where none was noted.
    """

    before: str
    after: str
    made: int
    means: dict[str, tuple[float, float]]
    comparisons: tuple[Comparison, ...]
    asked: int
    other_first: int
    overlap_10: float | None

    def as_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    def as_text(self) -> str:
        """For a reader."""
        lines = [f"{self.before} now, {self.after} compared with it:"]
        for metric, (old, new) in self.means.items():
            found = next((one for one in self.comparisons if one.metric == metric), None)
            verdict = f", {found.verdict} ({found.ci95[0]:+.4f} to {found.ci95[1]:+.4f})" if found else ""
            lines.append(f"  {metric} {old:.4f} -> {new:.4f}{verdict}")
        lines.append(f"  over {self.made:,} queries made of what is remembered, each with a right answer")
        if self.overlap_10 is None:
            lines.append("  no query was noted that could be asked again")
        else:
            lines.append(
                f"  of {self.asked:,} queries asked before, {self.other_first:,} get another first result; "
                f"{self.overlap_10:.0%} of the first ten results stay"
            )
        return "\n".join(lines)


def compare_spaces(memory: Memory, name: str, progress: OnProgress | None = None) -> SpaceComparison:
    """Compares the vectors in use with those of a model, which must have been made. Writes nothing to the store.

    Raises E125 when no query can be made of what is remembered.
    """
    made = _made(memory)
    before = _asked_before(memory)
    environ = {**memory.settings.environ, EVALUATION_VARIABLE: "off", EMBEDDER_VARIABLE: name}
    pipeline = memory.settings.pipeline
    with TemporaryDirectory(prefix="speckit-models-") as folder:
        copy = Path(folder) / "memory.db"
        copy_into(memory.database.reader(), copy)
        with (
            Memory.open(copy, pipeline, root=memory.settings.root, environ=environ, shadows=False) as other,
            memory.using(pipeline) as control,
        ):
            changed = other.use_model(name)
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
    judged = [dict.fromkeys(relevant, 1.0) for _, relevant in made]
    sides = {
        "now": evaluate(rankings[control], judged),
        "compared": evaluate(rankings[other], judged),
    }
    agreed = [agree([(key, 0.0) for key in old], [(key, 0.0) for key in new]) for old, new in pairs]
    return SpaceComparison(
        before=changed.before,
        after=changed.after,
        made=len(made),
        means={
            metric: (float(column.mean()), float(sides["compared"][metric].mean()))
            for metric, column in sides["now"].items()
        },
        comparisons=compare(sides, [("now", "compared")]),
        asked=len(before),
        other_first=sum(old[:1] != new[:1] for old, new in pairs),
        overlap_10=float(np.mean([one.overlap_10 for one in agreed])) if agreed else None,
    )


def _made(memory: Memory) -> list[tuple[str, tuple[str, ...]]]:
    records, _ = memory.list(limit=READ)
    connection = memory.database.reader()
    documents = [
        DatasetDocument(record.key, record.title, reader.body(connection, record.id), record.folder)
        for record in records
    ]
    maker = Maker(documents, scoped=False)
    found = [(query.query.text, query.relevant) for kind in KINDS for query in maker.make(kind, MADE)]
    if not found:
        raise SpeckitError("E125", "no query can be made of what is remembered: there is too little of it")
    return found


def _asked_before(memory: Memory) -> list[dict[str, Any]]:
    log = evaluation_file(memory.database.path)
    if not log.exists():
        return []
    with EvaluationDatabase.open(log, create=False) as database:
        served = database.served(None)
    asked = [dict(seen.query.question) for seen in served if seen.query.question]
    return [
        {name: question[name] for name in ("text", "folder", "tier", "context_type") if name in question}
        for question in asked[-ASKED_BEFORE:]
        if question.get("text")
    ]
