from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.memory.lifecycle.interference import counts, words


@pytest.mark.requirement("F9")
def test_three_near_duplicates_interfere_with_each_other_and_a_stranger_with_none() -> None:
    texts = [
        "rank fusion of channels weights",  # 5 words ("of" is too short): rank fusion channels weights
        "rank fusion of channels; weights, again",  # 4 of 5 words shared: 0.8
        "Rank | Fusion | Channels | Weights",
        "state of the art retrieval",
    ]

    assert counts(texts) == [2, 2, 2, 0]


@pytest.mark.requirement("F9.similar")
def test_similarity_must_exceed_the_threshold() -> None:
    # 3 of 4 words shared is exactly 0.75
    assert counts(["alpha beta gamma", "alpha beta gamma delta"]) == [0, 0]


def test_words_are_split_at_blanks_commas_semicolons_and_bars_and_have_three_letters() -> None:
    assert words("Why RRF? a|bcd,efg;hij ok") == {"why", "rrf?", "bcd", "efg", "hij"}


def test_texts_without_words_interfere_with_nothing() -> None:
    assert counts(["", "", "a b"]) == [0, 0, 0]


bags = st.lists(st.sampled_from(["aaa", "bbb", "ccc", "ddd", "eee", "fff"]), max_size=6).map(" ".join)


@pytest.mark.parametrize("strangers", [0, 500])
@given(texts=st.lists(bags, max_size=12), similarity=st.sampled_from([0.5, 0.6, 0.75, 0.9]))
def test_the_shortcut_counts_what_comparing_every_pair_counts(
    strangers: int, texts: list[str], similarity: float
) -> None:
    """Among many strangers, few texts are left to compare with, which is done one by one."""
    sets = [words(text) for text in texts]
    expected = [
        sum(
            len(a & b) > similarity * len(a | b)
            for j, b in enumerate(sets)
            if j != i and a and b
        )
        for i, a in enumerate(sets)
    ]  # fmt: skip

    others = [f"stranger{number}" for number in range(strangers)]
    assert counts([*texts, *others], similarity) == expected + [0] * strangers


@pytest.mark.requirement("F9")
def test_equal_texts_are_each_others_near_duplicates_however_many() -> None:
    assert counts(["Weekly status report"] * 5000) == [4999] * 5000
