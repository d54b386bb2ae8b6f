"""Finds the first step at which two runs diverge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

from speckit_memory.pipeline.model.columns import Hits, Notes, Pool
from speckit_memory.pipeline.running.step_memo import Reached

Numbered = tuple[str, int]
"""A step and how often it occurred before: a channel occurs once for each query variant."""


def same(one: object, other: object) -> bool:
    """Whether two states are equal: plans, hits, rows with their scores, or notes, compared bit by bit."""
    return one is other or _plain(one) == _plain(other)


def parted_at(
    control: Sequence[Reached], variant: Sequence[Reached], alike: Callable[[object, object], bool] = same
) -> str:
    """The id of the first step after which the two runs differ, "" if they do not.

    A step that occurs in only one of them counts if it changes something. `alike` compares two states; a custom one may
    compare only the parts that a finished answer still contains.
    """
    ours, theirs = _numbered(control), _numbered(variant)
    left, right = list(ours), list(theirs)
    while left or right:
        # Steps that only one run has are compared with their own input.
        if right and right[0] not in ours:
            step = right.pop(0)
            _, before, after = theirs[step]
        elif left and left[0] not in theirs:
            step = left.pop(0)
            _, before, after = ours[step]
        else:
            # both have it, perhaps at a different position
            step = right.pop(0)
            left.remove(step)
            before, after = ours[step][2], theirs[step][2]
        if not alike(before, after):
            return step[0]
    return ""


def _numbered(reached: Sequence[Reached]) -> dict[Numbered, Reached]:
    seen: Counter[str] = Counter()
    numbered: dict[Numbered, Reached] = {}
    for entry in reached:
        numbered[entry[0], seen[entry[0]]] = entry
        seen[entry[0]] += 1
    return numbered


def _plain(state: object) -> object:
    """A state as plain values; empty hits are equal to no answer."""
    match state:
        case Hits(ids=ids, scores=scores, passages=passages):
            return (_bytes(ids), _bytes(scores), _bytes(passages)) if len(ids) else None
        case Pool():
            return _bytes(state.ids), _bytes(state.score)
        case Notes(by_id=by_id, overall=overall, warnings=warnings):
            return (by_id, overall, warnings) if by_id or overall or warnings else None
        case tuple():
            return tuple(map(_plain, state))
        case _:
            return state


def _bytes(column: NDArray[Any] | None) -> bytes | None:
    return None if column is None else column.tobytes()
