"""The baseline that counts query words as grep does."""

from __future__ import annotations

import json
from pathlib import Path

from bench.grep_baseline import folder_of, rankings
from speckit_memory.evaluation import bundled
from speckit_memory.evaluation.datasets.dataset import DatasetQuery, read

DOCUMENTS = [
    {"_id": "b", "title": "Rank fusion", "text": "Scores, not ranks.", "metadata": {"folder": "x"}},
    {"_id": "a", "title": "Rank", "text": "rank rank RANK", "metadata": {"folder": "y"}},
    {"_id": "c", "title": "Ranking", "text": "Infusion.", "metadata": {"folder": "x"}},
]


def test_documents_are_ordered_by_distinct_whole_words_and_then_by_key(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, DOCUMENTS)), encoding="utf-8")
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "rank", "metadata": {}}\n', encoding="utf-8")
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n", encoding="utf-8")
    queries = [DatasetQuery("1", "RANK fusion"), DatasetQuery("2", "rank"), DatasetQuery("3", "rank", folder="x")]

    assert rankings(read(tmp_path), queries) == [["b", "a"], ["a", "b"], ["b"]]


def test_the_dataset_that_ships_is_named_as_on_the_command_line(tmp_path: Path) -> None:
    assert (folder_of("bundled"), folder_of(str(tmp_path))) == (bundled.FOLDER, tmp_path)
