"""Recognises handover documents and questions that ask for one, and extracts the subject of such a question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

import numpy as np

from speckit_memory.pipeline.ports import Ids, Lexicon, Store

SECTIONS = ("state", "next-steps", "summary", "blockers")
"""The sections of a handover."""
WHOLE = "state"
"""The section that a handover without any of them consists of."""
ANYBODYS = frozenset({"summary"})
"""A section found in documents of any form: it does not indicate a handover."""
COMMON = frozenset(
    {
        "state",
        "status",
        "progress",
        "done",
        "what-is-done",
        "todo",
        "todos",
        "to-do",
        "action-items",
        "follow-ups",
        "open-issues",
        "open-questions",
    }
)
"""Headings of such sections that are also common in documents of any form."""
ENOUGH = 2
"""Number of these sections that make a document a handover when its name does not say so."""

_WORDS = r"hand[\W_]?(?:over|off)s?|session[\W_](?:notes?|logs?|summary|report|state|end|wrap[\W_]?up)"
_DATE = r"[\d\W_]*"
_CALLED = re.compile(
    rf"{_DATE}(?:(?:session|last|latest|final|agent)[\W_]+)?(?:{_WORDS})(?![^\W_])|.*(?<![^\W_])(?:{_WORDS}){_DATE}$",
    re.IGNORECASE,
)
"""The name of a handover begins or ends with the word, except for a date; in the middle it is a mere topic."""
_TAGGED = re.compile(rf"(?<![^\W_])(?:{_WORDS})(?![^\W_])", re.IGNORECASE)
HINTS = ("%hand%over%", "%hand%off%", "%session%")
"""SQL LIKE patterns that the names of handovers match."""
_OTHER_FORMS = frozenset(
    {"spec", "plan", "tasks", "checklist", "decision_record", "implementation_summary", "research", "constitutional"}
)
_PHRASES = (
    "please resume continue carry on go going pick up back get start begin ahead move forward keep catch me brief "
    "where was I where were we left off stopped stop leave what is next last latest newest recent time yesterday "
    "today session previous earlier conversation work working task tasks project status state so far again did do "
    "does doing done are you my our us the a an of in at to it this that then there with from and let lets ok okay "
    "now can could would want like need show tell give hi hello hey hand over handover hand-over off handoff hand-off "
    "notes things stand"
)
"""Words by which people ask for the state of their work. Other words in such a question name the work."""


def is_called(key: str, title: str, declared: str) -> bool:
    """Whether the file, its folder, the title or the front matter calls the document a handover."""
    path = PurePosixPath(key)
    return (
        any(_CALLED.match(name) for name in (path.stem, title))
        or bool(re.fullmatch(_WORDS, path.parent.name, re.IGNORECASE))
        or bool(_TAGGED.search(declared))
    )


def handover_memories(store: Store) -> Ids:
    """The memories whose names or front matter call them handovers, ascending."""
    named = store.passages.names(HINTS)
    return np.array([name.memory for name in named if is_called(name.key, name.title, name.declared)], np.int64)


def has_other_form(key: str, document_type: str) -> bool:
    """Whether a document has another well-known form, so that headings cannot make it a handover."""
    return document_type in _OTHER_FORMS or PurePosixPath(key).stem.casefold() in ("readme", "changelog", "roadmap")


def is_common(slug: str) -> bool:
    """Whether documents of any form may have a section with this heading."""
    return slug in COMMON


def naming_terms(terms: Sequence[str], lexicon: Lexicon) -> tuple[str, ...]:
    """The terms of a question that name the work to resume; empty if it only asks to resume."""
    idle = _idle(lexicon)
    return tuple(term for term in dict.fromkeys(terms) if term not in idle)


def naming_words(text: str, lexicon: Lexicon) -> str:
    """A question without the words that only ask to resume."""
    idle = _idle(lexicon)
    return " ".join(word for word in text.split() if not idle.issuperset(lexicon.analyse(word)))


def _idle(lexicon: Lexicon) -> frozenset[str]:
    # word by word: the analyser keeps the stop words of a text that consists of nothing else
    return frozenset(term for word in _PHRASES.split() for term in lexicon.analyse(word))
