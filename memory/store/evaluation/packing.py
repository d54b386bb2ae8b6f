"""Packing of columns of numbers as bytes. The first byte names the format of the rest, always little-endian.

A later format gets another first byte, so that old rows stay readable.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation.records import StepCost

_INTEGERS, _REALS, _COSTS = b"\x01", b"\x02", b"\x03"
# 32-bit microseconds reach over an hour; longer times are cut to _MOST_US.
_COST = struct.Struct("<Iii")
"""Microseconds, rows in, rows out."""
_MOST_US = 2**32 - 1


def packed_integers(values: Sequence[int]) -> bytes:
    """Packs ids or ranks, 8 bytes each."""
    return _INTEGERS + struct.pack(f"<{len(values)}q", *values)


def integers(packed: bytes) -> tuple[int, ...]:
    """Unpacks the result of `packed_integers`. Raises E024 for other bytes."""
    return struct.unpack(f"<{_count(packed, _INTEGERS, 8)}q", packed[1:])


def packed_reals(values: Sequence[float]) -> bytes:
    """Packs scores, 8 bytes each: two answers are compared bit by bit."""
    return _REALS + struct.pack(f"<{len(values)}d", *values)


def reals(packed: bytes) -> tuple[float, ...]:
    """Unpacks the result of `packed_reals`. Raises E024 for other bytes."""
    return struct.unpack(f"<{_count(packed, _REALS, 8)}d", packed[1:])


def packed_costs(steps: Sequence[StepCost]) -> bytes:
    """Packs times and row counts of steps, 12 bytes each. Times are rounded to microseconds, as displayed."""
    return _COSTS + b"".join(
        _COST.pack(min(_MOST_US, max(0, round(step.ms * 1000))), step.rows_in, step.rows_out) for step in steps
    )


def costs(packed: bytes) -> list[tuple[float, int, int]]:
    """Unpacks the result of `packed_costs`: (milliseconds, rows in, rows out) per step. Raises E024 for other bytes."""
    _count(packed, _COSTS, _COST.size)
    return [(us / 1000, rows_in, rows_out) for us, rows_in, rows_out in _COST.iter_unpack(packed[1:])]


def _count(packed: bytes, kind: bytes, size: int) -> int:
    count, rest = divmod(len(packed) - 1, size)
    if packed[:1] != kind or rest:
        raise SpeckitError("E024", "the evaluation database is damaged: it holds numbers in an unknown format")
    return count
