"""Checks of single values that components return: type, shape and bounds.

A check returns the value that it was given; a value that does not pass raises `InvalidComponentOutput`, which names the
value and the accepted ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.model.describing import displayable, shape_of
from speckit_memory.pipeline.model.errors import InvalidComponentOutput
from speckit_memory.pipeline.ports import Unavailable

MOST_CHARACTERS = 100_000
"""Maximum length of one text that a component returns; a query has at most 10,000."""
LARGEST = 1e30
"""Maximum absolute value of a number that a component returns, so that sums and squares of several stay finite."""


def absent(answer: object, *accepted: type[Any]) -> Unavailable | None:
    """The absence with its reason, shortened if it is long; None for an answer that is of one of these types."""
    if type(answer) in accepted:
        return None
    if type(answer) is Unavailable:
        return absence(answer)
    names = ", ".join(kind.__name__ for kind in accepted)
    raise InvalidComponentOutput(f"returned {shape_of(answer)}; accepted: {names} or Unavailable")


def absence(answer: Unavailable) -> Unavailable:
    """An absence with its reason, shortened if it is long."""
    return Unavailable(displayable(text(answer.reason, "the reason of Unavailable", 10**9)))


def array(found: Any, dtype: type[Any], shape: tuple[int, ...], what: str) -> NDArray[Any]:
    """A plain, contiguous array of exactly this type and shape: the array itself, unless it has another layout.

    Args:
        found: The value that the component returned.
        dtype: The required element type.
        shape: The required shape.
        what: What the array is, for the message.

    Raises:
        InvalidComponentOutput: For any other value.
    """
    # A subclass, such as a masked array, calculates in its own way.
    if type(found) is not np.ndarray or found.dtype != dtype or found.shape != shape:
        raise InvalidComponentOutput(f"returned {shape_of(found)} as {what}; accepted: {dtype.__name__}{list(shape)}")
    return np.ascontiguousarray(found)


def text(found: Any, what: str, most: int = MOST_CHARACTERS) -> str:
    """A text that can be encoded as UTF-8, of at most `most` characters."""
    if not isinstance(found, str):
        raise InvalidComponentOutput(f"returned {shape_of(found)} as {what}; accepted: a text")
    if len(found) > most:
        raise InvalidComponentOutput(f"returned {len(found):,} characters as {what}; accepted: at most {most:,}")
    if displayable(found, most) != found:
        raise InvalidComponentOutput(
            f"returned a text with a lone surrogate as {what}; accepted: text that UTF-8 can hold"
        )
    return found


def flag(found: Any, what: str) -> bool:
    """Exactly True or False; values that are merely truthy are rejected."""
    if isinstance(found, bool):
        return found
    raise InvalidComponentOutput(f"returned {shape_of(found)} as {what}; accepted: True or False")


def whole_number(found: Any, what: str, low: int, high: int) -> int:
    """An integer within a range, both ends included.

    Args:
        found: The value that the component returned.
        what: What the value is, for the message.
        low: Smallest accepted value.
        high: Largest accepted value.

    Raises:
        InvalidComponentOutput: For any other value.
    """
    if not isinstance(found, int) or isinstance(found, bool) or not low <= found <= high:
        shown = found if isinstance(found, int) and abs(found) < 10**20 else shape_of(found)
        raise InvalidComponentOutput(f"returned {shown} as {what}; accepted: a whole number from {low} to {high}")
    return found


def number(found: Any, what: str, low: float, high: float) -> float:
    """A finite number within a range, both ends included, as a float.

    Args:
        found: The value that the component returned.
        what: What the value is, for the message.
        low: Smallest accepted value.
        high: Largest accepted value.

    Raises:
        InvalidComponentOutput: For any other value.
    """
    if not isinstance(found, int | float) or isinstance(found, bool):
        raise InvalidComponentOutput(
            f"returned {shape_of(found)} as {what}; accepted: a number from {low:g} to {high:g}"
        )
    if not low <= found <= high:
        shown = f"{found:g}" if abs(found) < 1e300 or isinstance(found, float) else "a huge number"
        raise InvalidComponentOutput(f"returned {what} {shown}; accepted: a number from {low:g} to {high:g}")
    return float(found)


def row_of(found: Any, check: Callable[[Any], object], what: str, most: int) -> tuple[Any, ...]:
    """A tuple of checked values.

    Args:
        found: The value that the component returned.
        check: The check of one entry.
        what: What the tuple is, for the message.
        most: Maximum number of entries.

    Raises:
        InvalidComponentOutput: For any other value.
    """
    if not isinstance(found, tuple):
        raise InvalidComponentOutput(f"returned {shape_of(found)} as {what}; accepted: a tuple")
    if len(found) > most:
        raise InvalidComponentOutput(f"returned {len(found):,} entries as {what}; accepted: at most {most:,}")
    for value in found:
        check(value)
    return found


def texts(found: Any, what: str, most: int) -> tuple[str, ...]:
    """A tuple of at most `most` texts."""
    return row_of(found, lambda value: text(value, f"one of the {what}"), what, most)


def mapping(found: Any, what: str, most: int) -> dict[Any, Any]:
    """A dict of at most `most` entries, which are not checked yet."""
    if not isinstance(found, dict):
        raise InvalidComponentOutput(f"returned {shape_of(found)} as {what}; accepted: a dict")
    if len(found) > most:
        raise InvalidComponentOutput(f"returned more than {most:,} entries as {what}; accepted: at most {most:,}")
    return found
