"""Copies of datasets that are linked as their own texts refer to one another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.references import main, write
from speckit_memory.evaluation.datasets.dataset import read
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
