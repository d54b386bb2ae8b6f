"""Taking judgements and promotions back: what a memory would be like had they never been given (feature F17)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.lifecycle import confidence
from speckit_memory.memory.lifecycle.reviews import NOT_USEFUL, USED, USEFUL, Review, reviewed_once
from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.tables.memories import judgements, promotions
from speckit_memory.memory.store.tables.memories.judgements import Judgement, Regard

_LOOK = ("`speckit-memory learned judgements` lists them, with what was taken back",)


class TakenBack(NamedTuple):
    """What was taken back, first to last, and the promotions that do not stand without it and went too."""

    undone: tuple[Judgement, ...]
    followed: tuple[Judgement, ...] = ()


def judged(before: Regard, useful: bool, at: float, created: float) -> Regard:
    """How a memory that was made at `created` stands after a judgement at `at` (epoch seconds)."""
    after = reviewed_once(before, Review(USEFUL if useful else NOT_USEFUL, at), created)
    return after._replace(confidence=confidence.judged(before.confidence, useful), validations=before.validations + 1)


def undo(txn: Transaction, numbers: Sequence[int], now: float) -> TakenBack:
    """Takes judgements and promotions back, all or none of those with these numbers.

    What came after them on the same memories is lived through once more. A promotion for which too little is left goes
    too. Raises E080 for a number that there is not (any more), E030 for what was taken back before.
    """
    found = judgements.numbered(txn.connection, numbers)
    for number in numbers:
        if number not in found:
            raise SpeckitError(
                "E080",
                f"there is no judgement {number}",
                hint=f"Of each memory the last {judgements.MOST_KEPT} are kept.",
                actions=_LOOK,
            )
        if found[number].undone_at is not None:
            raise SpeckitError(
                "E030",
                f"judgement {number} was taken back before",
                hint="What was taken back counts no more; there is nothing left to undo.",
                actions=_LOOK,
            )
    followed: list[Judgement] = []
    for memory in sorted({one.memory for one in found.values()}):
        chosen = frozenset(one.id for one in found.values() if one.memory == memory)
        followed += _lived_again(txn, memory, chosen)
    judgements.take_back(txn, (one.id for one in (*found.values(), *followed)), now)
    return TakenBack(tuple(found.values()), tuple(followed))


def _lived_again(txn: Transaction, memory: int, chosen: frozenset[int]) -> list[Judgement]:
    """Lives through what came after the first of those that were `chosen`, without these; the promotions that fail.

    A promotion that holds stays on record when what came after it does not any more, so that it tells nothing of how
    the memory stood then.
    """
    created: float = value(txn.connection, "SELECT created_at FROM memories WHERE id = ?", (memory,))
    life = judgements.since(txn.connection, memory, min(chosen))
    stands = next((one.before for one in life if one.kind != "promoted"), life[0].before)
    failed: list[Judgement] = []
    for one in life:
        if one.id in chosen:
            continue
        if one.kind == "promoted" and not confidence.promotable(stands.confidence, stands.validations):
            failed.append(one)
            continue
        after = _after(stands, one, created)
        if (stands, after) != (one.before, one.after):
            judgements.correct(txn, one.id, stands, after)
        stands = after
    if any(one.kind != "promoted" for one in life):
        judgements.put_regard(txn, memory, stands)
    if any(one.kind == "promoted" and (one.id in chosen or one in failed) for one in life):
        promotions.take_back(txn, memory)
    return failed


def _after(before: Regard, one: Judgement, created: float) -> Regard:
    if one.kind == "promoted":
        return before
    if one.kind == "used":
        return reviewed_once(before, Review(USED, one.at), created)
    return judged(before, one.kind == "useful", one.at, created)
