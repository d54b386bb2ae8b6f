"""Where two runs part: the first step whose outcome is another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

from speckit_memory.pipeline.model.columns import Hits, Notes, Pool
from speckit_memory.pipeline.running.step_memo import Reached

Numbered = tuple[str, int]
"""A step and how often it had stood before: a channel stands once for each wording."""


def same(one: object, other: object) -> bool:
    """Whether two states say the same: equal plans, hits, rows with their scores, or notes, bit by bit."""
    return one is other or _plain(one) == _plain(other)


def parted_at(
    control: Sequence[Reached], variant: Sequence[Reached], alike: Callable[[object, object], bool] = same
) -> str:
    """The first step after which the two are not the same, "" when they are to the end.

    A step that only one of them has parts them where it changes something. `alike` judges states that are less than
    whole: what a finished answer still tells of them.
    """
    ours, theirs = _numbered(control), _numbered(variant)
    left, right = list(ours), list(theirs)
    while left or right:
        if right and right[0] not in ours:
            step = right.pop(0)
            _, before, after = theirs[step]
        elif left and left[0] not in theirs:
            step = left.pop(0)
            _, before, after = ours[step]
        else:
            # both have it, perhaps at another place
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
    """A state as plain values; hits that are none are the same as no answer."""
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
