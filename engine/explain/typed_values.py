"""Lists the values that people would type between two numbers: two significant digits."""

from __future__ import annotations

import math

DIGITS = 2
DECADES = 3
"""Number of powers of ten below the larger end that are listed before 0."""


def typed_values(start: float, end: float, *, whole: bool) -> list[float]:
    """Values from near `start` to `end`, by distance from `start`, which is excluded. Both are finite.

    `end` is included regardless of its digits. With `whole`, only whole numbers.
    """
    low, high = min(start, end), max(start, end)
    found = {sign * size for sign in (-1, 1) for size in _magnitudes(max(abs(low), abs(high)))} | {0.0, end}
    inside = (value for value in found if low <= value <= high and value != start)
    values = {int(value) for value in inside if value == int(value)} if whole else set(inside)
    return sorted(values, key=lambda value: abs(value - start))


def _magnitudes(largest: float) -> list[float]:
    """Numbers of two significant digits up to the power of ten above `largest`."""
    if not largest:
        return []
    top = math.floor(math.log10(largest))
    powers = range(top - DECADES, top + 1)
    # parsed from text, so that 0.57 is the float nearest to 0.57
    return [float(f"{digits}e{power - DIGITS + 1}") for power in powers for digits in range(10, 100)]
