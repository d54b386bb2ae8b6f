"""Undoes judgements and promotions: a memory becomes as if they had never been given (feature F17)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.lifecycle import confidence
from speckit_memory.memory.lifecycle.reviews import NOT_USEFUL, USED, USEFUL, Review, reviewed_once
from speckit_memory.memory.store.file.connection import Transaction
from speckit_memory.memory.store.file.guarding.queries import value
from speckit_memory.memory.store.tables.memories import judgements, promotions
from speckit_memory.memory.store.tables.memories.judgements import Judgement, ReviewState

_LOOK = ("`speckit-memory learned judgements` lists them, including those taken back",)


class TakenBack(NamedTuple):
    """The judgements undone, in order, and the promotions that were invalid without them and were undone as well."""

    undone: tuple[Judgement, ...]
    followed: tuple[Judgement, ...] = ()


def judge_state(before: ReviewState, useful: bool, at: float, created: float) -> ReviewState:
    """The state of a memory after a judgement.

    Args:
        before: Its state before.
        useful: Whether the judgement is "useful".
        at: The time of the judgement, epoch seconds.
        created: When the memory was created, epoch seconds.
    """
    after = reviewed_once(before, Review(USEFUL if useful else NOT_USEFUL, at), created)
    return after._replace(
        confidence=confidence.judged_confidence(before.confidence, useful), validations=before.validations + 1
    )


def undo(txn: Transaction, numbers: Sequence[int], now: float) -> TakenBack:
    """Undo the judgements and promotions with these numbers, all or none.

    Later events of the same memories are replayed. A promotion that no longer has enough support is undone as well.
    Raises E080 for a number that does not exist (any more), E030 for one that was undone before.
    """
    found = judgements.judgements_by_number(txn.connection, numbers)
    for number in numbers:
        if number not in found:
            raise SpeckitError(
                "E080",
                f"there is no judgement {number}",
                hint=f"The last {judgements.MOST_KEPT} of each memory are kept.",
                actions=_LOOK,
            )
        if found[number].undone_at is not None:
            raise SpeckitError(
                "E030",
                f"judgement {number} was taken back before",
                hint="It no longer counts; there is nothing left to undo.",
                actions=_LOOK,
            )
    followed: list[Judgement] = []
    for memory in sorted({one.memory for one in found.values()}):
        chosen = frozenset(one.id for one in found.values() if one.memory == memory)
        followed += _lived_again(txn, memory, chosen)
    judgements.take_back(txn, (one.id for one in (*found.values(), *followed)), now)
    return TakenBack(tuple(found.values()), tuple(followed))


def _lived_again(txn: Transaction, memory: int, chosen: frozenset[int]) -> list[Judgement]:
    """Replay the events since the first `chosen` one, without the chosen ones; returns the promotions that fail.

    A valid promotion stays on record even if the event after it was undone; it does not record the memory's state.
    """
    created: float = value(txn.connection, "SELECT created_at FROM memories WHERE id = ?", (memory,))
    life = judgements.since(txn.connection, memory, min(chosen))
    # Replay from the state before the first event; records of promotions do not hold a reliable state.
    stands = next((one.before for one in life if one.kind != "promoted"), life[0].before)
    failed: list[Judgement] = []
    for one in life:
        if one.id in chosen:
            continue
        if one.kind == "promoted" and not confidence.promotable(stands.confidence, stands.validations):
            failed.append(one)
            continue
        after = _after(stands, one, created)
        # Later records show the states as they would have been, so that they can be undone in turn.
        if (stands, after) != (one.before, one.after):
            judgements.correct(txn, one.id, stands, after)
        stands = after
    if any(one.kind != "promoted" for one in life):
        judgements.put_regard(txn, memory, stands)
    if any(one.kind == "promoted" and (one.id in chosen or one in failed) for one in life):
        promotions.take_back(txn, memory)
    return failed


def _after(before: ReviewState, one: Judgement, created: float) -> ReviewState:
    if one.kind == "promoted":
        return before
    if one.kind == "used":
        return reviewed_once(before, Review(USED, one.at), created)
    return judge_state(before, one.kind == "useful", one.at, created)
