"""Packing of columns of numbers as bytes. The first byte names the format of the rest, always little-endian.

A later format gets another first byte, so that old rows stay readable.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import numpy as np

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.evaluation.records import StepCost
from speckit_memory.pipeline.ports import Column

StepLayout = tuple[tuple[str, str, str, bool], ...]
"""Stage, name, state and whether shared, of each step of an answer."""

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
    return struct.unpack_from(f"<{_count(packed, _INTEGERS, 8)}q", packed, 1)


def packed_reals(values: Sequence[float]) -> bytes:
    """Packs scores, 8 bytes each: two answers are compared bit by bit."""
    return _REALS + struct.pack(f"<{len(values)}d", *values)


def reals(packed: bytes) -> tuple[float, ...]:
    """Unpacks the result of `packed_reals`. Raises E024 for other bytes."""
    return struct.unpack_from(f"<{_count(packed, _REALS, 8)}d", packed, 1)


def packed_costs(steps: Sequence[StepCost]) -> bytes:
    """Packs times and row counts of steps, 12 bytes each. Times are rounded to microseconds, as displayed."""
    return _COSTS + b"".join(
        _COST.pack(min(_MOST_US, max(0, round(step.ms * 1000))), step.rows_in, step.rows_out) for step in steps
    )


class PackedSteps(Sequence[StepCost]):
    """The steps of a stored answer, which are unpacked when they are read; `layout` is the same object for all answers
    with the same steps. Raises E024 for costs that are not of `packed_costs` and of this layout."""

    __slots__ = ("_costs", "layout")

    def __init__(self, layout: StepLayout, costs: bytes) -> None:
        if _count(costs, _COSTS, _COST.size) != len(layout):
            raise _damaged()
        self.layout, self._costs = layout, costs

    @overload
    def __getitem__(self, place: int) -> StepCost: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[StepCost, ...]: ...
    def __getitem__(self, place: int | slice) -> StepCost | tuple[StepCost, ...]:
        return tuple(self)[place]

    def __iter__(self) -> Iterator[StepCost]:
        costs = _COST.iter_unpack(self._costs[1:])
        for (stage, step, state, shared), (us, rows_in, rows_out) in zip(self.layout, costs, strict=True):
            yield StepCost(stage, step, us / 1000, rows_in, rows_out, state, shared)

    def __len__(self) -> int:
        return len(self.layout)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


def step_times(answers: Iterable[Sequence[StepCost]]) -> Iterator[tuple[StepLayout, Column]]:
    """The milliseconds of steps, float64[answers, steps], of all answers with the same steps; by first answer."""
    stored: dict[int, list[PackedSteps]] = {}
    for steps in answers:
        if isinstance(steps, PackedSteps):
            stored.setdefault(id(steps.layout), []).append(steps)
        else:
            layout = tuple((one.stage, one.step, one.state, one.shared) for one in steps)
            yield layout, np.array([[one.ms for one in steps]])
    for alike in stored.values():
        packed = np.frombuffer(b"".join(one._costs for one in alike), np.uint8).reshape(len(alike), -1)
        microseconds = np.ascontiguousarray(packed[:, 1:]).view("<u4")[:, :: _COST.size // 4]
        yield alike[0].layout, microseconds / 1000


def _count(packed: bytes, kind: bytes, size: int) -> int:
    count, rest = divmod(len(packed) - 1, size)
    if rest or packed[:1] != kind:
        raise _damaged()
    return count


def _damaged() -> SpeckitError:
    return SpeckitError("E024", "the evaluation database is damaged: it holds numbers in an unknown format")
