from __future__ import annotations

from math import log

import numpy as np
import pytest

from speckit_memory.pipeline.arithmetic import bm25f
from speckit_memory.pipeline.arithmetic.bm25f import BagField, Bm25F, Occurrences
from speckit_memory.pipeline.testing.lexicon import FakeIndex


def bags() -> Bm25F:
    index = FakeIndex([(1, ("alpha", "beta")), (2, ("beta", "beta", "gamma"))])
    return Bm25F(Occurrences([BagField(index, None)], 2, 2), [1.0], 1.2, 0.75)


def test_a_kept_term_scores_as_it_did_the_first_time(monkeypatch: pytest.MonkeyPatch) -> None:
    both = {"alpha": 1.0, "beta": 0.5}
    kept = bags()
    first = kept.scores(both).tolist()
    assert first[0] > 0.0
    assert kept.scores(both).tolist() == first

    monkeypatch.setattr(bm25f, "_MAX_KEPT", 1)  # room for less than one term
    forgetful = bags()
    forgetful.scores({"beta": 1.0})
    assert forgetful.scores(both).tolist() == first


def test_no_more_is_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bm25f, "_MAX_KEPT", 2)
    kept = bags()
    for term, known in (("beta", ["beta"]), ("alpha", ["alpha"]), ("gamma", ["alpha", "gamma"]), ("beta", ["beta"])):
        kept.scores({term: 1.0})
        assert list(kept._known._found) == known


def test_what_was_kept_first_makes_room_but_not_for_a_word_of_the_same_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bm25f, "_MAX_KEPT", 3)
    kept = bags()
    steps = (
        (["alpha", "beta"], ["alpha", "beta"]),
        (["gamma"], ["beta", "gamma"]),
        (["alpha", "beta"], ["beta", "alpha"]),
        (["gamma", "alpha", "beta"], ["beta", "alpha"]),  # all three are too many: two stay, and outlast the question
        (["gamma", "alpha"], ["alpha", "gamma"]),
    )
    for asked, known in steps:
        expected = bags().scores(dict.fromkeys(asked, 1.0)).tolist()
        assert kept.scores(dict.fromkeys(asked, 1.0)).tolist() == expected
        assert list(kept._known._found) == known
        assert kept._known._kept == sum(kept._known._rows.values()) <= 3


def test_words_that_occur_nowhere_are_not_kept() -> None:
    kept = bags()

    kept.scores({"alpha": 1.0, **{f"unknown{number}": 1.0 for number in range(50)}})

    assert list(kept._known._found) == ["alpha"]


def test_what_is_handed_out_is_not_what_is_kept() -> None:
    kept = bags()
    first, covered = kept.scores({"alpha": 1.0}), kept.coverage({"alpha": 1.0})
    known = first.tolist(), covered.tolist()
    for column in (first, covered):
        column[...] = 7.0

    assert (kept.scores({"alpha": 1.0}).tolist(), kept.coverage({"alpha": 1.0}).tolist()) == known


def test_without_words_nothing_is_scored() -> None:
    empty = Bm25F(Occurrences([BagField(FakeIndex([]), None)], 0, 0), [1.0], 1.2, 0.75)

    assert np.array_equal(empty.scores({"alpha": 1.0}), np.empty(0))


@pytest.mark.requirement("C3")
@pytest.mark.parametrize("seed", range(30))
def test_words_count_in_whatever_fields_they_stand(seed: int) -> None:
    """Against sums by hand: most holders in any field, rows of several bags, holders beyond those of the largest."""
    random = np.random.default_rng(seed)
    memories, passages = 12, 30
    parents = random.integers(0, memories, passages)
    words = ["alpha", "beta", "gamma"]

    def tokens(count: int, share: float) -> list[list[str]]:
        return [[word for word in words * 2 if random.random() < share] for _ in range(count)]

    texts, titles = tokens(passages, random.random()), tokens(memories, random.random())
    fields = [BagField(FakeIndex(enumerate(titles)), parents), BagField(FakeIndex(enumerate(texts)), None)]
    weights, k1, b = (3.0, 1.0), 1.2, 0.6
    scorer = Bm25F(Occurrences(fields, passages, passages), weights, k1, b)

    bags = [titles[parent] * 3 + text for parent, text in zip(parents, texts, strict=True)]
    mean = sum(map(len, bags)) / passages
    for word in words:
        holders = sum(word in bag for bag in bags)
        rarity = log((passages - holders + 0.5) / (holders + 0.5) + 1)
        wanted = [
            rarity * count * (k1 + 1) / (count + k1 * (1 - b + b * len(bag) / mean))
            if (count := bag.count(word))
            else 0
            for bag in bags
        ]
        assert scorer.scores({word: 1.0}) == pytest.approx(wanted)
        assert scorer.scores({word: 1.0}).tolist() == scorer.scores({word: 1.0}).tolist()
        assert scorer.coverage({word: 1.0}).tolist() == [float(word in bag) for bag in bags]
