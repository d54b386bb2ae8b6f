"""Immutable copies of arrays."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)


def immutable(array: NDArray[T]) -> NDArray[T]:
    """A plain copy whose memory is a `bytes` object: numpy refuses to make it, or any view of it, writable again.

    Merely clearing `writeable` is not enough: the holder of the array can set it again. For any dtype but object.
    """
    plain: NDArray[T] = np.array(array, order="C", copy=None, subok=False)
    return np.frombuffer(plain.tobytes(), dtype=plain.dtype).reshape(plain.shape)
