"""Memories whose trigger phrases stand in a prompt, by what the session attends to (feature T3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.memory.lifecycle.states import Thresholds, name_of, states_of
from speckit_memory.memory.store.read_model.facts.trigger_index import TriggerIndex
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.records import MemoryRecord
from speckit_memory.memory.store.tables.sessions import working_memory
from speckit_memory.memory.store.tables.words.phrases import normalised_phrase
from speckit_memory.pipeline.arithmetic import distinct
from speckit_memory.pipeline.ports import Filter
from speckit_memory.pipeline.running.view import StoreView

IMPORTANCE_SHARE = 0.1
"""How much the importance of a memory counts beside one matching phrase: as in the channel `trigger`."""
SESSION_SHARE = 0.15
"""How much full attention of the session adds to a score, as the step `session` does it for searches."""
FADING_BY_TURN = 0.98
"""What each turn since a memory was matched leaves of the session's attention to it."""
SOURCE = "triggers"
_TURN = "turn "
SEEDS, RELATED, LEAST_SIMILAR = 5, 5, 0.70
"""So many memories activate others at each hop, how many each, and from which cosine on (feature F12)."""
HOPS, PASSED_ON, FULL_BOOST, MOST_RELATED = 2, 0.5, 0.25, 20


@dataclass(frozen=True, slots=True)
class TriggerMatch:
    """A memory and those of its phrases that stand in the prompt. `learned` counts further ones that readers' choices
    have taught. `attention` is the session's in [0, 1]; `score` is in (0, 1.15). `text` is the whole memory where a
    session matches one that is HOT, and what it says first otherwise."""

    memory: MemoryRecord
    score: float
    phrases: tuple[str, ...]
    learned: int
    attention: float
    state: str
    text: str
    whole: bool = False


@dataclass(frozen=True, slots=True)
class RelatedMemory:
    """A memory that resembles what a session's prompt has triggered, with its activation in (0, 0.125]."""

    memory: MemoryRecord
    activation: float


@dataclass(frozen=True, slots=True)
class TriggerMatches:
    """The best matches, how many memories matched, and how many of these the session attended to. `related` are
    memories that the best matches activate, for a session."""

    matches: tuple[TriggerMatch, ...]
    total: int
    attended: int
    related: tuple[RelatedMemory, ...] = ()


def match(opened: OpenStore, prompt: str, limit: int, session: str, turn: int | None, now: float) -> TriggerMatches:
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
        whole = bool(session) and name_of(state) == "HOT"
        said = store.passages.summaries([memory.id])  # no passage matched: the first one says what it happens to
        first = next((passage.text for passage in said.values() or store.passages.passages([memory.id])), "")
        matches.append(
            TriggerMatch(
                memory,
                float(score[place]),
                phrases,
                max(0, everything - len(phrases)),
                float(seen[place]),
                name_of(state),
                reader.body(connection, memory.id) if whole else first,
                whole,
            )
        )
    activated = _activated(store, ids[best].tolist(), set(ids.tolist()), now) if session else {}
    related = tuple(
        RelatedMemory(reader.get_memory(connection, memory), activation) for memory, activation in activated.items()
    )
    return TriggerMatches(tuple(matches), len(ids), int(np.count_nonzero(seen)), related)


def _activated(store: StoreView, matched: Sequence[int], known: set[int], now: float) -> dict[int, float]:
    """The memories beside those `known` that the best matches activate, most of all first: as `Coactivation` spreads
    activation over the rows of a search, here over the whole store."""
    scope = store.attributes.scope(Filter(), now)
    reached: dict[int, float] = {}
    wave = dict.fromkeys(matched[:SEEDS], 1.0)
    for _ in range(HOPS if store.vectors.dimensions else 0):
        following: dict[int, float] = {}
        for source, activation in sorted(wave.items(), key=lambda item: (-item[1], item[0]))[:SEEDS]:
            [direction] = store.vectors.vectors(np.array([source]))
            found, similar, _ = store.vectors.nearest(direction, RELATED + 1, scope, "memory")
            near = [pair for pair in zip(found.tolist(), similar.tolist(), strict=True) if pair[0] != source]
            near = [pair for pair in near if pair[1] >= LEAST_SIMILAR][:RELATED]
            for memory, similarity in near:
                passed = activation * PASSED_ON * similarity / np.sqrt(len(near))
                if memory not in known and passed > reached.get(memory, 0.0):
                    reached[memory] = following[memory] = passed
        wave = following
    first = sorted(reached.items(), key=lambda item: (-item[1], item[0]))[:MOST_RELATED]
    return {memory: float(FULL_BOOST * activation) for memory, activation in first}


def note(opened: OpenStore, memories: Sequence[int], session: str, turn: int | None, now: float) -> None:
    """Has a session attend to the memories that it was shown. Raises SpeckitError when the store is busy."""
    if session and memories and not opened.database.only_read:
        with opened.database.write(250) as txn:
            call = "" if turn is None else f"{_TURN}{turn}"
            working_memory.note_event(txn, session, memories, now, source=SOURCE, source_call=call)


def _attention(opened: OpenStore, session: str, turn: int | None, now: float) -> dict[int, float]:
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
