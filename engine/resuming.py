"""The mode "resume": where work stopped, from the sections of hand-over documents (feature T1)."""

from __future__ import annotations

from dataclasses import replace

from pipeline.model import Query
from pipeline.runner import Outcome

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


def no_handover(query: Query) -> str:
    """What to say when there is none and the words are searched instead."""
    sections = ", ".join(query.anchors or SECTIONS)
    return f"no memory has a section of a hand-over ({sections}): this is what the words find"


def is_of_handovers(outcome: Outcome) -> bool:
    """Whether this pipeline made the answer."""
    return outcome.trace.pipeline == PIPELINE
