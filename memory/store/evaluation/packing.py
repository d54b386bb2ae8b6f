"""Columns of numbers as bytes, and back. The first byte says how what follows is packed, little-endian throughout.

What a later version packs otherwise gets another first byte; what was written stays readable.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation.records import StepCost

_INTEGERS, _REALS, _COSTS = b"\x01", b"\x02", b"\x03"
_COST = struct.Struct("<Iii")
"""Microseconds, rows in, rows out."""
_MOST_US = 2**32 - 1


def packed_integers(values: Sequence[int]) -> bytes:
    """Ids or ranks, 8 bytes each."""
    return _INTEGERS + struct.pack(f"<{len(values)}q", *values)


def integers(packed: bytes) -> tuple[int, ...]:
    """What `packed_integers` was given. Raises E024 for anything else."""
    return struct.unpack(f"<{_count(packed, _INTEGERS, 8)}q", packed[1:])


def packed_reals(values: Sequence[float]) -> bytes:
    """Scores, 8 bytes each: two answers are compared bit by bit."""
    return _REALS + struct.pack(f"<{len(values)}d", *values)


def reals(packed: bytes) -> tuple[float, ...]:
    """What `packed_reals` was given. Raises E024 for anything else."""
    return struct.unpack(f"<{_count(packed, _REALS, 8)}d", packed[1:])


def packed_costs(steps: Sequence[StepCost]) -> bytes:
    """Times and rows of steps, 12 bytes each. Times are rounded to microseconds, which is how they are shown."""
    return _COSTS + b"".join(
        _COST.pack(min(_MOST_US, max(0, round(step.ms * 1000))), step.rows_in, step.rows_out) for step in steps
    )


def costs(packed: bytes) -> list[tuple[float, int, int]]:
    """Milliseconds, rows in and rows out of each step. Raises E024 for what `packed_costs` has not made."""
    _count(packed, _COSTS, _COST.size)
    return [(us / 1000, rows_in, rows_out) for us, rows_in, rows_out in _COST.iter_unpack(packed[1:])]


def _count(packed: bytes, kind: bytes, size: int) -> int:
    count, rest = divmod(len(packed) - 1, size)
    if packed[:1] != kind or rest:
        raise SpeckitError("E024", "the evaluation database is damaged: it holds numbers of an unknown form")
    return count
