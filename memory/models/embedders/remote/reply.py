"""What a service answered, believed only as far as it holds (feature I6)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from speckit_memory.pipeline.ports import Vectors

LARGEST_VECTOR = 400_000
"""Bytes of JSON that one vector may take: 8,192 numbers of the longest form, twice over."""
LARGEST_FRAME = 1_000_000
"""Bytes of JSON around the vectors."""


class ReplyError(Exception):
    """The answer is not one; `again` tells whether the next one may be."""

    def __init__(self, reason: str, *, again: bool = False) -> None:
        super().__init__(reason)
        self.again = again


def largest(texts: int) -> int:
    """How many bytes the answer for so many texts may have."""
    return LARGEST_FRAME + texts * LARGEST_VECTOR


def vectors(body: bytes, count: int, dimensions: int | None) -> Vectors:
    """Unit rows in the order of the texts, shape (count, dimensions). Raises ReplyError.

    `dimensions` is the length of earlier vectors of the model, None before the first.
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ReplyError(f"it answered with what is not JSON ({len(body):,} bytes)", again=True) from error
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
    lengths = np.sqrt(np.square(rows).sum(axis=1))
    if not np.isfinite(lengths).all() or not lengths.all():
        raise ReplyError("it answered with a vector that is zero or not finite")
    unit: Vectors = (rows / lengths[:, None]).astype(np.float32)
    return unit


def _ordered(entries: list[Any]) -> list[dict[str, Any]]:
    """The entries in the order of the texts: each tells its place, or none does."""
    if not all(isinstance(entry, dict) for entry in entries):
        raise ReplyError("a vector of its answer is no object")
    places = [entry.get("index") for entry in entries]
    if all(place is None for place in places):
        return entries
    if sorted(place for place in places if type(place) is int) != list(range(len(entries))):
        raise ReplyError("the places of its vectors are not those of the texts")
    return sorted(entries, key=lambda entry: int(entry["index"]))


def _row(entry: dict[str, Any]) -> list[float]:
    numbers = entry.get("embedding")
    if not isinstance(numbers, list) or not numbers:
        raise ReplyError("a vector of its answer is no list of numbers")
    if not all(type(number) in (int, float) for number in numbers):
        raise ReplyError("a vector of its answer holds what is no number")
    try:
        return [float(number) for number in numbers]
    except OverflowError:
        raise ReplyError("a vector of its answer holds a number that is too large") from None
