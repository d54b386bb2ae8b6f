"""Reads the times that a query names, and its remaining topic."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from pydantic import Field

from speckit_memory.memory.store.records import EARLIEST, LATEST
from speckit_memory.pipeline.model.columns import Order, Plan, Query
from speckit_memory.pipeline.ports import Lexicon, Store
from speckit_memory.pipeline.roles.contracts import About, Params
from speckit_memory.stages.candidates._time_words import Calendar, Mention, Span, mentions

KINDS = "decision spec plan proposal note entry document change update discussion research report version"
"""Document types of which there may be a latest one: "the latest release" is a release of something else."""
_FRAME = f"""{KINDS} adr rfc record hand-over handover what which when who did do does done was were is are be been we
you I us me our my your they it the a an in on at of from for to and or about anything everything something all any
happen happened discuss discussed chat chatted talk talked speak spoke say said tell told mention mentioned cover
covered go went over decide decided make made write wrote written add added create created change changed learn learned
work worked show list find give get summarise summarize recap remember recall session sessions conversation meeting
earlier back then during between on that this day time date stuff things topics please have has had"""
"""Words that ask about events at some time. The other words of the query are its topic."""
_ORDER = re.compile(
    rf"\b(?:(?P<newest>latest|newest|most[ ]recent|last)|(?P<oldest>first|earliest|oldest|original))[ ]"
    rf"(?:\d[ ])?(?:{KINDS.replace(' ', 's?|')}s?|adrs?|rfcs?|summar(?:y|ies)|memor(?:y|ies))\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")


class TimesParams(Params):
    """The length of queries whose times are read."""

    max_words: int = Field(40, ge=1, le=1000, description="Maximum number of words; longer texts are pasted.")


class Times:
    """Reads the times that a query names: days, months, spans, `last week`, `three sessions ago`, `latest decision`.

    A time without a year is in the latest year that holds a memory. Relative times are counted from the time of the
    query; if the newest memory is older than that span, they are counted from the newest memory. Sessions are runs of
    memories created within half an hour of one another. Days are those of UTC. Feature C2.
    """

    about = About(features=("C2",))
    Params = TimesParams

    def __init__(self, params: TimesParams) -> None:
        self._max_words = params.max_words

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:
        """The plan with the spans that the query names, the requested order and the topic."""
        if len(query.text.split()) > self._max_words:
            return plan
        named = mentions(query.text)
        asked = None if named else _ORDER.search(query.text)
        if not named and not asked:
            return plan
        scope = store.attributes.scope(query.wanted, query.now)
        # made: (memories,) float64 in ascending order, so made[0] is the oldest and made[-1] the newest.
        made = store.attributes.number("created_at", store.attributes.oldest_first(scope))
        if not len(made):
            return plan
        times, counted = _spans(named, Calendar(query.now, made))
        order: Order = "" if asked is None else "newest" if asked["newest"] else "oldest"
        if not times and not order:
            return plan
        left = _without(
            query.text, [(mention.start, mention.end) for mention in named] + ([asked.span()] if asked else [])
        )
        said = (
            "; ".join(f"times: {_day(first)} to {_day(last)}" for first, last in times) or f"times: the {order} first"
        )
        return replace(
            plan,
            times=times,
            order=order,
            topic=_topic(left, query, store.lexicon),
            counted_from=counted,
            reasons=plan.because(said),
        )


def _spans(named: Sequence[Mention], known: Calendar) -> tuple[tuple[Span, ...], float | None]:
    """The spans of all mentions, and the moment from which some were counted, None for the present."""
    # memories dated in the future are no reference for relative times
    # Ascending, so the last one is the newest that is not in the future.
    past = known.made[known.made <= known.now]
    newest, counted = float(past[-1]) if len(past) else known.now, None
    spans: list[Span] = []
    for mention in named:
        found = mention.spans(known)
        # Nothing is as recent as that: count from the newest memory instead.
        # found[0][0] is the start of the first span, in epoch seconds.
        if mention.relative and found and newest < found[0][0]:
            found = mention.spans(Calendar(newest, known.made))
            counted = newest
        spans += found
    return tuple(spans), counted


def _without(text: str, places: Sequence[tuple[int, int]]) -> str:
    """The text with these places replaced by blanks."""
    for start, end in places:
        text = f"{text[:start]}{' ' * (end - start)}{text[end:]}"
    return text


def _topic(text: str, query: Query, lexicon: Lexicon) -> tuple[str, ...]:
    """The query's terms in a part of its text, without terms that merely ask about a time."""
    framing = {term for word in _FRAME.split() for term in lexicon.analyse(word)}
    # word by word: the analyser keeps all stop words of a text that has no other words
    terms = (term for word in _WORD.findall(text) for term in lexicon.analyse(word))
    asked = set(query.terms) - framing
    return tuple(dict.fromkeys(term for term in terms if term in asked))


def _day(time: float) -> str:
    if time in (EARLIEST, LATEST):
        return "the latest" if time > 0 else "the oldest"
    return datetime.fromtimestamp(time, UTC).date().isoformat()
