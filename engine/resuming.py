"""The mode "resume": where work stopped, from the sections of hand-over documents (feature T1)."""

from __future__ import annotations

from dataclasses import replace

from speckit_memory.memory.lifecycle.handovers import naming_terms
from speckit_memory.pipeline.model import Query
from speckit_memory.pipeline.ports import Store

PIPELINE = "resume"
"""The preset that answers in this mode, whichever pipeline serves other questions."""
SECTIONS = ("state", "next-steps", "summary", "blockers")
"""The sections of a hand-over."""


def asks_for_handover(query: Query) -> bool:
    """Whether a question is to be answered by hand-overs first."""
    return query.mode == "resume"


def of_handovers(query: Query) -> Query:
    """The question for the sections of a hand-over, unless it names sections of its own."""
    return query if query.anchors else replace(query, anchors=SECTIONS)


def only_asks_to_go_on(query: Query, store: Store) -> bool:
    """Whether a question names neither work nor sections, so that there is nothing to search for."""
    return not query.anchors and not naming_terms(query.terms, store.lexicon)


def no_handover(query: Query, instead: str) -> str:
    """What to say when there is none, and what is shown instead."""
    sections = ", ".join(query.anchors or SECTIONS)
    return f"no memory has a section of a hand-over ({sections}); {instead}"
