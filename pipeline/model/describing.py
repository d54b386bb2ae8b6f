"""Descriptions of components and their errors. Nothing here runs code of a component: it might lie, raise or hang."""

from __future__ import annotations

from inspect import getattr_static

import numpy as np

from speckit_memory.errors.kinds import CLASSES
from speckit_memory.pipeline.model.errors import (
    ContractError,
    InvalidComponentOutput,
    IsolatedFailureError,
    NotStartedError,
    StageInvariantError,
)

MOST_SAID = 1000
"""Maximum number of characters shown of a reason or a message."""

_PLAIN = (str, int, float, bool, type(None))
# Descriptors of `type`: a metaclass may override the attributes, but not these.
_NAME, _MRO = type.__dict__["__name__"], type.__dict__["__mro__"]
_ARGS = BaseException.__dict__["args"]
_OF_THE_PRODUCT = (*CLASSES.values(), IsolatedFailureError, NotStartedError)
"""Errors whose text is complete without the name of the class."""
_FILES = [OSError.__dict__["filename"], OSError.__dict__["filename2"]]
_OWN_TEXT = [kind.__dict__["__str__"] for kind in (BaseException, KeyError, OSError)]
"""The `__str__` methods that build the text of an exception from its plain arguments."""


def displayable(text: str, most: int = MOST_SAID) -> str:
    """A plain text ready to be shown: truncated, and with "?" for lone surrogates, which no encoding can hold."""
    shown = text if len(text) <= most else text[: most - 1] + "…"
    # "replace" writes "?" for a surrogate; the result is valid UTF-8, so decoding cannot fail.
    return shown if shown.isascii() else shown.encode("utf-8", "replace").decode()


def name_of(found: object) -> str:
    """The type of a value, for a message: "None", "int", "Sly, a subclass of Notes"; ignores what its class claims."""
    if found is None:
        return "None"
    kinds: tuple[type, ...] = _MRO.__get__(type(found))
    names = [displayable(_NAME.__get__(kind), 100) for kind in kinds if kind is not object or len(kinds) == 1]
    return names[0] if len(names) == 1 or kinds[0] is bool else f"{names[0]}, a subclass of {names[1]}"


def shape_of(found: object) -> str:
    """The same; for an array its element type and shape: "float64[3]"."""
    if type(found) is np.ndarray:
        return f"{found.dtype}{list(found.shape)}"
    return name_of(found)


def kind_of(error: BaseException) -> str:
    """The name of the class of an exception."""
    return displayable(_NAME.__get__(type(error)), 100)


def describe(error: BaseException) -> str:
    """An exception in words, without a traceback and without the name of the step.

    If the class of the exception defines its own `__str__`, only plain arguments are shown.
    """
    kind = type(error)
    if (
        kind in (InvalidComponentOutput, ContractError, StageInvariantError)
        and type(violation := vars(error).get("violation")) is str
    ):
        return displayable(f"it {violation}")
    try:
        message = displayable(_text(error))
    except Exception:  # it has no text, for example because a number has too many digits
        message = ""
    name = kind_of(error)
    return message if message and kind in _OF_THE_PRODUCT else f"{name}: {message}" if message else name


def _text(error: BaseException) -> str:
    """The text of an exception, if available without running foreign code."""
    args = _ARGS.__get__(error)
    files = [file.__get__(error) for file in _FILES] if issubclass(type(error), OSError) else []
    plain = all(type(value) in _PLAIN for value in (*args, *files))
    if plain and getattr_static(type(error), "__str__") in _OWN_TEXT:
        return str(error)
    return ", ".join(str(value) for value in args if type(value) in _PLAIN)
