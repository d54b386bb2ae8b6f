"""The mode "resume": where work stopped, from the sections of hand-over documents and from what the session attended to
(features M13 and T1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from speckit_memory.memory.lifecycle.handovers import naming_terms
from speckit_memory.memory.store.tables.working_memory import Attended
from speckit_memory.pipeline.model import Query
from speckit_memory.pipeline.ports import Store

PIPELINE = "resume"
"""The preset that answers in this mode, whichever pipeline serves other questions."""
SECTIONS = ("state", "next-steps", "summary", "blockers")
"""The sections of a hand-over."""
MOST_ATTENDED = 5
"""So many memories that the session attended to are named."""


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


def as_it_is(wanted: Sequence[str]) -> str:
    """What to say where hand-overs answer a question that wanted these things otherwise than its pipeline says."""
    return f"hand-overs answered, through a pipeline of their own that stays as it is whatever {', '.join(wanted)} says"


def admitted(attended: Sequence[Attended], query: Query, store: Store) -> list[Attended]:
    """What the session attended to when it was last heard of that the question may see, most of all first."""
    scope = store.attributes.scope(query.wanted, query.now)
    seen = scope.admits(np.array([one.memory for one in attended], np.int64)).tolist()
    return [one for one, is_seen in zip(attended, seen, strict=True) if is_seen][:MOST_ATTENDED]
