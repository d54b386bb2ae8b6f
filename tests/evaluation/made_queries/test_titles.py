from __future__ import annotations

from tests.evaluation.made_queries.made import collection, made


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
