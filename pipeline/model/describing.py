"""What components are and say, in words. Nothing here runs code of a component: it might lie, raise or never end."""

from __future__ import annotations

from inspect import getattr_static

import numpy as np

from speckit_memory.errors.kinds import CLASSES
from speckit_memory.pipeline.model.errors import (
    ContractError,
    IsolatedFailureError,
    NotStartedError,
    StageInvariantError,
    Unfit,
)

MOST_SAID = 1000
"""Characters of a reason or a message that are shown."""

_PLAIN = (str, int, float, bool, type(None))
_NAME, _MRO = type.__dict__["__name__"], type.__dict__["__mro__"]
_ARGS = BaseException.__dict__["args"]
_OF_THE_PRODUCT = (*CLASSES.values(), IsolatedFailureError, NotStartedError)
"""Whose text says all there is to say, without the name of the class."""
_FILES = [OSError.__dict__["filename"], OSError.__dict__["filename2"]]
_OWN_TEXT = [kind.__dict__["__str__"] for kind in (BaseException, KeyError, OSError)]
"""What makes the text of exceptions out of their arguments alone, or almost."""


def said(text: str, most: int = MOST_SAID) -> str:
    """A plain text as it may be shown: cut, and with "?" for lone surrogates, which no encoding holds."""
    shown = text if len(text) <= most else text[: most - 1] + "…"
    return shown if shown.isascii() else shown.encode("utf-8", "replace").decode()


def name_of(found: object) -> str:
    """What a value is, for a message: "None", "int", "Sly, a subclass of Notes", whatever its class says."""
    if found is None:
        return "None"
    kinds: tuple[type, ...] = _MRO.__get__(type(found))
    names = [said(_NAME.__get__(kind), 100) for kind in kinds if kind is not object or len(kinds) == 1]
    return names[0] if len(names) == 1 or kinds[0] is bool else f"{names[0]}, a subclass of {names[1]}"


def shape_of(found: object) -> str:
    """The same, and of an array its type and shape: "float64[3]"."""
    if type(found) is np.ndarray:
        return f"{found.dtype}{list(found.shape)}"
    return name_of(found)


def kind_of(error: BaseException) -> str:
    """The name of the class of an exception."""
    return said(_NAME.__get__(type(error)), 100)


def describe(error: BaseException) -> str:
    """An exception in words, without a traceback; the step is named beside it.

    Of an exception whose class brings its own `__str__`, only plain arguments are shown.
    """
    kind = type(error)
    if kind in (Unfit, ContractError, StageInvariantError) and type(violation := vars(error).get("violation")) is str:
        return said(f"it {violation}")
    try:
        message = said(_text(error))
    except Exception:  # it has no text, such as a number of too many digits
        message = ""
    name = kind_of(error)
    return message if message and kind in _OF_THE_PRODUCT else f"{name}: {message}" if message else name


def _text(error: BaseException) -> str:
    """The text of an exception as far as it can be had without running foreign code."""
    args = _ARGS.__get__(error)
    files = [file.__get__(error) for file in _FILES] if issubclass(type(error), OSError) else []
    plain = all(type(value) in _PLAIN for value in (*args, *files))
    if plain and getattr_static(type(error), "__str__") in _OWN_TEXT:
        return str(error)
    return ", ".join(str(value) for value in args if type(value) in _PLAIN)
