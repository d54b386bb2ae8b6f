"""Memories that say where work stopped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

import numpy as np
from pydantic import Field

from speckit_memory.memory.indexing.anchors import find
from speckit_memory.memory.lifecycle.fsrs import SECONDS_PER_DAY
from speckit_memory.memory.lifecycle.handovers import naming_terms
from speckit_memory.memory.store.records import Tier
from speckit_memory.pipeline.contracts import About, ChannelParams
from speckit_memory.pipeline.lookup import information_held
from speckit_memory.pipeline.model import Hits, Query
from speckit_memory.pipeline.ports import Column, Ids, Passage, Store
from speckit_memory.pipeline.scales import Scale

ENOUGH = 2
"""A document with so many of the sections was written as a hand-over; one alone may be any document's summary."""

CALLED = "handover"
"""What the file of a hand-over is called, with or without a dash."""


class HandoverParams(ChannelParams):
    """What makes one hand-over a better answer than another."""

    words: float = Field(0.4, ge=0, le=1, description="Weight of the words that name the work.")
    recency: float = Field(0.3, ge=0, le=1, description="Weight of 1 / (1 + fade · days behind the latest change).")
    kind: float = Field(0.2, ge=0, le=1, description="Weight of having two of the sections or more, half for one.")
    session: float = Field(0.1, ge=0, le=1, description="Weight of what the session attended to or was sent.")
    fade: float = Field(0.1, gt=0, description="Loss of recency per day.")


class Handover:
    """Memories with the sections that the query names, those of a hand-over, the latest first, whatever its words.

    A query that names no sections is answered by all memories, the ones changed last first.

    The score is a weighted mean in [0, 1]: the share of the question's information (Σ idf of its words, without those
    that merely ask to go on) that the memory holds; 1 / (1 + fade · days) by which its last change is older than that
    of the latest; whether it has at least two of the sections; and whether it belongs to the session, by attention or
    because it was sent. The passage shown is the first of the sections. They are those of ANCHOR tags; documents that
    tell of work may have them by their headings. Features T1, A7, I11.
    """

    about = About(features=("T1", "A7", "I11"), gives=Scale.UNIT)
    Params = HandoverParams

    def __init__(self, params: HandoverParams) -> None:
        self._params = params

    def search(self, query: Query, limit: int, store: Store) -> Hits:
        """The best `limit` admitted memories that have one of the sections."""
        p = self._params
        wanted = query.anchors
        enough = min(ENOUGH, len(set(wanted))) or 1
        first, held = _declared(wanted, store)
        for memory, (passage, names) in _headed(wanted, enough, store).items():
            first.setdefault(memory, passage)
            held.setdefault(memory, set()).update(names)
        ids = np.array(sorted(held), np.int64) if wanted else _all_memories(store)
        ids = ids[store.attributes.scope(query.wanted, query.now).admits(ids)]
        parts = (
            (p.words, _said(query, ids, store)),
            (p.recency, 1.0 / (1.0 + p.fade * _days_behind(store.attributes.number("updated_at", ids), query.now))),
            (p.kind, np.array([min(1.0, len(held.get(memory, ())) / enough) for memory in ids.tolist()])),
            (p.session, _of_session(query, ids, store)),
        )
        weight = sum(weight for weight, _ in parts) or 1.0
        scores = np.sum([weight * part for weight, part in parts], axis=0) / weight
        passages = np.array([first.get(memory, -1) for memory in ids.tolist()], np.int64)
        return Hits.ordered(ids, scores, Scale.UNIT, limit=limit, passages=passages)


def _all_memories(store: Store) -> Ids:
    return np.sort(np.concatenate([store.attributes.of_tier(tier) for tier in Tier]))


def _days_behind(changed: Column, now: float) -> Column:
    """Days from each change to the latest of all: a project may have rested for a year. Infinite where unknown.

    A change dated later than `now` (epoch seconds) counts as made now, so that one wrong date does not age the others.
    """
    changed = np.minimum(changed, now)
    latest = np.fmax.reduce(changed, initial=-np.inf)
    days: Column = np.nan_to_num((latest - changed) / SECONDS_PER_DAY, nan=np.inf)
    return days


def _declared(wanted: Sequence[str], store: Store) -> tuple[dict[int, int], dict[int, set[str]]]:
    """The first passage, and the names, of the ANCHOR sections of each memory that has some of these."""
    first: dict[int, int] = {}
    held: dict[int, set[str]] = {}
    for passage in store.passages.in_sections(wanted):
        if names := _names(passage) & set(wanted):
            first.setdefault(passage.memory, passage.id)
            held.setdefault(passage.memory, set()).update(names)
    return first, held


def _headed(wanted: Sequence[str], enough: int, store: Store) -> dict[int, tuple[int, set[str]]]:
    """The same of sections that headings say, without tags (feature I11).

    Many documents have a summary: `enough` of the sections make a hand-over, and so does one in a document that is
    called so.
    """
    from speckit_memory.memory.indexing import known_sections  # loaded with the channels, and read by no other search

    slugs = dict.fromkeys(slug for name in wanted for slug in known_sections.spellings(name))
    found: dict[int, tuple[int, set[str]]] = {}
    for passage in store.passages.headed(list(slugs)):
        if names := {section.name for section in known_sections.named(passage.text, wanted)}:
            found.setdefault(passage.memory, (passage.id, set()))[1].update(names)
    called = zip(found, store.attributes.label("key", np.array(list(found), np.int64)).tolist(), strict=True)
    named_so = {memory for memory, key in called if CALLED in PurePosixPath(key).name.casefold().replace("-", "")}
    return {memory: each for memory, each in found.items() if len(each[1]) >= enough or memory in named_so}


def _names(passage: Passage) -> set[str]:
    """The sections that a passage lies in, or holds when its memory is short."""
    return {passage.anchor} if passage.anchor else {section.id for section in find(passage.text, file="")[0]}


def _said(query: Query, ids: Ids, store: Store) -> Column:
    """The share of the question's information that each memory holds, [0, 1]; 0 where it only asks to go on."""
    terms = naming_terms(query.terms, store.lexicon)
    if not terms or not len(ids):
        return np.zeros(len(ids))
    return information_held(terms, ids, store.lexicon, store.attributes.count)


def _of_session(query: Query, ids: Ids, store: Store) -> Column:
    attention = store.sessions.attention(query.session, ids, query.now)
    sent = store.sessions.texts_sent(query.session, ids, query.now)
    return np.where([bool(texts) for texts in sent], 1.0, attention)
