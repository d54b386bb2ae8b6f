"""Learns trigger phrases from the memories that readers selected (feature M12, safeguards of R11).

Seven safeguards keep wrong selections from spoiling search: learned phrases are stored apart (1), expire after 30 days
unless another selection repeats them (2), contain no common words (3), are few (4), come from memories that were hard
to find (5), are only written after a week of observation and 200 pairs (6), and only for memories at least three days
old (7).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from speckit_memory.memory.store.evaluation.attribution import SelectionEvent
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
"""A longer word is unlikely to be typed again."""
FOUND_WELL = 3
"""A memory ranked this high needs no help."""
SHADOW_SECONDS = 7 * DAY
"""Nothing is written within this time after the first recorded selection."""
LEAST_PAIRS = 200
"""Distinct pairs of a query and a memory that must have been seen before anything is written."""
LEAST_AGE_SECONDS = 72 * 3600.0
"""A younger memory ranks high because it is new (feature N4)."""

_COMMON = """
a about above after again against all almost also although always among and another any anybody anyone anything are
around ask asked available back because been before being below best better between both bug but call called came can
cannot case change changed changes code come comes could current data did different does doing done down during each
either else error even every everything example explain few file files find first fix folder for found from function
further general get gets give given goes going good got had has have having help her here hers him his how however
implement implementation implemented information into issue its itself just keep kind know known last later least less
let like line list little long look looking lot made main make makes making many may maybe mean means might more most
much must name need needed needs never new next nothing now number off old once one only open other others our ours
out over own part people place please point possible problem project put question quite rather read really result
results right run running said same save say says search see seen set several shall she should show side since some
something sometimes still such take taken tell test tests than that the their them then there these they thing things
think this those though through time times too took toward tried try two under until update upon use used useful user
uses using value very want wanted was way ways well went were what when where whether which while who whole whom whose
why will with within without work worked working works would write written yes yet you your yours
"""
COMMON_WORDS = frozenset(_COMMON.split())
"""English stop words and common words of software work, case-folded, which identify no memory (safeguard 3)."""

_WORD = re.compile(r"[^\W_]+(?:[-_][^\W_]+)*")


class Phase(NamedTuple):
    """Whether phrases are learned or only logged at present, and the pairs and seconds missing until they are."""

    learns: bool
    pairs: int
    pairs_wanting: int
    seconds_wanting: float


def phase(connection: Connection, now: float) -> Phase:
    """The phase of learning at `now` (epoch seconds)."""
    seen = selections.seen(connection)
    pairs = max(0, LEAST_PAIRS - seen.pairs)
    seconds = SHADOW_SECONDS if seen.first_at is None else max(0.0, seen.first_at + SHADOW_SECONDS - now)
    return Phase(not pairs and not seconds, seen.pairs, pairs, seconds)


def terms(text: str) -> tuple[str, ...]:
    """The words of a question that could be learned, longest first, since long words are rare."""
    found = dict.fromkeys(_WORD.findall(normalised_phrase(text)))
    fitting = [word for word in found if _fits(word)]
    return tuple(sorted(fitting, key=lambda word: -len(word)))


def learn(txn: Transaction, selected: SelectionEvent, words: Collection[str], now: float) -> Selection:
    """Learn from one selection what the safeguards allow, and record it.

    Args:
        txn: The write transaction.
        selected: The selection.
        words: The words of its query that could be learned, best first.
        now: The present time in epoch seconds.
    """
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
    txn: Transaction, selected: SelectionEvent, words: Collection[str], now: float
) -> tuple[Outcome, str, tuple[str, ...]]:
    """The outcome of a selection, the reason, and the words that it teaches."""
    found = rows(txn.connection, "SELECT created_at FROM memories WHERE id = ?", (selected.memory,))
    if not found:
        return "refused", "the memory is gone", ()
    phrases = selections.phrases_of(txn.connection, selected.memory)
    again = tuple(word for word in words if phrases.get(word) == "learned")
    if again:  # at any rank: the learned phrase may be the reason for a good rank
        return "reinforced", "", again
    if selected.rank <= FOUND_WELL:
        return "refused", f"it was found well: at rank {selected.rank}", ()
    if selected.at - found[0][0] < LEAST_AGE_SECONDS:
        return "refused", "the memory is younger than 72 hours", ()
    new = tuple(word for word in words if word not in phrases)[:TERMS_PER_SELECTION]
    if not new:
        return "refused", "the question has no word that is new and not common", ()
    # Only learned phrases count: authors may declare as many as they like.
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
