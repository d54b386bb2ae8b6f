"""Handovers: memories that record where work stopped."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from pydantic import Field

from speckit_memory.memory.lifecycle import handovers
from speckit_memory.memory.lifecycle.fsrs import SECONDS_PER_DAY
from speckit_memory.memory.parsing.markdown.anchors import find
from speckit_memory.pipeline.model.columns import Hits, Query
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Column, Ids, Passage, Store
from speckit_memory.pipeline.roles.contracts import About, ChannelParams
from speckit_memory.pipeline.running.lookup import information_held, memories_with_all


class HandoverParams(ChannelParams):
    """Weights of the parts of a handover's score."""

    words: float = Field(0.4, ge=0, le=1, description="Weight of the words that name the work.")
    recency: float = Field(
        0.3, ge=0, le=1, description="Weight of 1 / (1 + fade · days behind the handover changed last)."
    )
    kind: float = Field(0.2, ge=0, le=1, description="Weight of having two or more of the sections; one counts half.")
    session: float = Field(
        0.1, ge=0, le=1, description="Weight of having been in the focus of the session or sent to it."
    )
    fade: float = Field(0.1, gt=0, description="Loss of recency per day.")


class Handover:
    """Handovers with the sections that the query names, or with any section if it names none; the latest first.

    Sections are marked by ANCHOR tags, or by well-known headings in a document whose file, folder, title or front
    matter calls it a handover; such a document counts even without a section. Any other document needs two sections
    under headings that are rare outside handovers. A summary alone makes no handover.

    The score is a weighted mean in [0, 1] of four parts: the share of the query's information (Σ idf of its words,
    without those that merely ask to continue) that the memory holds; 1 / (1 + fade · days), with the days by which its
    last change is older than the latest; whether it has at least two of the sections; and whether it belongs to the
    session, by attention or because it was sent. The passage shown is the first of the sections. Features T1, A7, I11.
    """

    about = About(features=("T1", "A7", "I11"), gives=Scale.UNIT)
    Params = HandoverParams

    def __init__(self, params: HandoverParams) -> None:
        self._params = params

    def search(self, query: Query, limit: int, store: Store) -> Hits:
        """The `limit` best admitted handovers."""
        p = self._params
        # `telling`: sections that only handovers have; some sections occur in any document.
        wanted = query.anchors or handovers.SECTIONS
        telling = frozenset(wanted) - handovers.ANYBODYS or frozenset(wanted)
        enough = min(handovers.ENOUGH, len(telling))
        # Tags take precedence over headings for the passage that is shown.
        first, held = _declared(wanted, telling, store)
        for memory, (passage, names) in _headed(wanted, telling, enough, store).items():
            first.setdefault(memory, passage)
            held.setdefault(memory, set()).update(names)
        ids = np.array(sorted(held), np.int64)
        ids = ids[store.attributes.scope(query.wanted, query.now).admits(ids)]
        parts = (
            (p.words, _information_share(query, ids, store)),
            (p.recency, 1.0 / (1.0 + p.fade * _days_behind(store.attributes.number("updated_at", ids), query.now))),
            (p.kind, np.array([min(1.0, len(held.get(memory, ())) / enough) for memory in ids.tolist()])),
            (p.session, _of_session(query, ids, store)),
        )
        weight = sum(weight for weight, _ in parts) or 1.0
        # (memories,): the weighted mean of the parts, each in [0, 1]
        scores = np.sum([weight * part for weight, part in parts], axis=0) / weight
        passages = np.array([first.get(memory, -1) for memory in ids.tolist()], np.int64)
        return Hits.ordered(ids, scores, Scale.UNIT, limit=limit, passages=passages)


def _days_behind(changed: Column, now: float) -> Column:
    """Days from each change to the latest of all, since a project may have rested for a year; infinite if unknown.

    A change dated later than `now` (epoch seconds) counts as made now, so that one wrong date does not age the others.
    """
    changed = np.minimum(changed, now)
    latest = np.fmax.reduce(changed, initial=-np.inf)
    days: Column = np.nan_to_num((latest - changed) / SECONDS_PER_DAY, nan=np.inf)
    return days


def _declared(
    wanted: Sequence[str], telling: frozenset[str], store: Store
) -> tuple[dict[int, int], dict[int, set[str]]]:
    """First passage and section names of each memory with ANCHOR sections, if one of them is in `telling`."""
    first: dict[int, int] = {}
    held: dict[int, set[str]] = {}
    for passage in store.passages.in_sections(wanted):
        if names := _names(passage) & set(wanted):
            first.setdefault(passage.memory, passage.id)
            held.setdefault(passage.memory, set()).update(names)
    return first, {memory: names for memory, names in held.items() if names & telling}


def _headed(
    wanted: Sequence[str], telling: frozenset[str], enough: int, store: Store
) -> dict[int, tuple[int, set[str]]]:
    """The same for sections recognised by their headings, without tags (feature I11)."""
    from speckit_memory.memory.parsing.markdown import known_sections  # imported late: only this channel needs it

    called = handovers.handover_memories(store)
    slugs = {name: known_sections.spellings(name) for name in wanted}
    # Only documents called handovers, and those with enough heading words, need to be read.
    candidates = np.union1d(called, _holding_some({name: slugs[name] for name in telling}, enough, store))
    found: dict[int, tuple[int, set[str]]] = {}
    unmistakable: dict[int, set[str]] = {}
    for passage in store.passages.headed([slug for each in slugs.values() for slug in each], candidates):
        for section in known_sections.named_sections(passage.text, wanted):
            found.setdefault(passage.memory, (passage.id, set()))[1].add(section.name)
            if section.name in telling and not handovers.is_common(known_sections.beginning(section.heading)):
                unmistakable.setdefault(passage.memory, set()).add(section.name)
    if handovers.WHOLE in wanted:
        for memory in called.tolist():
            found.setdefault(memory, (-1, {handovers.WHOLE}))
    ids = np.array(list(found), np.int64)
    forms = zip(*(store.attributes.label(name, ids).tolist() for name in ("key", "document_type")), strict=True)
    others = {memory for memory, form in zip(found, forms, strict=True) if handovers.has_other_form(*form)}
    named_so = set(called.tolist())
    return {
        memory: each
        for memory, each in found.items()
        if memory in named_so or (len(unmistakable.get(memory, ())) >= enough and memory not in others)
    }


def _holding_some(slugs: dict[str, tuple[str, ...]], enough: int, store: Store) -> Ids:
    """The memories that hold the heading words of at least `enough` sections; no other memory needs to be read."""
    held = [
        reduce(np.union1d, (memories_with_all(slug.replace("-", " "), store.lexicon) for slug in each))
        for each in slugs.values()
    ]
    memories, times = np.unique(np.concatenate(held), return_counts=True)
    return memories[times >= enough]


def _names(passage: Passage) -> set[str]:
    """The section that contains the passage, or the sections inside it if its memory is short."""
    return {passage.anchor} if passage.anchor else {section.id for section in find(passage.text, file="")[0]}


def _information_share(query: Query, ids: Ids, store: Store) -> Column:
    """The share of the query's information that each memory holds, [0, 1]; 0 if the query only asks to continue."""
    terms = handovers.naming_terms(query.terms, store.lexicon)
    if not terms or not len(ids):
        return np.zeros(len(ids))
    return information_held(terms, ids, store.lexicon, store.attributes.count)


def _of_session(query: Query, ids: Ids, store: Store) -> Column:
    attention = store.sessions.attention(query.session, ids, query.now)
    sent = store.sessions.texts_sent(query.session, ids, query.now)
    return np.where([bool(texts) for texts in sent], 1.0, attention)
