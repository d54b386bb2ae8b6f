"""Ranks memories whose trigger phrases occur in a prompt, boosted by the session's attention (feature T3)."""

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
"""Weight of a memory's importance relative to one matching phrase, as in the channel `trigger`."""
SESSION_SHARE = 0.15
"""Relative boost of a score by full attention, as by the step `session` in searches."""
FADING_BY_TURN = 0.98
"""Factor on attention per turn since the memory was matched."""
SOURCE = "triggers"
_TURN = "turn "
SEEDS, RELATED, LEAST_SIMILAR = 5, 5, 0.70
"""Sources per hop, neighbours per source, and minimum cosine of spreading activation (feature F12)."""
HOPS, PASSED_ON, FULL_BOOST, MOST_RELATED = 2, 0.5, 0.25, 20


@dataclass(frozen=True, slots=True)
class TriggerMatch:
    """A memory and those of its phrases that occur in the prompt.

    `learned` counts matching phrases that were learned from selections. `attention` is the session's in [0, 1]; `score`
    is in (0, 1.15). `text` is the whole memory if a session matches a HOT one (`whole`), else its summary or first
    passage.
    """

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
    """A memory similar to the matched ones, with its activation in (0, 0.125]."""

    memory: MemoryRecord
    activation: float


@dataclass(frozen=True, slots=True)
class TriggerMatches:
    """The best matches, the number of all matching memories, and how many of those the session attended to.

    `related` are memories activated by the best matches; only with a session.
    """

    matches: tuple[TriggerMatch, ...]
    total: int
    attended: int
    related: tuple[RelatedMemory, ...] = ()


def match(opened: OpenStore, prompt: str, limit: int, session: str, turn: int | None, now: float) -> TriggerMatches:
    """The memories whose trigger phrases match best; ties are broken by id.

    The strength of a memory is that of the channel `trigger`, s / (1 + s), where s is the sum of the weights of its
    phrases (1, learned ones 0.7) and 0.1 · importance. Its score is strength · (1 + 0.15 · attention).

    Args:
        opened: The store.
        prompt: The prompt.
        limit: Maximum number of memories.
        session: The session; without one, attention is 0.
        turn: The turn of the conversation, with which attention decays.
        now: Epoch seconds.
    """
    store = StoreView(opened.read_model.current())
    found, weights = store.triggers.matches(prompt, now)
    kept = store.attributes.scope(Filter(), now).admits(found) if len(found) else np.zeros(0, np.bool_)
    ids = distinct(found[kept])
    if not len(ids):
        return TriggerMatches((), 0, 0)
    # ids: (n,) int64, distinct and sorted; found, weights: one entry per matching phrase, before the filter
    weighed = np.bincount(np.searchsorted(ids, found[kept]), weights=weights[kept], minlength=len(ids))
    strength = weighed + IMPORTANCE_SHARE * np.nan_to_num(store.attributes.number("importance_weight", ids))
    attention = _attention(opened, session, turn, now)
    seen = np.array([attention.get(memory, 0.0) for memory in ids.tolist()])
    # saturating, as in the channel `trigger`; all columns are (n,) float64
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
        said = store.passages.summaries([memory.id])  # no passage matched, and the first one may say little
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
    """Memories other than `known` that the best matches activate, highest activation first.

    Spreads activation as `Coactivation` does over the rows of a search, but over the whole store.
    """
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
                # a(m) = a(source) · PASSED_ON · cos(source, m) / √fan-out; the strongest path to a memory counts
                passed = activation * PASSED_ON * similarity / np.sqrt(len(near))
                if memory not in known and passed > reached.get(memory, 0.0):
                    reached[memory] = following[memory] = passed
        wave = following
    first = sorted(reached.items(), key=lambda item: (-item[1], item[0]))[:MOST_RELATED]
    return {memory: float(FULL_BOOST * activation) for memory, activation in first}


def note(opened: OpenStore, memories: Sequence[int], session: str, turn: int | None, now: float) -> None:
    """Records the memories that a session was shown, which it now attends to.

    Args:
        opened: The store.
        memories: The ids of the memories.
        session: The session; "" for none.
        turn: The turn of the conversation, if known.
        now: Epoch seconds.

    Raises:
        SpeckitError: The store is busy.
    """
    if session and memories and not opened.database.only_read:
        with opened.database.write(250) as txn:
            call = "" if turn is None else f"{_TURN}{turn}"
            working_memory.note_event(txn, session, memories, now, source=SOURCE, source_call=call)


def _attention(opened: OpenStore, session: str, turn: int | None, now: float) -> dict[int, float]:
    """The session's attention by memory, decayed per turn since the match if turns are known."""
    if not session:
        return {}
    with opened.database.snapshot_read() as connection:
        held = working_memory.working_memory_of(connection, session, now - working_memory.LIFE, now)
    return {one.memory: one.attention * FADING_BY_TURN ** _turns_since(one.source_call, turn) for one in held}


def _turns_since(call: str, turn: int | None) -> int:
    told = call.removeprefix(_TURN)
    return max(0, turn - int(told)) if turn is not None and told != call and told.isdigit() else 0


def _standing(phrases: Sequence[str], prompt: str, now: float) -> tuple[str, ...]:
    """The phrases that occur in the prompt as whole phrases."""
    index = TriggerIndex((at, normalised_phrase(phrase), 1.0, None) for at, phrase in enumerate(phrases))
    return tuple(phrases[at] for at in distinct(index.matches(prompt, now)[0]).tolist())
