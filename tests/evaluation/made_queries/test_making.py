from __future__ import annotations

from answered import refused

from speckit_memory.evaluation.datasets.documents import DatasetDocument
from speckit_memory.evaluation.made_queries.query_maker import QueryMaker

DOCUMENTS = [
    DatasetDocument("a1", "", "The lighthouse stands.", "a"),
    DatasetDocument("a2", "", "A harbour.", "a/deep"),
    DatasetDocument("b1", "", "The lighthouse burns.", "b"),
    DatasetDocument("c", "", "The lighthouse and its lantern."),
]


def asked(maker: QueryMaker, kind: str = "words", count: int = 100) -> set[tuple[str, str, tuple[str, ...]]]:
    return {(one.query.text, one.folder, one.relevant) for one in maker.make(kind, count)}


def test_without_scopes_all_documents_count() -> None:
    assert ("lighthouse", "", ("a1", "b1", "c")) in asked(QueryMaker(DOCUMENTS, scoped=False))


def test_within_a_folder_only_its_documents_and_those_of_its_sub_folders_count() -> None:
    assert asked(QueryMaker(DOCUMENTS, scoped=True)) == {
        ("lighthouse", "a", ("a1",)), ("stands", "a", ("a1",)), ("harbour", "a", ("a2",)),
        ("harbour", "a/deep", ("a2",)),
        ("lighthouse", "b", ("b1",)), ("burns", "b", ("b1",)),
    }  # fmt: skip


def test_folders_have_equal_shares() -> None:
    made = QueryMaker(DOCUMENTS, scoped=True).make("words", 3)

    assert [one.folder for one in made] == ["a", "a/deep", "b"]


def test_documents_without_any_folder_cannot_be_asked_about_by_folder() -> None:
    with refused("E125", match="no document is in a folder"):
        QueryMaker(DOCUMENTS[3:], scoped=True)


def test_a_kind_comes_out_the_same_whatever_else_is_made_and_differs_by_seed() -> None:
    documents = [DatasetDocument(str(n), "", f"word{chr(97 + n)}xyz lone{chr(97 + n)}qrs") for n in range(20)]
    letters = [DatasetDocument(d.key, "", d.text.replace("word", "glim")) for d in documents]
    first, second = QueryMaker(letters, scoped=False), QueryMaker(letters, scoped=False)
    second.make("pairs", 5)

    assert first.make("words", 9) == second.make("words", 9) == first.make("words", 9)
    assert first.make("words", 9) != QueryMaker(letters, scoped=False, seed=21).make("words", 9)


def test_no_query_is_asked_twice() -> None:
    documents = [DatasetDocument(str(n), "", "It met the Kettle club. It met the KETTLE club.") for n in range(2)]

    texts = [one.query.text.casefold() for one in QueryMaker(documents, scoped=False).make("names", 50)]
    assert texts
    assert len(texts) == len(set(texts))
