from __future__ import annotations

import pytest

from speckit_memory.pipeline.contracts import NoParams
from speckit_memory.pipeline.model import Notes
from speckit_memory.pipeline.testing import FakeStore, Memory, ask, ranking_of
from speckit_memory.stages.annotate.encoder_notice import MESSAGE, EncoderNotice


@pytest.mark.requirement("I6")
@pytest.mark.parametrize(("static", "warnings"), [(True, (MESSAGE,)), (False, ())])
def test_only_bundled_vectors_are_worth_a_notice(static: bool, warnings: tuple[str, ...]) -> None:
    store = FakeStore(Memory(1, "Storage", ("one file holds the lists",)))
    store.vectors.static = static

    notes = EncoderNotice(NoParams()).annotate(ask("lists"), ranking_of(store, {1: 1.0}), store)

    assert notes == Notes(warnings=warnings)
