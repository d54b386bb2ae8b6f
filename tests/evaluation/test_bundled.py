"""The ground truth that ships is varied, judged from several methods, and about documents that are there."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from speckit_memory.evaluation import bundled
from speckit_memory.evaluation.datasets.dataset import EDGES, QRELS, QUERIES, UNANSWERABLE, Dataset, read
from speckit_memory.evaluation.datasets.documents import MEMORIES

pytestmark = pytest.mark.requirement("E3")

INTENTS = {"add_feature", "fix_bug", "refactor", "security_audit", "understand", "find_spec", "find_decision"}
CATEGORIES = {
    "factual", "temporal", "graph_relationship", "cross_document", "hard_negative", "anchor_based", "scope_filtered",
}  # fmt: skip
FORMS = {"word", "keywords", "identifier", "misspelt", "question", "sentence", "pasted"}
METHODS = {"bm25", "vector", "fts5", "rrf", "rsf", "catalogue", "default"}


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return read(bundled.FOLDER)


@pytest.fixture(scope="module")
def written() -> list[dict[str, Any]]:
    """The queries as they stand in the file."""
    return [json.loads(line) for line in (bundled.FOLDER / QUERIES).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def metadata(written: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [query["metadata"] for query in written]


def rows(name: str) -> list[dict[str, str]]:
    with (bundled.FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.mark.requirement("E3.curated")
def test_at_least_110_queries_ship_each_once(dataset: Dataset) -> None:
    assert len(dataset.queries) >= 110
    assert len({query.text.casefold() for query in dataset.queries}) == len(dataset.queries)


def test_every_query_says_what_it_is_and_what_is_expected_of_an_answer(metadata: list[dict[str, str]]) -> None:
    assert {one["category"] for one in metadata} == CATEGORIES
    assert {one["form"] for one in metadata} == FORMS
    assert {one["source"] for one in metadata} == {"manual", "trigger", "pattern", "seed"}
    assert all(one["expected"] for one in metadata)


@pytest.mark.requirement("E3.intents")
def test_each_of_the_seven_intents_has_ten_queries(metadata: list[dict[str, str]]) -> None:
    counts = Counter(one["intent"] for one in metadata)

    assert set(counts) == INTENTS
    assert min(counts.values()) >= 10


@pytest.mark.requirement("E3.complexities")
def test_each_of_the_three_complexities_has_25_queries_counted_as_the_product_counts(
    written: list[dict[str, Any]],
) -> None:
    said = {query["text"]: query["metadata"]["complexity"] for query in written}
    terms = {text: len(text.split()) for text in said}

    assert said == {text: "simple" if n <= 3 else "moderate" if n <= 8 else "complex" for text, n in terms.items()}
    assert min(Counter(said.values()).values()) >= 25


@pytest.mark.requirement("E3.natural")
def test_at_least_40_are_questions_or_sentences_and_30_were_written_by_hand(metadata: list[dict[str, str]]) -> None:
    assert sum(one["form"] in {"question", "sentence"} for one in metadata) >= 40
    assert sum(one["source"] == "manual" for one in metadata) >= 30


@pytest.mark.requirement("E3.negatives")
def test_at_least_14_are_unanswerable_and_all_others_have_an_answer(dataset: Dataset) -> None:
    unanswered = {query.id for query in dataset.queries} - {query.id for query in dataset.judged()}

    assert unanswered == {query.id for query in dataset.queries if query.category == UNANSWERABLE}
    assert unanswered == {query.id for query in dataset.unanswerable()}
    assert len(unanswered) >= 14
    for grades in (dataset.judgements[query] for query in unanswered):
        assert set(grades.values()) == {0.0}, "what methods brought up for it was judged, and answers nothing"


@pytest.mark.requirement("E3.keys")
def test_every_label_is_0_to_3_and_names_a_document_by_its_path(dataset: Dataset) -> None:
    grades = {(query, key): grade for query, judged in dataset.judgements.items() for key, grade in judged.items()}

    assert {key for _, key in grades} <= dataset.keys
    assert set(grades.values()) == {0.0, 1.0, 2.0, 3.0}
    for query in dataset.judged():
        assert max(dataset.judgements[query.id].values()) >= 2, f"{query.id}: nothing answers it"


def test_the_page_about_them_counts_them_right(dataset: Dataset, metadata: list[dict[str, str]]) -> None:
    page = (bundled.FOLDER / "docs" / "ground-truth.md").read_text(encoding="utf-8")
    tiers = Counter(one["complexity"] for one in metadata)
    natural = sum(one["form"] in {"question", "sentence"} for one in metadata)

    assert f"and {len(dataset.queries)} queries about them" in page
    assert (
        f"{tiers['simple']} simple (at most 3 terms), {tiers['moderate']} moderate, {tiers['complex']} complex" in page
    )
    assert f"{natural} are in natural language" in page
    assert f"| unanswerable questions | {len(dataset.unanswerable())}, of the category" in page


def test_no_query_is_the_title_of_a_document(dataset: Dataset) -> None:
    titles = {document.title.casefold() for document in dataset.corpus()}

    assert not titles & {query.text.casefold() for query in dataset.queries}


def test_queries_within_a_folder_have_their_answers_in_it(dataset: Dataset) -> None:
    scoped = [query for query in dataset.queries if query.category == "scope_filtered"]

    assert scoped == [query for query in dataset.queries if query.folder]
    for query in scoped:
        answers = [key for key, grade in dataset.judgements[query.id].items() if grade]
        assert all(key.startswith(f"{query.folder}/") for key in answers), query


@pytest.mark.requirement("E3.pooled")
def test_every_judged_pair_says_which_methods_brought_it_up(dataset: Dataset) -> None:
    pool = {(row["query-id"], row["corpus-id"]): set(row["found-by"].split(",")) for row in rows(bundled.POOL)}
    judged = {(row["query-id"], row["corpus-id"]): int(row["score"]) for row in rows(QRELS)}

    assert set(pool) == set(judged)
    assert set.union(*pool.values()) == METHODS | {"reading"}
    assert all(judged[pair] for pair, by in pool.items() if by == {"reading"}), (
        "a 0 is judged because it was brought up"
    )
    for method in METHODS:
        asked = {query for (query, _), by in pool.items() if method in by}
        assert len(asked) > 0.9 * len(dataset.queries), f"{method} took part for {len(asked)} queries alone"


@pytest.mark.requirement("E3.pooled")
def test_no_method_alone_would_have_found_the_labels(dataset: Dataset) -> None:
    """A judge who follows one ranking would grade what that ranking holds."""
    graded = {(row["query-id"], row["corpus-id"]) for row in rows(QRELS) if row["score"] != "0"}
    pool = {(row["query-id"], row["corpus-id"]): row["found-by"].split(",") for row in rows(bundled.POOL)}
    shares = {method: sum(method in pool[pair] for pair in graded) / len(graded) for method in METHODS}

    assert max(shares.values()) < 0.85, shares
    assert sum(pool[pair] == ["reading"] for pair in graded) / len(graded) > 0.05


def test_documents_that_are_not_judged_yet_are_no_problem(dataset: Dataset, tmp_path: Path) -> None:
    for name in (MEMORIES, EDGES, QUERIES, QRELS):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((bundled.FOLDER / name).read_bytes())
    for document in dataset.corpus():
        if not document.key.startswith("docs/"):
            continue
        (tmp_path / document.key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / document.key).write_text(document.text, encoding="utf-8")
    (tmp_path / "docs" / "new.md").write_text("# A page of tomorrow\n\nNobody has judged it.\n", encoding="utf-8")

    grown = read(tmp_path)

    assert grown.keys - dataset.keys == {"docs/new.md"}
    assert grown.judgements == dataset.judgements
