"""Plain copies of component results, made before they are checked or used.

A value that a component still references, or whose class it wrote, could pass a check and then change. So only plain
values pass this module: numbers, texts, tuples, dicts and arrays of exactly these types. Subclasses of int, float, str
and dict are read as their base type, other classes are rejected. A value that cannot be copied raises
`InvalidComponentOutput`, which names the value and the accepted ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import islice
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.model.describing import displayable, shape_of
from speckit_memory.pipeline.model.errors import InvalidComponentOutput
from speckit_memory.pipeline.ports import Unavailable

T = TypeVar("T")
D = TypeVar("D", bound=np.generic)

MOST_CHARACTERS = 100_000
"""Maximum length of one text that a component returns; a query has at most 10,000."""
LARGEST = 1e30
"""Maximum absolute value of a number that a component returns, so that sums and squares of several stay finite."""


def absent(answer: object, *accepted: type[Any]) -> Unavailable | None:
    """The absence with a plain reason; None for an answer that is exactly of one of these types."""
    if type(answer) in accepted:
        return None
    if type(answer) is Unavailable:
        return absence(answer)
    names = ", ".join(kind.__name__ for kind in accepted)
    raise InvalidComponentOutput(f"returned {shape_of(answer)}; accepted: {names} or Unavailable")


def absence(answer: Unavailable) -> Unavailable:
    """An absence with its reason as plain text, truncated if it is long."""
    (reason,) = values_of(answer, Unavailable)
    if not issubclass(type(reason), str):
        raise InvalidComponentOutput(f"returned Unavailable with {shape_of(reason)} as its reason; accepted: a text")
    return Unavailable(displayable(str.__str__(reason)))


def values_of(answer: object, kind: type[Any]) -> tuple[Any, ...]:
    """The field values of an instance of exactly this dataclass, not yet checked."""
    try:
        return _getter(kind.__slots__)(answer)
    except AttributeError:
        raise InvalidComponentOutput(f"returned {kind.__name__} without all of its fields") from None


@cache
def _getter(names: tuple[str, ...]) -> Callable[[object], tuple[Any, ...]]:
    return attrgetter(*names) if len(names) > 1 else lambda answer: (getattr(answer, names[0]),)


def array(found: object, dtype: type[D], shape: tuple[int, ...], what: str) -> NDArray[D]:
    """A private copy of a plain array of exactly this type and shape.

    Args:
        found: The value that the component returned.
        dtype: The required element type.
        shape: The required shape.
        what: What the array is, for the message.

    Raises:
        InvalidComponentOutput: For any other value.
    """
    # dtype before shape, type before both: an attribute of a subclass could run foreign code.
    if type(found) is not np.ndarray or found.dtype != dtype or found.shape != shape:
        raise InvalidComponentOutput(f"returned {shape_of(found)} as {what}; accepted: {dtype.__name__}{list(shape)}")
    return np.array(found, dtype, order="C")


def text(found: object, what: str, most: int = MOST_CHARACTERS) -> str:
    """A text that can be encoded as UTF-8, of at most `most` characters."""
    if type(found) is not str:
        if not issubclass(type(found), str):
            raise InvalidComponentOutput(f"returned {shape_of(found)} as {what}; accepted: a text")
        # The slot of str itself: `str(found)` would call a method of the subclass.
        found = str.__str__(found)
    if len(found) > most:
        raise InvalidComponentOutput(f"returned {len(found):,} characters as {what}; accepted: at most {most:,}")
    # Only other texts need encoding, and it only fails for surrogates.
    if not found.isascii():
        try:
            found.encode()
        except UnicodeEncodeError:
            raise InvalidComponentOutput(
                f"returned a text with a lone surrogate as {what}; accepted: text that UTF-8 can hold"
            ) from None
    return found


def flag(found: object, what: str) -> bool:
    """Exactly True or False; values that are merely truthy are rejected."""
    if found is True or found is False:
        return found
    raise InvalidComponentOutput(f"returned {shape_of(found)} as {what}; accepted: True or False")


def checked_integer(found: object, what: str, low: int, high: int) -> int:
    """An integer within a range, both ends included.

    Args:
        found: The value that the component returned.
        what: What the value is, for the message.
        low: Smallest accepted value.
        high: Largest accepted value.

    Raises:
        InvalidComponentOutput: For any other value.
    """
    kind = type(found)
    if kind is not int:
        if kind is bool or not issubclass(kind, int):
            raise InvalidComponentOutput(
                f"returned {shape_of(found)} as {what}; accepted: a whole number from {low} to {high}"
            )
        found = int.__int__(found)  # type: ignore[arg-type]  # its class has just been checked
    if not low <= found <= high:  # type: ignore[operator]  # an int by now
        raise InvalidComponentOutput(
            f"returned {_digits(found)} as {what}; accepted: a whole number from {low} to {high}"  # type: ignore[arg-type]
        )
    return found  # type: ignore[return-value]


def number(found: object, what: str, low: float, high: float) -> float:
    """A finite number within a range, both ends included.

    Args:
        found: The value that the component returned.
        what: What the value is, for the message.
        low: Smallest accepted value.
        high: Largest accepted value.

    Raises:
        InvalidComponentOutput: For any other value.
    """
    kind = type(found)
    # bool is a subclass of int, but no number here.
    if kind is int or (kind is not bool and issubclass(kind, int)):
        plain = checked_integer(found, what, -(2**63), 2**63 - 1) + 0.0
    elif issubclass(kind, float):
        plain = float.__float__(found)  # type: ignore[arg-type]  # likewise
    else:
        raise InvalidComponentOutput(
            f"returned {shape_of(found)} as {what}; accepted: a number from {low:g} to {high:g}"
        )
    if not low <= plain <= high:
        raise InvalidComponentOutput(f"returned {what} {plain:g}; accepted: a number from {low:g} to {high:g}")
    return plain


def row_of(found: object, item: Callable[[object], T], what: str, most: int) -> tuple[T, ...]:
    """A tuple of plain values.

    Args:
        found: The value that the component returned.
        item: Makes the plain copy of one entry.
        what: What the tuple is, for the message.
        most: Maximum number of entries.

    Raises:
        InvalidComponentOutput: For any other value.
    """
    if type(found) is not tuple:
        raise InvalidComponentOutput(f"returned {shape_of(found)} as {what}; accepted: a tuple")
    if len(found) > most:
        raise InvalidComponentOutput(f"returned {len(found):,} entries as {what}; accepted: at most {most:,}")
    return tuple(item(value) for value in found)


def texts(found: object, what: str, most: int) -> tuple[str, ...]:
    """A tuple of at most `most` texts."""
    return row_of(found, lambda value: text(value, f"one of the {what}"), what, most)


def pairs(found: object, what: str, most: int) -> list[tuple[object, object]]:
    """The entries of a mapping, read once; for a subclass of dict the entries that it really holds."""
    if issubclass(type(found), dict):
        # dict.items of the base class reads the entries that are stored, past an overridden method.
        view: Iterable[tuple[object, object]] = dict.items(found)  # type: ignore[arg-type]  # checked above
    elif isinstance(found, Mapping):
        view = found.items()
    else:
        raise InvalidComponentOutput(f"returned {shape_of(found)} as {what}; accepted: a dict")
    # One entry more than allowed tells that there are too many, without reading an endless mapping.
    entries = [(key, value) for key, value in islice(view, most + 1)]
    if len(entries) > most:
        raise InvalidComponentOutput(f"returned more than {most:,} entries as {what}; accepted: at most {most:,}")
    return entries


def _digits(found: int) -> str:
    return str(found) if abs(found) < 10**20 else "a number of more than 20 digits"
