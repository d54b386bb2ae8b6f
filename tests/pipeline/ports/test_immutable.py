import numpy as np
import pytest

from speckit_memory.pipeline.ports.values import immutable


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3), np.zeros(0, np.int64), np.array([True, False])])
def test_an_immutable_array_equals_its_source_and_stays_as_it_is(array: np.ndarray) -> None:
    kept = immutable(array)
    assert type(kept) is np.ndarray
    assert kept.dtype == array.dtype
    assert np.array_equal(kept, array)
    for view in (kept, kept[:], kept.view(np.uint8) if kept.size else kept):
        with pytest.raises(ValueError, match=r"writeable|WRITEABLE"):
            view.setflags(write=True)
        with pytest.raises(ValueError, match="read-only"):
            view[...] = 0


def test_a_subclass_becomes_a_plain_array() -> None:
    class Sly(np.ndarray):
        pass

    assert type(immutable(np.arange(3).view(Sly))) is np.ndarray
