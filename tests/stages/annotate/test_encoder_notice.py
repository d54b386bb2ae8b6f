from __future__ import annotations

import pytest

from speckit_memory.memory.store.tables.vectors.encoder_vectors import REST
from speckit_memory.pipeline.model.columns import Notes
from speckit_memory.pipeline.testing import FakeStore, Memory, ask, ranking_of
from speckit_memory.stages.annotate.encoder_notice import MESSAGE, EncoderNotice, EncoderNoticeParams


def notes_of(closeness: dict[int, float] | None, *, required: bool = False) -> object:
    store = FakeStore(*(Memory(id_, chunks=("one file holds the lists",)) for id_ in (1, 2, 3)), closeness=closeness)
    ranking = ranking_of(store, {1: 1.0, 2: 0.5, 3: 0.1})
    return EncoderNotice(EncoderNoticeParams(required=required)).annotate(ask("lists", limit=2), ranking, store)


@pytest.mark.requirement("I6")
def test_a_pipeline_made_for_an_encoder_says_when_there_is_none() -> None:
    assert notes_of(None, required=True) == Notes(warnings=(MESSAGE,))
    assert notes_of({1: 0.1, 2: 0.2}, required=True) == Notes()
    assert notes_of(None) == Notes()


@pytest.mark.requirement("R1.encoder")
def test_rows_without_a_vector_of_the_encoder_are_told_among_those_asked_for() -> None:
    assert notes_of({1: 0.1, 2: 0.2}) == Notes()
    told = f"the encoder has vectors for 1 of these 2 memories so far; {REST}"
    assert notes_of({1: 0.1, 3: 0.2}) == Notes(warnings=(told,))
