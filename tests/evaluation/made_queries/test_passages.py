from __future__ import annotations

from random import Random

from speckit_memory.evaluation.made_queries.passages import paragraphs
from tests.evaluation.made_queries.made import collection, made

LETTERS = "abcdefghijklmnopqrst"


def text(length: int, seed: int) -> str:
    random = Random(seed)
    return "\n".join(" ".join("".join(random.choices(LETTERS, k=6)) for _ in range(10)) for _ in range(length // 10))


def test_a_paragraph_is_eighty_words_as_they_are_written() -> None:
    body = text(300, 1)
    queries = made("paragraphs", collection(body))

    assert queries
    for query in queries:
        assert len(query.split()) == 80
        assert query in body


def test_documents_of_eighty_words_or_fewer_have_no_paragraph_to_paste() -> None:
    assert made("paragraphs", collection(text(80, 1))) == {}
    assert len(made("paragraphs", collection(text(90, 1)))) > 0


def test_long_documents_come_first() -> None:
    of = collection(text(100, 1), text(250, 2), text(150, 3), text(220, 4))
    order = [query.relevant[0] for query in paragraphs(of, Random(1))]

    assert set(order[:6]) == {1, 3}
    assert set(order[6:]) == {0, 2}


def test_a_paragraph_that_stands_elsewhere_for_the_most_part_is_left_out() -> None:
    shared = text(200, 1)
    of = collection(shared, shared.upper().replace("\n", " - "), text(200, 2))

    assert set(made("paragraphs", of).values()) == {(2,)}


def test_a_little_that_is_shared_does_no_harm() -> None:
    head = text(10, 1)
    of = collection(f"{head} {text(80, 2)}", f"{head} {text(80, 3)}")

    assert set(made("paragraphs", of).values()) == {(0,), (1,)}


def test_figures_and_rules_are_no_paragraph() -> None:
    assert made("paragraphs", collection(" ".join(["-----", "0.5", "word"] * 80))) == {}


def test_a_paragraph_too_long_to_be_asked_is_left_out() -> None:
    assert made("paragraphs", collection(" ".join(f"{'x' * 130}{number}" for number in range(200)))) == {}


def test_a_title_loses_its_punctuation() -> None:
    of = collection("", "", titles=('PEP 8 -- Style Guide: "Python\'s" Code!', "aws-k8s-tester (v1.2)"))

    assert made("titles", of) == {"PEP 8 Style Guide Python's Code": (0,), "aws-k8s-tester v1.2": (1,)}


def test_titles_that_two_documents_have_are_left_out() -> None:
    assert made("titles", collection("", "", titles=("Rank fusion", "Rank Fusion!"))) == {}


def test_a_title_whose_words_another_title_holds_is_left_out() -> None:
    of = collection("", "", titles=("Ranks fused", "How ranks are fused, quickly"))

    assert made("titles", of) == {"How ranks are fused quickly": (1,)}


def test_a_title_of_one_word_is_left_out() -> None:
    assert made("titles", collection("", "", titles=("The Introduction", ""))) == {}
