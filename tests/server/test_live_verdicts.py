"""What live shadows show of pipelines of which it is known: the same one again, and one that was made worse."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from speckit_memory.engine import Memory
from speckit_memory.evaluation import bundled
from speckit_memory.evaluation.datasets.dataset import read
from speckit_memory.evaluation.measuring.measure import source_of
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from speckit_memory.memory.store.evaluation.records import QueryJudgement
from tests.server.doors import call

QUERIES = 300
WEAK = """\
pipeline: weak
extends: default
candidates:
  channels: {remove: [bm25, phrase, identifier, surface]}
  recover: []
fusion: [{use: z_score, weights: {vector: 0.0, graph: 1.0, trigger: 1.0, constitutional: 0.0}}]
rerank: {remove: [named]}
"""


@pytest.mark.requirement("P5.sentence", "P5.ordering")
@pytest.mark.usefixtures("simulated")
def test_over_300_live_queries_the_same_pipeline_orders_alike_and_a_planted_regression_is_worse(tmp_path: Path) -> None:
    root, store = tmp_path, tmp_path / "memory.db"
    dataset = read(bundled.FOLDER)
    (root / ".speckit").mkdir()
    (root / "weak.yaml").write_text(WEAK)
    (root / ".speckit" / "pipeline.yaml").write_text("pipeline: ours\nshadows: [default, ../weak.yaml]\n")
    curated = list(dataset.judged())
    # each again with a word before it, until there are enough
    asked = [(f"{word} {query.text}".strip(), query) for word in ("", "about", "why") for query in curated][:QUERIES]
    with Memory.open(store, root=root, environ={}) as memory:
        memory.index_documents(source_of(document) for document in dataset.corpus())
        ids = {key: memory.get(key).id for key in dataset.keys}
        judged = []
        for text, query in asked:
            result = memory.search(text, deadline_ms=None)
            memory.feedback.delivered(result)
            grades = dataset.judgements[query.id]
            judged += [
                QueryJudgement(result.query_id, number, int(grades.get(key, 0)), "judged", "us", time.time())
                for key, number in ids.items()
            ]
    with EvaluationDatabase.open(evaluation_file(store)) as database:
        database.judge(judged)

    document = call(root, ["shadow", "report", "--json"]).json
    found = {one["variant"]["name"]: one for one in document["comparisons"]}

    same, weak = found["ours"], found["weak"]
    assert (same["queries"], same["ordering_differences"], same["verdict"]) == (QUERIES, 0, "undecided")
    assert same["sentence"].startswith("Undecided: ours again gave the same memories in the same order")
    assert (weak["queries"], weak["verdict"]) == (QUERIES, "worse")
    low, high = weak["quality"][0]["ci95"]
    assert low < weak["quality"][0]["delta"] < high < 0
    assert weak["sentence"].startswith("weak is worse than ours on nDCG@10 (-")
    assert weak["noise_floor"]["ordering_differences"] == 0
