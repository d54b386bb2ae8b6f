from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from components.asking import query, scores
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.channels import phrase as module
from speckit_memory.channels.phrase import Phrase, PhraseParams
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Filter
from speckit_memory.pipeline.testing import FakeStore, Memory, words


def phrase(**params: Any) -> Phrase:
    return Phrase(PhraseParams.model_validate({"min_share": 0.0, "power": 1.0, **params}))


# Every word stands in two of four passages, so that all pairs weigh the same.
STORE = FakeStore(
    Memory(1, "", ("alpha beta gamma",)),
    Memory(2, "", ("delta alpha beta", "x")),
    Memory(3, "", ("gamma delta",)),
)


@pytest.mark.requirement("C2", "C3")
def test_the_share_of_the_querys_pairs_of_words_counts_and_the_passage_is_named() -> None:
    found = phrase().search(query("alpha beta gamma delta"), 10, STORE)

    assert scores(found) == {1: round(2 / 3, 6), 2: round(1 / 3, 6), 3: round(1 / 3, 6)}
    assert found.passages is not None
    assert found.passages.tolist() == [1, 201, 3]
    assert (found.scale, found.rest) == (Scale.UNIT, 0.0)


def test_a_power_leaves_little_of_stray_pairs() -> None:
    found = phrase(power=4.0).search(query("alpha beta gamma delta"), 10, STORE)

    assert scores(found) == {1: round((2 / 3) ** 4, 6), 2: round((1 / 3) ** 4, 6), 3: round((1 / 3) ** 4, 6)}


@pytest.mark.parametrize(("least", "ids"), [(1 / 3 - 1e-6, [1, 2, 3]), (1 / 3 + 1e-6, [1]), (2 / 3 + 1e-6, [])])
def test_what_holds_a_smaller_share_is_no_hit(least: float, ids: list[int]) -> None:
    assert phrase(min_share=least).search(query("alpha beta gamma delta"), 10, STORE).ids.tolist() == ids


def test_pairs_of_rare_words_weigh_more() -> None:
    # beta and rare weigh more than alpha, which stands in every passage.
    store = FakeStore(
        Memory(1, "", ("alpha beta x",)),
        Memory(2, "", ("beta rare alpha",)),
        Memory(3, "", ("alpha y alpha",)),
    )

    found = scores(phrase().search(query("alpha beta rare"), 10, store))

    assert found[2] > 0.5 > found[1]
    assert found[1] + found[2] == pytest.approx(1.0, abs=1e-6)


def test_words_of_two_passages_make_no_phrase_and_the_title_does() -> None:
    store = FakeStore(Memory(1, "", ("one alpha", "beta two")), Memory(2, "Alpha Beta", ("other",)))

    found = phrase().search(query("alpha beta"), 10, store)

    assert scores(found) == {2: 1.0}
    assert found.passages is not None
    assert found.passages.tolist() == [-1]


def test_a_text_with_the_very_words_stands_above_one_that_only_the_index_takes_for_it() -> None:
    store = FakeStore(Memory(1, "", ("alpha-beta",)), Memory(2, "", ("alpha,  BETA!",)))
    asked = query("alpha beta")

    assert scores(phrase(loose=0.25).search(asked, 10, store)) == {1: 1.0, 2: 1.0}
    worded = replace(asked, text="alpha of beta")
    assert scores(phrase(loose=0.25).search(worded, 10, store)) == {1: 0.25, 2: 0.25}
    assert scores(phrase(loose=0.25, max_read=1).search(asked, 10, store)) == {1: 0.25, 2: 0.25}


def test_of_a_query_with_one_word_that_tells_only_the_very_words_count() -> None:
    store = FakeStore(Memory(1, "", ("it is the alpha of it",)), Memory(2, "", ("the alpha in it",)))

    assert scores(phrase().search(replace(query("alpha"), text="the alpha of"), 10, store)) == {1: 1.0}
    assert scores(phrase().search(query("alpha"), 10, store)) == {1: 1.0, 2: 1.0}


def test_the_filter_holds() -> None:
    store = FakeStore(*(Memory(i, "", ("alpha beta",), folder="in" if i > 1 else "out") for i in (1, 2, 3)))

    assert phrase().search(query("alpha beta", wanted=Filter("in")), 10, store).ids.tolist() == [2, 3]


@pytest.mark.parametrize(("limit", "ids"), [(1, [4]), (2, [4]), (3, [4]), (4, [4, 1, 2, 3]), (5, [4, 1, 2, 3])])
def test_of_equal_hits_the_limit_keeps_all_or_none(limit: int, ids: list[int]) -> None:
    texts = ("alpha beta x", "alpha beta y", "alpha beta z", "alpha beta gamma")
    store = FakeStore(*(Memory(number, "", (text,)) for number, text in enumerate(texts, 1)))

    assert phrase().search(query("alpha beta gamma"), limit, store).ids.tolist() == ids


def test_of_a_long_query_only_the_pairs_that_tell_most_are_looked_for() -> None:
    store = FakeStore(
        Memory(1, "", ("alpha beta x",)),
        Memory(2, "", ("rare word alpha",)),
        Memory(3, "", ("beta alpha",)),
    )

    found = phrase(max_pairs=1).search(query("alpha beta rare word"), 10, store)

    assert scores(found) == {2: 0.3}  # all that is looked for, but not the very words


def test_nothing_is_found_for_words_that_nothing_holds() -> None:
    assert not len(phrase().search(query("unknown words"), 10, STORE))
    assert not len(phrase().search(query("?"), 10, STORE))


TEXTS = st.lists(st.sampled_from(["alpha", "beta", "gamma"]), min_size=1, max_size=5).map(" ".join)


@given(st.lists(TEXTS, min_size=1, max_size=4), TEXTS)
def test_a_text_that_holds_the_query_scores_1_and_one_without_a_pair_nothing(texts: list[str], text: str) -> None:
    store = FakeStore(*(Memory(number, "", (held,)) for number, held in enumerate(texts, 1)))

    found = scores(phrase().search(query(text), 10, store))

    asked = set(pairwise(words(text)))
    for number, held in enumerate(texts, 1):
        if f" {text} " in f" {held} ":
            assert found[number] == 1.0
        elif asked and not asked & set(pairwise(words(held))):
            assert number not in found
    assert np.all(np.array([*found.values()]) <= 1.0)


@given(st.lists(st.sampled_from(["a", "b", "A", " ", "_", "-", ".", "é", "\u0301", "x1"]), max_size=30), st.data())
def test_very_words_are_found_by_either_comparison(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    wording = data.draw(st.lists(st.sampled_from(["a", "b", "x1", "é"]), min_size=1, max_size=4))
    by_pattern = module._finder(wording, module.FEWEST_FOR_PATTERN)(text)
    assert module._finder(wording, module.FEWEST_FOR_PATTERN - 1)(text) == by_pattern
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "LONGEST_PATTERN", 0)
        assert module._finder(wording, module.FEWEST_FOR_PATTERN)(text) == by_pattern
