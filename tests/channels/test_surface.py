"""The channel that finds what is typed as it stands in a text."""

from __future__ import annotations

from typing import Any

import pytest
from components.asking import query, scores

from speckit_memory.channels.surface import Surface, SurfaceParams
from speckit_memory.pipeline.ports import Filter
from speckit_memory.pipeline.testing import FakeStore, Memory

STORE = FakeStore(
    Memory(1, "Budget", ("the consumers intend to pay",)),
    Memory(2, "Consumer", ("they intend nothing",), folder="sales"),
    Memory(3, "Other", ("consumer goods: pay later", "who intend, to")),
    Memory(4, "Old", ("consumer intend",), tier="deprecated"),
)


def found(text: str, wanted: Filter | None = None, limit: int = 10, **params: Any) -> dict[int, float]:
    asked = query(text, wanted=wanted or Filter())
    return scores(Surface(SurfaceParams.model_validate(params)).search(asked, limit, STORE))


@pytest.mark.requirement("C2.typed")
def test_memories_hold_every_word_in_the_very_form() -> None:
    assert found("Consumer INTEND") == {2: 1.0, 3: 1.0}
    assert found("consumers intend") == {1: 1.0}
    assert found("consume intend") == {}
    assert found("consumer intend", Filter(folder="sales")) == {2: 1.0}
    assert found("consumer intend", limit=1) == {2: 1.0}


@pytest.mark.requirement("C2.typed")
def test_what_many_memories_hold_is_looked_for_word_for_word() -> None:
    assert found("intend to", max_memories=4) == {1: 1.0, 3: 1.0}
    assert found("intend to pay", max_memories=2) == {1: 1.0}  # 1 and 3 hold all, 1 in a row
    assert found("intend", max_memories=3) == {}


@pytest.mark.requirement("C2.typed")
def test_a_longer_query_is_found_as_a_whole_or_not_at_all() -> None:
    assert found("intend to pay", max_words=2) == {}
    assert found("pay intend to", max_words=3) == {1: 1.0, 3: 1.0}
    assert found("they intend nothing", max_phrase_words=2, max_words=3) == {2: 1.0}
    assert found("pay intend to pay later", max_words=3, max_phrase_words=5) == {}


def test_a_query_is_left_alone_whose_rarest_word_stands_in_too_many_passages() -> None:
    assert found("consumer pay", max_read=1) == {}  # pay stands in two passages, consumer in two and a title
    assert found("consumer pay", max_read=2) == {3: 1.0}


def test_concepts_are_no_words_that_somebody_typed() -> None:
    asked = query("consumer intend", concepts=("consumer", "intend"))
    assert scores(Surface(SurfaceParams()).search(asked, 10, STORE)) == {}


def test_a_text_without_words_finds_nothing() -> None:
    assert found("?!") == {}
