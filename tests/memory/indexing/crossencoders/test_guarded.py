from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pytest
from answered import present

from speckit_memory.memory.models.crossencoders import GuardedCrossEncoder
from speckit_memory.memory.models.crossencoders.guarded import BATCH, FAILURES, PAUSE_NS
from speckit_memory.pipeline.ports import Column, Unavailable

TEXTS = [f"text {number}" for number in range(20)]
MS = 1_000_000


class Reader:
    """A cross-encoder whose time is told by hand: the logit of a text is its number less ten."""

    def __init__(self, ns_per_text: int = MS) -> None:
        self.now = 0
        self.ns_per_text = ns_per_text
        self.batches: list[int] = []
        self.trouble: Exception | None = None

    def clock(self) -> int:
        return self.now

    def load(self) -> None:
        pass

    def logits(self, query: str, texts: Sequence[str]) -> Column:
        self.batches.append(len(texts))
        self.now += self.ns_per_text * len(texts)
        if self.trouble:
            raise self.trouble
        return np.array([float(text.split()[1]) - 10.0 for text in texts])


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def guarded(reader: Reader) -> GuardedCrossEncoder:
    return GuardedCrossEncoder(reader, reader.clock)


@pytest.mark.requirement("R1")
def test_without_a_deadline_every_text_gets_the_probability_of_its_logit(
    guarded: GuardedCrossEncoder, reader: Reader
) -> None:
    relevance = present(guarded.score("query", TEXTS, None))

    np.testing.assert_allclose(relevance, 1 / (1 + np.exp(10.0 - np.arange(20))))
    assert reader.batches == [BATCH, BATCH, 4]
    assert guarded.score("query", [], None) == pytest.approx([])


@pytest.mark.requirement("R1")
def test_the_first_batch_measures_the_speed_and_the_deadline_cuts_the_tail(
    guarded: GuardedCrossEncoder, reader: Reader
) -> None:
    first = present(guarded.score("query", TEXTS, 14 * MS + 1))
    assert reader.batches == [4, 8, 2]
    assert np.isnan(first).tolist() == [False] * 14 + [True] * 6

    reader.batches.clear()
    second = present(guarded.score("query", TEXTS, reader.now + 3 * MS))
    assert reader.batches == [3]
    assert np.isnan(second).tolist() == [False] * 3 + [True] * 17


@pytest.mark.parametrize("left", [0, -5 * MS])
def test_nothing_is_read_after_the_deadline(guarded: GuardedCrossEncoder, reader: Reader, left: int) -> None:
    assert np.isnan(present(guarded.score("query", TEXTS, reader.now + left))).all()
    assert reader.batches == []


@pytest.mark.requirement("R1")
def test_after_three_failures_in_a_row_the_model_is_left_alone_for_a_minute(
    guarded: GuardedCrossEncoder, reader: Reader
) -> None:
    reader.trouble = RuntimeError("out of memory")
    for _ in range(FAILURES):
        assert guarded.score("query", TEXTS, None) == Unavailable("the cross-encoder failed: out of memory")
    resting = Unavailable("the cross-encoder failed 3 times in a row and is paused for a while")
    reader.trouble = None
    reader.now += PAUSE_NS - 1
    assert guarded.score("query", TEXTS, None) == resting
    assert len(reader.batches) == FAILURES

    reader.now += 1
    reader.trouble = RuntimeError("still out of memory")
    assert guarded.score("query", TEXTS, None) == Unavailable("the cross-encoder failed: still out of memory")
    assert isinstance(guarded.score("query", TEXTS, None), Unavailable)
    assert len(reader.batches) == FAILURES + 1

    reader.now += PAUSE_NS
    reader.trouble = None
    assert np.isfinite(present(guarded.score("query", TEXTS, None))).all()


def test_failures_count_only_in_a_row(guarded: GuardedCrossEncoder, reader: Reader) -> None:
    for _ in range(2 * FAILURES):
        reader.trouble = RuntimeError("now and then")
        guarded.score("query", TEXTS, None)
        guarded.score("query", TEXTS, None)
        reader.trouble = None
        assert np.isfinite(present(guarded.score("query", TEXTS, None))).all()


@pytest.mark.parametrize("answer", [np.array([np.nan] * 3), np.array([1.0, 2.0]), np.ones((3, 2))])
def test_an_unusable_answer_is_a_failure(answer: Column) -> None:
    class Broken:
        def load(self) -> None:
            pass

        def logits(self, query: str, texts: Sequence[str]) -> Column:
            return answer

    refused = GuardedCrossEncoder(Broken()).score("query", TEXTS[:3], None)
    assert isinstance(refused, Unavailable)
    assert "for 3 texts" in refused.reason


def test_a_query_that_would_wait_beyond_its_deadline_is_told_so() -> None:
    begun, may_end = threading.Event(), threading.Event()

    class Slow:
        def load(self) -> None:
            pass

        def logits(self, query: str, texts: Sequence[str]) -> Column:
            begun.set()
            may_end.wait()
            return np.zeros(len(texts))

    guarded = GuardedCrossEncoder(Slow(), lambda: 0)
    other = threading.Thread(target=guarded.score, args=("query", TEXTS, None))
    other.start()
    begun.wait()
    try:
        assert guarded.score("query", TEXTS, 1) == Unavailable("the cross-encoder is busy with another query")
    finally:
        may_end.set()
        other.join()
    assert guarded.score("query", TEXTS[:2], None) == pytest.approx([0.5, 0.5])
