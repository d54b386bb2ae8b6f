"""The mode "resume": where work stopped, from hand-overs, from what the session attended to, and from what the words
find that name the work (features M13 and T1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from speckit_memory.memory.lifecycle.handovers import SECTIONS, naming_terms, naming_words
from speckit_memory.memory.store.records import Tier
from speckit_memory.memory.store.tables.sessions.working_memory import Attended
from speckit_memory.pipeline.comparing.mixing import mixed
from speckit_memory.pipeline.model.columns import Notes, Query
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.running.lookup import information_held, memories_with
from speckit_memory.pipeline.running.runner import Outcome

PIPELINE = "resume"
"""The preset that answers in this mode, whichever pipeline serves other questions."""
MOST_ATTENDED = 5
"""So many memories that the session attended to are named."""
MOST_CHANGED = 3
"""So many memories are named where there is no hand-over, the ones changed last."""
MOST_TOKENS = 58
"""The sentence that names them has no more, so that an answer of nothing else has at most 60."""
UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60))
NO_HANDOVER = "No hand-over yet."
ABOUT_IT = 0.5
"""A hand-over that holds more of the information of the words tells of the work that they name."""


def asks_for_handover(query: Query) -> bool:
    """Whether a question is to be answered by hand-overs first."""
    return query.mode == "resume"


def of_handovers(query: Query) -> Query:
    """The question for the sections of a hand-over, unless it names sections of its own."""
    return query if query.anchors else replace(query, anchors=SECTIONS)


def of_words(query: Query, store: Store) -> Query | None:
    """The question for the words that name the work to go on with; None when it only asks to go on.

    Who goes on with work has lost what was sent before, so that nothing is left out for having been sent.
    """
    terms = naming_terms(query.terms, store.lexicon)
    if not terms:
        return None
    return replace(query, text=naming_words(query.text, store.lexicon), terms=terms, dedup=False)


def are_known(words: Query, store: Store) -> bool:
    """Whether any memory holds one of the words."""
    return any(len(memories_with(term, store.lexicon)) for term in words.terms)


def telling(handovers: Outcome, words: Query, store: Store) -> list[int]:
    """The hand-overs found that tell of the work, in their order: half of the answer at most."""
    found = handovers.pool.candidates.parents
    held = information_held(words.terms, found, store.lexicon, store.attributes.count) if len(found) else np.zeros(0)
    return [int(memory) for memory in found[held > ABOUT_IT]][: max(1, words.limit // 2)]


def together(handovers: Outcome, first: Sequence[int], found: Outcome) -> Outcome:
    """These hand-overs, then what the words found."""
    order = list(dict.fromkeys([*first, *found.pool.candidates.parents.tolist()]))[: found.query.limit]
    mine, theirs = handovers.trace, found.trace
    trace = replace(
        mine,
        steps=(*mine.steps, *theirs.steps),
        losses=(*mine.losses, *theirs.losses),
        degraded=tuple(dict.fromkeys((*mine.degraded, *theirs.degraded))),
        total_ns=mine.total_ns + theirs.total_ns,
        stage_ns={stage: ns + theirs.stage_ns.get(stage, 0) for stage, ns in mine.stage_ns.items()},
    )
    notes = dict(handovers.notes)
    for step, of_found in found.notes.items():
        own = notes.get(step)
        notes[step] = (
            of_found
            if own is None
            else Notes(
                by_id={**of_found.by_id, **own.by_id},
                overall={**of_found.overall, **own.overall},
                warnings=tuple(dict.fromkeys((*own.warnings, *of_found.warnings))),
            )
        )
    return Outcome(handovers.query, mixed(handovers.pool, found.pool, order), notes, trace)


def no_handover(query: Query, store: Store, tokens: Callable[[str], int]) -> str:
    """That there is none, and what was changed last, as many memories as a short sentence has room for."""
    scope = store.attributes.scope(query.wanted, query.now)
    memories = np.sort(np.concatenate([store.attributes.of_tier(tier) for tier in Tier]))
    memories = memories[scope.admits(memories)]
    changed = np.minimum(np.nan_to_num(store.attributes.number("updated_at", memories), nan=-np.inf), query.now)
    latest = np.argsort(-changed, kind="stable")[:MOST_CHANGED]
    keys = store.attributes.label("key", memories[latest]).tolist()
    names = [_dated(key, query.now - at) for key, at in zip(keys, changed[latest].tolist(), strict=True)]
    said = f"No hand-over has a section {' or '.join(query.anchors)}." if query.anchors else NO_HANDOVER
    sentences = (f"{said} Changed last: {', '.join(names[:count])}" for count in range(len(names), 0, -1))
    return next((sentence for sentence in sentences if tokens(sentence) <= MOST_TOKENS), said)


def none_tells(handovers: Outcome, store: Store) -> str:
    """That no hand-over tells of the work that the words name, and which one is the latest."""
    memories = handovers.pool.candidates.parents
    changed = np.nan_to_num(store.attributes.number("updated_at", memories), nan=-np.inf)
    latest = int(np.argmax(changed))
    key = str(store.attributes.label("key", memories[latest : latest + 1])[0])
    return f"no hand-over tells of this; the latest is {_dated(key, handovers.query.now - float(changed[latest]))}"


def _dated(key: str, seconds: float) -> str:
    """A key and how long ago its memory was changed, where that is known."""
    if not np.isfinite(seconds):
        return key
    for unit, length in UNITS:
        if count := int(seconds // length):
            return f"{key} ({count} {unit}{'s' if count > 1 else ''} ago)"
    return f"{key} (now)"


def as_it_is(wanted: Sequence[str]) -> str:
    """What to say where hand-overs answer a question that wanted these things otherwise than its pipeline says."""
    return f"hand-overs answered, through a pipeline of their own that stays as it is whatever {', '.join(wanted)} says"


def admitted(attended: Sequence[Attended], query: Query, store: Store) -> list[Attended]:
    """What the session attended to when it was last heard of that the question may see, most of all first."""
    scope = store.attributes.scope(query.wanted, query.now)
    seen = scope.admits(np.array([one.memory for one in attended], np.int64)).tolist()
    return [one for one, is_seen in zip(attended, seen, strict=True) if is_seen][:MOST_ATTENDED]
