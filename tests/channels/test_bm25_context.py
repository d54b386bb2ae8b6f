"""What a note gains from those beside it, whichever side the better one is on."""

from __future__ import annotations

from math import log

import pytest
from components.asking import query, scores

from speckit_memory.channels.bm25 import Bm25, Bm25Params
from speckit_memory.pipeline.testing import FakeStore, Memory

pytestmark = pytest.mark.requirement("C3")


@pytest.mark.parametrize("order", [("alpha", "gamma", "beta"), ("beta", "gamma", "alpha")])
def test_the_better_of_two_neighbours_counts_and_the_other_one_does_not(order: tuple[str, ...]) -> None:
    # Every note has one word: tf/(tf + norm) = 1/2.2, so that a word found scores its idf.
    # alpha is in 1 of 6 notes, beta in 2: log(5.5/1.5 + 1) and log(4.5/2.5 + 1).
    words = (*order, "delta", "epsilon", "beta")
    notes = [Memory(n, "", (word,), folder="talk", numbers={"characters": 10.0}) for n, word in enumerate(words, 1)]
    fields = {"title": 0.0, "triggers": 0.0, "path": 0.0, "body": 1.0}
    channel = Bm25(Bm25Params.model_validate({"fields": fields, "context": 0.5}))

    found = scores(channel.search(query("alpha beta"), 10, FakeStore(*notes)))

    rare, common = log(5.5 / 1.5 + 1), log(4.5 / 2.5 + 1)
    assert found[2] == pytest.approx(0.5 * rare, abs=2e-6)
    assert found[1 + order.index("alpha")] == pytest.approx(rare, abs=2e-6)
    assert found[5] == pytest.approx(0.5 * common, abs=2e-6)
