"""Descriptions of values that components return, and of their errors, for messages."""

from __future__ import annotations

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

_OF_THE_PRODUCT = (*CLASSES.values(), IsolatedFailureError, NotStartedError)
"""Errors whose text is complete without the name of the class."""


def displayable(text: str, most: int = MOST_SAID) -> str:
    """A plain text ready to be shown: truncated, and with "?" for lone surrogates, which no encoding can hold."""
    shown = text if len(text) <= most else text[: most - 1] + "…"
    # "replace" writes "?" for a surrogate; the result is valid UTF-8, so decoding cannot fail.
    return shown if shown.isascii() else shown.encode("utf-8", "replace").decode()


def name_of(found: object) -> str:
    """The type of a value, for a message: "None", "int", "Sly, a subclass of Notes"."""
    if found is None:
        return "None"
    kind, *bases = type(found).__mro__[:-1] or (object,)
    name = displayable(kind.__name__, 100)
    return f"{name}, a subclass of {displayable(bases[0].__name__, 100)}" if bases and kind is not bool else name


def shape_of(found: object) -> str:
    """The same; for an array its element type and shape: "float64[3]"."""
    if type(found) is np.ndarray:
        return f"{found.dtype}{list(found.shape)}"
    return name_of(found)


def kind_of(error: BaseException) -> str:
    """The name of the class of an exception."""
    return displayable(type(error).__name__, 100)


def describe(error: BaseException) -> str:
    """An exception in words, without a traceback and without the name of the step."""
    if isinstance(error, InvalidComponentOutput | ContractError | StageInvariantError):
        return displayable(f"it {error.violation}")
    try:
        message = displayable(str(error))
    except Exception:  # it has no text, for example because a number has too many digits
        message = ""
    if message and isinstance(error, _OF_THE_PRODUCT):
        return message
    return f"{kind_of(error)}: {message}" if message else kind_of(error)
