from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.datasets.dataset import read
from speckit_memory.evaluation.datasets.documents import DatasetDocument, copy_documents
from speckit_memory.evaluation.running.run import run
from speckit_memory.memory.store.records import Tier

FUSION = """---
title: Fusion
trigger_phrases: [rank fusion]
importance_tier: important
created: 1970-01-02
causalLinks:
  derived_from: [docs/deep/decay.md]
---
# Another heading

Ranked lists are merged.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs" / "deep").mkdir(parents=True)
    (tmp_path / "qrels").mkdir()
    (tmp_path / "docs" / "fusion.md").write_text(FUSION)
    (tmp_path / "docs" / "deep" / "decay.md").write_text("# Decay\n\nMemories fade.\n")
    (tmp_path / "docs" / "figure.svg").write_text("<svg/>")
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "merged lists", "metadata": {}}\n')
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\tdocs/fusion.md\t3\n")
    return tmp_path


def test_markdown_files_are_documents_named_by_their_paths(folder: Path) -> None:
    dataset = read(folder)

    assert dataset.keys == {"docs/fusion.md", "docs/deep/decay.md"}
    assert list(dataset.corpus()) == [
        DatasetDocument("docs/deep/decay.md", "Decay", "# Decay\n\nMemories fade.\n", "docs/deep"),
        DatasetDocument("docs/fusion.md", "Fusion", FUSION, "docs", Tier.IMPORTANT, ("rank fusion",), 86400.0),
    ]


def test_they_are_measured_like_lines_of_a_corpus(folder: Path) -> None:
    (pipeline,) = run(folder, ["bm25"], environ={}).pipelines

    assert pipeline.metrics["nDCG@10"] == 1.0


def test_they_are_written_out_as_lines(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")

    copy_documents(folder, other)

    assert list(read(other, judged=False).corpus()) == list(read(folder).corpus())


def test_a_corpus_file_goes_before_markdown_files(folder: Path) -> None:
    (folder / "corpus.jsonl").write_text('{"_id": "docs/fusion.md", "title": "", "text": "one line", "metadata": {}}\n')

    assert read(folder).keys == {"docs/fusion.md"}


def test_a_document_that_is_no_text_is_named_with_the_other_problems(folder: Path) -> None:
    (folder / "docs" / "broken.md").write_bytes(b"\xff\xff\xff")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\tdocs/renamed.md\t3\n")

    with pytest.raises(SpeckitError) as caught:
        read(folder)

    broken, renamed = (str(problem).replace(f"{folder}/", "") for problem in caught.value.problems)
    assert broken.startswith("docs/broken.md:1:1: E123 the document cannot be read: ")
    assert renamed == "qrels/test.tsv:2:1: E123 the id 'docs/renamed.md' is not in corpus.jsonl"


def test_a_dataset_without_documents_in_either_form_is_refused(folder: Path) -> None:
    (folder / "docs").rename(folder / "pages")

    with pytest.raises(SpeckitError, match="and no folder docs of Markdown files"):
        read(folder)
