"""The demo's live experiment: a shadow pipeline answers curated queries alongside the served one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speckit_memory.config.workspace.settings import settings
from speckit_memory.evaluation import bundled

if TYPE_CHECKING:
    from speckit_memory.server.console.arguments.options import Common
    from speckit_memory.server.console.progress import ProgressReporter
    from speckit_memory.server.shadows.report import ShadowReport

VARIANT = "vector"
"""The shadow pipeline; it answers the usual first question: would vectors alone be enough?"""
QUERIES = 60
"""Size of the sample of queries, always the same one. It suffices to decide a difference of this size."""
WAIT_SECONDS = 300.0
CONFIGURATION = "evaluation: {keep_texts: 7}\n"
"""The configuration of the demo's workspace: query texts are kept, so that the report can show them."""


@dataclass(frozen=True, slots=True)
class LiveShadow:
    """The outcome of the experiment, and the number of queries."""

    report: ShadowReport
    asked: int

    def as_json(self) -> dict[str, Any]:
        """The entry `shadow` of `demo --json`."""
        sentence = self.report.sentence()
        return {"variant": VARIANT, "queries": self.asked, "sentence": sentence, **self.report.as_report().data}


def live_shadow(common: Common, store: Path, root: Path, bar: ProgressReporter) -> LiveShadow:
    """Runs the queries on a store of the demo's documents, and judges both answers by the curated labels.

    Args:
        common: The options that all commands share.
        store: File of the demo's store.
        root: Folder of the demo's workspace; its configuration is written here.
        bar: Receives the progress.
    """
    from speckit_memory.engine import Memory
    from speckit_memory.evaluation.datasets.dataset import read
    from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
    from speckit_memory.memory.store.evaluation.records import QueryJudgement
    from speckit_memory.server.shadows import report

    began = time.time()
    dataset = read(bundled.FOLDER)
    judged_queries = dataset.judged()
    # every n-th judged query: the same sample in every run
    asked = judged_queries[:: max(1, len(judged_queries) // QUERIES)][:QUERIES]
    control = str(common.pipeline or settings(root=root).pipeline)
    pipeline = {"extends": control, "pipeline": Path(control).stem, "shadows": [VARIANT]}
    judged: list[QueryJudgement] = []
    (root / ".speckit").mkdir(exist_ok=True)
    (root / ".speckit" / "config.yaml").write_text(CONFIGURATION, encoding="utf-8")
    with Memory.open(store, pipeline, root=root, overrides=common.overrides) as memory:
        records, _ = memory.list(limit=len(dataset.keys))
        ids = {record.key: record.id for record in records}
        for number, query in enumerate(asked, start=1):
            result = memory.search(query.text, folder=query.folder, deadline_ms=None)
            memory.feedback.delivered(result)
            grades = _grades(dataset.judgements[query.id], ids)
            judged += [
                QueryJudgement(result.query_id, memory_id, grade, "judged", "demo", time.time())
                for memory_id, grade in grades.items()
            ]
            bar.update(number, 2 * len(asked), "running curated queries")
        # shadows run in the background: wait for them, or the report would be incomplete
        memory.shadows.finish(
            WAIT_SECONDS,
            lambda done, total: bar.update(total + done, 2 * total, "running the shadow pipeline"),
        )
    with closing(EvaluationDatabase.open(evaluation_file(store))) as database:
        database.judge(judged)
    shown = report.read(store, since=began, experiment="", now=time.time(), nothing=str)
    return LiveShadow(shown, len(asked))


def _grades(judgements: Mapping[str, float], ids: Mapping[str, int]) -> dict[int, int]:
    """The grade of every document by memory id; 0 without a label, as in the metrics."""
    return {memory: int(judgements.get(key, 0)) for key, memory in ids.items()}
