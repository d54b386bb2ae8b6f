"""Learning trigger phrases from what readers selected (feature M12, safeguards of R11).

Seven safeguards keep a wrong selection from spoiling searches: what is learned lies apart (1), ends after 30 days
unless another selection repeats it (2), is no common word (3), is little (4), comes of a memory that was hard to find
(5), is written only after a week of watching and 200 pairs (6), and of a memory that is three days old (7).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from speckit_memory.memory.lifecycle.common_words import COMMON_WORDS
from speckit_memory.memory.store.evaluation.selections import Selected
from speckit_memory.memory.store.file.connection import Connection, Transaction
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.tables.sessions import selections
from speckit_memory.memory.store.tables.sessions.selections import Outcome, Selection
from speckit_memory.memory.store.tables.words.phrases import normalised_phrase

DAY = 86_400.0
TTL_SECONDS = 30 * DAY
TERMS_PER_SELECTION = 3
TERMS_PER_MEMORY = 8
SHORTEST_TERM = 3
LONGEST_TERM = 40
"""What is longer is no word that somebody will type again."""
FOUND_WELL = 3
"""A memory among the first three needed no help."""
SHADOW_SECONDS = 7 * DAY
"""So long after the first selection on record nothing is written."""
LEAST_PAIRS = 200
"""So many pairs of a query and a memory must have been seen before anything is written."""
LEAST_AGE_SECONDS = 72 * 3600.0
"""A younger memory surfaces for being new (feature N4)."""

_WORD = re.compile(r"[^\W_]+(?:[-_][^\W_]+)*")


class Phase(NamedTuple):
    """Whether phrases are learned now, or only what would be is noted; and what is wanting: pairs and seconds."""

    learns: bool
    pairs: int
    pairs_wanting: int
    seconds_wanting: float


def phase(connection: Connection, now: float) -> Phase:
    """Where learning stands at `now` (epoch seconds)."""
    seen = selections.seen(connection)
    pairs = max(0, LEAST_PAIRS - seen.pairs)
    seconds = SHADOW_SECONDS if seen.first_at is None else max(0.0, seen.first_at + SHADOW_SECONDS - now)
    return Phase(not pairs and not seconds, seen.pairs, pairs, seconds)


def terms(text: str) -> tuple[str, ...]:
    """The words of a question that could be learned, the longest first: long words are rare ones."""
    found = dict.fromkeys(_WORD.findall(normalised_phrase(text)))
    fitting = [word for word in found if _fits(word)]
    return tuple(sorted(fitting, key=lambda word: -len(word)))


def learn(txn: Transaction, selected: Selected, words: Collection[str], now: float) -> Selection:
    """Learns from one selection what the safeguards allow, and puts it on record; `words` are those of the question."""
    outcome, reason, taken = _judged(txn, selected, words, now)
    if outcome in ("learned", "reinforced"):
        for term in taken:
            selections.learn(txn, selected.memory, term, now, selected.at + TTL_SECONDS)
    noted = Selection(
        selected.query, selected.memory, selected.use, selected.rank, selected.at, now, outcome, reason, taken
    )
    selections.note(txn, noted)
    return noted


def _judged(
    txn: Transaction, selected: Selected, words: Collection[str], now: float
) -> tuple[Outcome, str, tuple[str, ...]]:
    """What becomes of a selection, why, and which words it teaches."""
    found = rows(txn.connection, "SELECT created_at FROM memories WHERE id = ?", (selected.memory,))
    if not found:
        return "refused", "the memory is gone", ()
    phrases = selections.phrases_of(txn.connection, selected.memory)
    again = tuple(word for word in words if phrases.get(word) == "learned")
    if again:  # whatever the rank: what was learned may be why it is found well now
        return "reinforced", "", again
    if selected.rank <= FOUND_WELL:
        return "refused", f"it was found well: at rank {selected.rank}", ()
    if selected.at - found[0][0] < LEAST_AGE_SECONDS:
        return "refused", "the memory is younger than 72 hours", ()
    new = tuple(word for word in words if word not in phrases)[:TERMS_PER_SELECTION]
    if not new:
        return "refused", "the question has no word that is new and not common", ()
    room = TERMS_PER_MEMORY - _count(phrases)
    if room <= 0:
        return "refused", f"the memory has {TERMS_PER_MEMORY} learned phrases", ()
    return "learned" if phase(txn.connection, now).learns else "shadow", "", new[:room]


def _count(phrases: Mapping[str, str]) -> int:
    return sum(source == "learned" for source in phrases.values())


def _fits(word: str) -> bool:
    return (
        SHORTEST_TERM <= len(word) <= LONGEST_TERM and word not in COMMON_WORDS and not word.replace("-", "").isdigit()
    )
