"""Validates the reply of a service and extracts its vectors (feature I6)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from speckit_memory.pipeline.ports import Vectors

LARGEST_VECTOR = 400_000
"""Maximum bytes of JSON per vector: twice those of 8,192 numbers in their longest form."""
LARGEST_FRAME = 1_000_000
"""Maximum bytes of JSON around the vectors."""


class ReplyError(Exception):
    """An invalid reply; `again` says whether a retry may succeed."""

    def __init__(self, reason: str, *, again: bool = False) -> None:
        super().__init__(reason)
        self.again = again


def largest(texts: int) -> int:
    """Return the maximum bytes of the reply for this number of texts."""
    return LARGEST_FRAME + texts * LARGEST_VECTOR


def vectors(body: bytes, count: int, dimensions: int | None) -> Vectors:
    """Return unit rows in the order of the texts, shape (count, dimensions). Raises ReplyError.

    `dimensions` is the length of earlier vectors of the model, None before the first.
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ReplyError(f"its answer is not JSON ({len(body):,} bytes)", again=True) from error
    entries = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(entries, list):
        raise ReplyError("its answer has no list 'data'")
    if len(entries) != count:
        raise ReplyError(f"it answered with {len(entries):,} vectors for {count:,} texts")
    found = [_row(entry) for entry in _ordered(entries)]
    lengths_found = sorted({len(row) for row in found})
    if len(lengths_found) > 1 or (dimensions is not None and lengths_found != [dimensions]):
        told = " and ".join(f"{length:,}" for length in lengths_found)
        raise ReplyError(f"it answered with vectors of {told} dimensions, expected {dimensions or 'one length'}")
    rows = np.array(found)
    # rows: (count, dimensions) float64
    lengths = np.sqrt(np.square(rows).sum(axis=1))
    if not np.isfinite(lengths).all() or not lengths.all():
        raise ReplyError("it answered with a vector that is zero or not finite")
    unit: Vectors = (rows / lengths[:, None]).astype(np.float32)
    return unit


def _ordered(entries: list[Any]) -> list[dict[str, Any]]:
    """Return the entries in the order of the texts: by their index, or as given if none has one."""
    if not all(isinstance(entry, dict) for entry in entries):
        raise ReplyError("a vector of its answer is not an object")
    places = [entry.get("index") for entry in entries]
    if all(place is None for place in places):
        return entries
    if sorted(place for place in places if type(place) is int) != list(range(len(entries))):
        raise ReplyError("the indexes of its vectors are not those of the texts")
    return sorted(entries, key=lambda entry: int(entry["index"]))


def _row(entry: dict[str, Any]) -> list[float]:
    numbers = entry.get("embedding")
    if not isinstance(numbers, list) or not numbers:
        raise ReplyError("a vector of its answer is not a list of numbers")
    if not all(type(number) in (int, float) for number in numbers):
        raise ReplyError("a vector of its answer has an element that is not a number")
    try:
        return [float(number) for number in numbers]
    except OverflowError:
        raise ReplyError("a vector of its answer has a number that is too large") from None
