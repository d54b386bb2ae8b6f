"""Which stores have an index of their vectors."""

from __future__ import annotations

from speckit_memory.config.workspace.options import VectorIndexing


def test_a_store_has_an_index_from_its_size_on() -> None:
    stores = (0, 1, 9, 10)
    assert [VectorIndexing(10).wanted(n) for n in stores] == [False, False, False, True]
    assert [VectorIndexing(0).answers(n) for n in stores] == [False, True, True, True]
    assert [VectorIndexing(1, used=False).wanted(n) for n in stores] == [False, True, True, True]
    assert not any(VectorIndexing(1, used=False).answers(n) for n in stores)
    assert not any(VectorIndexing(None).wanted(n) for n in stores)
