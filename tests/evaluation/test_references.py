"""Copies of datasets that are linked as their own texts refer to one another, and the baseline that counts words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.grep_baseline import folder_of, rankings
from bench.references import main, write
from speckit_memory.evaluation import bundled
from speckit_memory.evaluation.datasets.dataset import DatasetQuery, read
from tests.evaluation.test_run import Write

Edges = Callable[..., list[tuple[object, ...]]]


def documents(*texts: tuple[str, str]) -> list[dict[str, str]]:
    return [{"_id": key, "title": key, "text": text} for key, text in texts]


@pytest.fixture
def referenced(write_dataset: Write, tmp_path: Path) -> Edges:
    """The edges of the copy of a dataset with these documents."""

    def edges(*texts: tuple[str, str], declared: list[tuple[object, ...]] | None = None) -> list[tuple[object, ...]]:
        folder = write_dataset(
            documents(*texts), [{"_id": "q", "text": "anything"}], [("q", texts[0][0], 1)], edges=declared
        )
        write(folder, tmp_path / "copy")
        copy, source = read(tmp_path / "copy"), read(folder)
        assert (list(copy.corpus()), copy.queries) == (list(source.corpus()), source.queries)
        return list(copy.edges)

    return edges


def test_numbers_of_a_word_name_documents_in_the_forms_that_people_write(referenced: Edges) -> None:
    found = referenced(
        ("pep-0001", "As PEP 8 says, and pep-0008 in its address, and PEP-0008; not of itself, PEP 1."),
        ("pep-0008", "PEP 99 is none of these, nor is a step 1, and PEPs 1 are no number."),
        ("pep-0020", "Zen (PEP 1)."),
    )
    # three mentions: 3 / 4; one: 1 / 2
    assert found == [("pep-0001", "derived_from", "pep-0008", 0.75), ("pep-0020", "supports", "pep-0001", 0.5)]


def test_numbers_paths_and_addresses_name_proposals_where_one_alone_bears_the_number(referenced: Edges) -> None:
    found = referenced(
        ("sig-node/1287-in-place-update", "See KEP-2133 and https://github.com/kubernetes/enhancements/issues/5793."),
        ("sig-api/5793-manifest-config", "Uses keps/sig-node/1287-in-place-update/README.md, that is KEP #1287."),
        ("sig-cloud/2133-credentials", "Also sig-node/2133-kubelet, which bears the same number."),
        ("sig-node/2133-kubelet", "Issue 1287 of another project."),
    )
    assert found == [
        ("sig-api/5793-manifest-config", "derived_from", "sig-node/1287-in-place-update", 0.667),
        ("sig-cloud/2133-credentials", "supports", "sig-node/2133-kubelet", 0.5),
        ("sig-node/1287-in-place-update", "supports", "sig-api/5793-manifest-config", 0.5),
    ]


def test_links_of_markdown_lead_from_the_document_they_stand_in(referenced: Edges) -> None:
    found = referenced(
        ("docs/saving.md", "As [decided](decisions/0061.md#why), and [elsewhere](https://example.org/docs/saving.md)."),
        ("docs/decisions/0061.md", "[Saving](../saving.md), [again](../saving.md), [this](0061.md), [none](none.md)."),
    )
    assert found == [
        ("docs/decisions/0061.md", "derived_from", "docs/saving.md", 0.667),
        ("docs/saving.md", "supports", "docs/decisions/0061.md", 0.5),
    ]


def test_declared_links_come_first_and_the_rest_up_to_the_limit_of_a_document(
    referenced: Edges, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [("pep-0001", "PEP 2, and PEP 3."), *((f"pep-{n:04}", "Obeys PEP 1.") for n in range(2, 30))]
    found = referenced(*texts, declared=[("pep-0029", "supersedes", "pep-0001", 1.0)])
    assert found[0] == ("pep-0029", "supersedes", "pep-0001", 1.0)
    assert len(found) == 20
    main([str(tmp_path / "tiny"), str(tmp_path / "other")])
    # two of PEP 1 and 28 others name one; the declared pair counts once, and 19 more have room
    assert capsys.readouterr().out == "29 documents, 20 links (1 declared), 0.69 per document; 10 left out\n"
    assert (tmp_path / "other" / "edges.tsv").read_bytes() == (tmp_path / "copy" / "edges.tsv").read_bytes()
    with pytest.raises(SystemExit):
        main([str(tmp_path / "tiny"), str(tmp_path / "other")])
    assert "exists already" in capsys.readouterr().err


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
