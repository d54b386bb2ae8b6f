"""Memories whose trigger phrases stand in a prompt, by what the session attends to (feature T3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from speckit_memory.engine import assembly
from speckit_memory.memory.lifecycle.states import Thresholds, name_of, states_of
from speckit_memory.memory.store.read_model.trigger_index import TriggerIndex
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import MemoryRecord
from speckit_memory.memory.store.tables import working_memory
from speckit_memory.memory.store.tables.phrases import normalised_phrase
from speckit_memory.pipeline.arithmetic import distinct
from speckit_memory.pipeline.ports import Filter
from speckit_memory.pipeline.view import StoreView

IMPORTANCE_SHARE = 0.1
"""How much the importance of a memory counts beside one matching phrase: as in the channel `trigger`."""
SESSION_SHARE = 0.15
"""How much full attention of the session adds to a score, as the step `session` does it for searches."""
FADING_BY_TURN = 0.98
"""What each turn since a memory was matched leaves of the session's attention to it."""
SOURCE = "triggers"
_TURN = "turn "


@dataclass(frozen=True, slots=True)
class TriggerMatch:
    """A memory and those of its phrases that stand in the prompt. `learned` counts further ones that readers' choices
    have taught. `attention` is the session's in [0, 1]; `score` is in (0, 1.15)."""

    memory: MemoryRecord
    score: float
    phrases: tuple[str, ...]
    learned: int
    attention: float
    state: str
    excerpt: str


@dataclass(frozen=True, slots=True)
class TriggerMatches:
    """The best matches, how many memories matched, and how many of these the session attended to."""

    matches: tuple[TriggerMatch, ...]
    total: int
    attended: int


def match(
    opened: assembly.OpenStore, prompt: str, limit: int, session: str, turn: int | None, now: float
) -> TriggerMatches:
    """The `limit` memories whose phrases match best; without a session, attention is 0.

    The strength of a memory is that of the channel `trigger`: s / (1 + s), s the weights of its phrases (1, learned
    ones 0.7) and 0.1 · importance. The score is that times 1 + 0.15 · attention. Equal ones follow by id.
    """
    store = StoreView(opened.read_model.current())
    found, weights = store.triggers.matches(prompt, now)
    kept = store.attributes.scope(Filter(), now).admits(found) if len(found) else np.zeros(0, np.bool_)
    ids = distinct(found[kept])
    if not len(ids):
        return TriggerMatches((), 0, 0)
    weighed = np.bincount(np.searchsorted(ids, found[kept]), weights=weights[kept], minlength=len(ids))
    strength = weighed + IMPORTANCE_SHARE * np.nan_to_num(store.attributes.number("importance_weight", ids))
    attention = _attention(opened, session, turn, now)
    seen = np.array([attention.get(memory, 0.0) for memory in ids.tolist()])
    score = strength / (1 + strength) * (1 + SESSION_SHARE * seen)
    best = np.lexsort((ids, -score))[:limit]
    states = states_of(store.attributes, ids[best], now, Thresholds())
    connection = opened.database.reader()
    matches = []
    for place, state in zip(best.tolist(), states.tolist(), strict=True):
        memory = reader.get_memory(connection, int(ids[place]))
        phrases = _standing(memory.triggers, prompt, now)
        everything = int(np.count_nonzero(found[kept] == ids[place]))
        said = store.passages.summaries([memory.id])  # no passage matched: the first one says what it happens to
        [excerpt] = [passage.text for passage in said.values() or store.passages.passages([memory.id])] or [""]
        matches.append(
            TriggerMatch(
                memory, float(score[place]), phrases, max(0, everything - len(phrases)), float(seen[place]),
                name_of(state), excerpt,
            )
        )  # fmt: skip
    return TriggerMatches(tuple(matches), len(ids), int(np.count_nonzero(seen)))


def note(opened: assembly.OpenStore, memories: Sequence[int], session: str, turn: int | None, now: float) -> None:
    """Has a session attend to the memories that it was shown. Raises SpeckitError when the store is busy."""
    if session and memories and not opened.database.only_read:
        with opened.database.write(250) as txn:
            call = "" if turn is None else f"{_TURN}{turn}"
            working_memory.note_event(txn, session, memories, now, source=SOURCE, source_call=call)


def _attention(opened: assembly.OpenStore, session: str, turn: int | None, now: float) -> dict[int, float]:
    """What the session attends to, fainter by every turn since the one in which it was matched, where that is known."""
    if not session:
        return {}
    with opened.database.snapshot_read() as connection:
        held = working_memory.attended(connection, session, now - working_memory.LIFE, now)
    return {one.memory: one.attention * FADING_BY_TURN ** _turns_since(one.source_call, turn) for one in held}


def _turns_since(call: str, turn: int | None) -> int:
    told = call.removeprefix(_TURN)
    return max(0, turn - int(told)) if turn is not None and told != call and told.isdigit() else 0


def _standing(phrases: Sequence[str], prompt: str, now: float) -> tuple[str, ...]:
    """Those phrases that stand in the prompt as whole phrases."""
    index = TriggerIndex((at, normalised_phrase(phrase), 1.0, None) for at, phrase in enumerate(phrases))
    return tuple(phrases[at] for at in distinct(index.matches(prompt, now)[0]).tolist())
