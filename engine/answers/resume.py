"""The mode "resume": finds where work stopped (features M13 and T1).

Sources are handovers, the memories that the session attended to, and search results for words that name the work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from speckit_memory.memory.lifecycle.handovers import SECTIONS, naming_terms, naming_words
from speckit_memory.memory.store.records import Tier
from speckit_memory.memory.store.tables.sessions.working_memory import AttendedMemory
from speckit_memory.pipeline.comparing.interleaving import mix_pools
from speckit_memory.pipeline.model.columns import Notes, Query
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.running.lookup import information_held, memories_with
from speckit_memory.pipeline.running.runner import Outcome

PIPELINE = "resume"
"""The preset for this mode, whichever pipeline serves other questions."""
MOST_ATTENDED = 5
"""Maximum number of attended memories listed."""
MOST_CHANGED = 3
"""Maximum number of recently changed memories listed if there is no handover."""
MOST_TOKENS = 58
"""Maximum number of tokens of that sentence, so that an otherwise empty answer has at most 60."""
UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60))
NO_HANDOVER = "No handover yet."
ABOUT_IT = 0.5
"""Minimum share of the words' information content that a handover about the work must contain."""


def asks_for_handover(query: Query) -> bool:
    """Whether handovers answer the question first."""
    return query.mode == "resume"


def of_handovers(query: Query) -> Query:
    """The question for the sections of a handover, unless it names sections."""
    return query if query.anchors else replace(query, anchors=SECTIONS)


def of_words(query: Query, store: Store) -> Query | None:
    """The question for the words that name the work; None if there are no such words.

    Deduplication is off, as an agent that resumes work has lost its earlier context.
    """
    terms = naming_terms(query.terms, store.lexicon)
    if not terms:
        return None
    return replace(query, text=naming_words(query.text, store.lexicon), terms=terms, dedup=False)


def are_known(words: Query, store: Store) -> bool:
    """Whether any memory contains one of the words."""
    return any(len(memories_with(term, store.lexicon)) for term in words.terms)


def telling(handovers: Outcome, words: Query, store: Store) -> list[int]:
    """The retrieved handovers about the work, in their order: at most half of the answer."""
    # held: (n,) float64, the share of the words' information content (summed idf) in each handover
    found = handovers.pool.candidates.parents
    held = information_held(words.terms, found, store.lexicon, store.attributes.count) if len(found) else np.zeros(0)
    return [int(memory) for memory in found[held > ABOUT_IT]][: max(1, words.limit // 2)]


def together(handovers: Outcome, first: Sequence[int], found: Outcome) -> Outcome:
    """Merges handovers and search results, handovers first."""
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
    return Outcome(handovers.query, mix_pools(handovers.pool, found.pool, order), notes, trace)


def no_handover(query: Query, store: Store, tokens: Callable[[str], int]) -> str:
    """The message that there is no handover, with as many recently changed memories as fit in a short sentence."""
    scope = store.attributes.scope(query.wanted, query.now)
    memories = np.sort(np.concatenate([store.attributes.of_tier(tier) for tier in Tier]))
    memories = memories[scope.admits(memories)]
    # changed: (n,) float64, epoch seconds; unknown times sort last, future ones count as now
    changed = np.minimum(np.nan_to_num(store.attributes.number("updated_at", memories), nan=-np.inf), query.now)
    latest = np.argsort(-changed, kind="stable")[:MOST_CHANGED]
    keys = store.attributes.label("key", memories[latest]).tolist()
    names = [_dated(key, query.now - at) for key, at in zip(keys, changed[latest].tolist(), strict=True)]
    said = f"No handover has a section {' or '.join(query.anchors)}." if query.anchors else NO_HANDOVER
    sentences = (f"{said} Changed last: {', '.join(names[:count])}" for count in range(len(names), 0, -1))
    return next((sentence for sentence in sentences if tokens(sentence) <= MOST_TOKENS), said)


def none_tells(handovers: Outcome, store: Store) -> str:
    """The message that no handover is about the work, with the latest one."""
    memories = handovers.pool.candidates.parents
    changed = np.nan_to_num(store.attributes.number("updated_at", memories), nan=-np.inf)
    latest = int(np.argmax(changed))
    key = str(store.attributes.label("key", memories[latest : latest + 1])[0])
    return f"no handover is about this; the latest is {_dated(key, handovers.query.now - float(changed[latest]))}"


def _dated(key: str, seconds: float) -> str:
    """A key with the age of the memory's last change, if known."""
    if not np.isfinite(seconds):
        return key
    for unit, length in UNITS:
        if count := int(seconds // length):
            return f"{key} ({count} {unit}{'s' if count > 1 else ''} ago)"
    return f"{key} (now)"


def ignored_options_warning(wanted: Sequence[str]) -> str:
    """The warning that handovers answered and ignored these per-search options."""
    return f"handovers answered, through a separate pipeline that ignores {', '.join(wanted)}"


def admitted_memories(attended: Sequence[AttendedMemory], query: Query, store: Store) -> list[AttendedMemory]:
    """The memories that the session last attended to and that the query's filters admit, highest attention first."""
    scope = store.attributes.scope(query.wanted, query.now)
    seen = scope.admits(np.array([one.memory for one in attended], np.int64)).tolist()
    return [one for one, is_seen in zip(attended, seen, strict=True) if is_seen][:MOST_ATTENDED]
