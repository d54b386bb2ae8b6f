from __future__ import annotations

import numpy as np
import pytest

from speckit_memory.pipeline.arithmetic import bm25f
from speckit_memory.pipeline.arithmetic.bm25f import BagField, Bm25F, Occurrences
from speckit_memory.pipeline.testing.lexicon import FakeIndex


def bags() -> Bm25F:
    index = FakeIndex([(1, ("alpha", "beta")), (2, ("beta", "beta", "gamma"))])
    return Bm25F(Occurrences([BagField(index, None)], 2, 2), [1.0], 1.2, 0.75)


class Liar(str):
    """Says that it is the word that is asked for."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("alpha")


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
        assert list(kept._known) == known


def test_words_that_occur_nowhere_are_not_kept() -> None:
    kept = bags()

    kept.scores({"alpha": 1.0, **{f"unknown{number}": 1.0 for number in range(50)}})

    assert list(kept._known) == ["alpha"]


def test_what_is_handed_out_is_not_what_is_kept() -> None:
    kept = bags()
    first, covered = kept.scores({"alpha": 1.0}), kept.coverage({"alpha": 1.0})
    known = first.tolist(), covered.tolist()
    for column in (first, covered):
        column[...] = 7.0

    assert (kept.scores({"alpha": 1.0}).tolist(), kept.coverage({"alpha": 1.0}).tolist()) == known


def test_a_term_is_kept_as_what_it_is() -> None:
    kept, expected = bags(), bags().scores({"alpha": 1.0}).tolist()

    assert kept.scores({Liar("beta"): 1.0}).tolist() == bags().scores({"beta": 1.0}).tolist()

    assert kept.scores({"alpha": 1.0}).tolist() == expected
    assert [type(term) for term in kept._known] == [str, str]


def test_without_words_nothing_is_scored() -> None:
    empty = Bm25F(Occurrences([BagField(FakeIndex([]), None)], 0, 0), [1.0], 1.2, 0.75)

    assert np.array_equal(empty.scores({"alpha": 1.0}), np.empty(0))
