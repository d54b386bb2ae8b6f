"""What nobody can change, however they come by it."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)


def immutable(array: NDArray[T]) -> NDArray[T]:
    """A plain copy whose memory is a `bytes` object: numpy refuses to make it, or any view of it, writable again.

    An array that only has `writeable` unset is no such thing: its holder sets it again. Of any dtype but object.
    """
    plain: NDArray[T] = np.array(array, order="C", copy=None, subok=False)
    return np.frombuffer(plain.tobytes(), dtype=plain.dtype).reshape(plain.shape)


def own(text: str) -> str:
    """The characters of a text as a string of Python's own, to remember something by.

    An object of a class derived from `str` may say that it equals another text.
    """
    return str.__str__(text)
