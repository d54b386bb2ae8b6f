"""What a hand-over is, how people ask for one, and what is left of a question when that is taken away."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

import numpy as np

from speckit_memory.pipeline.ports import Ids, Lexicon, Store

SECTIONS = ("state", "next-steps", "summary", "blockers")
"""The sections of a hand-over."""
WHOLE = "state"
"""The section that is the whole of a hand-over without any of them."""
ANYBODYS = frozenset({"summary"})
"""A section that documents of any form have: it makes no hand-over."""
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
"""Headings of such sections that documents of any form have too."""
ENOUGH = 2
"""So many of these sections make a hand-over of a document that is not called one."""

_WORDS = r"hand[\W_]?(?:over|off)s?|session[\W_](?:notes?|logs?|summary|report|state|end|wrap[\W_]?up)"
_DATE = r"[\d\W_]*"
_CALLED = re.compile(
    rf"{_DATE}(?:(?:session|last|latest|final|agent)[\W_]+)?(?:{_WORDS})(?![^\W_])|.*(?<![^\W_])(?:{_WORDS}){_DATE}$",
    re.IGNORECASE,
)
"""The name of a hand-over begins or ends with the word, but for a date: in the middle it is what others are about."""
_TAGGED = re.compile(rf"(?<![^\W_])(?:{_WORDS})(?![^\W_])", re.IGNORECASE)
HINTS = ("%hand%over%", "%hand%off%", "%session%")
"""What the names of hand-overs hold, as patterns of SQL's LIKE."""
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
"""How people ask for the state of their work. What else they say names the work they mean."""


def is_called(key: str, title: str, declared: str) -> bool:
    """Whether the file, its folder, the title or what the front matter declares says that it is a hand-over."""
    path = PurePosixPath(key)
    return (
        any(_CALLED.match(name) for name in (path.stem, title))
        or bool(re.fullmatch(_WORDS, path.parent.name, re.IGNORECASE))
        or bool(_TAGGED.search(declared))
    )


def called(store: Store) -> Ids:
    """The memories that are called hand-overs, ascending."""
    named = store.passages.names(HINTS)
    return np.array([name.memory for name in named if is_called(name.key, name.title, name.declared)], np.int64)


def has_other_form(key: str, document_type: str) -> bool:
    """Whether a document is of a form that everybody knows, so that its headings make no hand-over of it."""
    return document_type in _OTHER_FORMS or PurePosixPath(key).stem.casefold() in ("readme", "changelog", "roadmap")


def is_common(slug: str) -> bool:
    """Whether documents of any form have a section under this heading."""
    return slug in COMMON


def naming_terms(terms: Sequence[str], lexicon: Lexicon) -> tuple[str, ...]:
    """The terms of a question that name the work to go on with; none when it only asks to go on."""
    idle = _idle(lexicon)
    return tuple(term for term in dict.fromkeys(terms) if term not in idle)


def naming_words(text: str, lexicon: Lexicon) -> str:
    """A question without the words that only ask to go on."""
    idle = _idle(lexicon)
    return " ".join(word for word in text.split() if not idle.issuperset(lexicon.analyse(word)))


def _idle(lexicon: Lexicon) -> frozenset[str]:
    # word by word: of a text that holds nothing but stop words they are all kept
    return frozenset(term for word in _PHRASES.split() for term in lexicon.analyse(word))
