"""Extracts the names in a text by rules alone (feature M10, R10).

Five sources: consecutive capitalised words, the languages of fenced code, the words after "using" and similar words,
headings below the title, and quotations. Names are compared case-insensitively and without a leading article.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

LONGEST = 100
"""Maximum length of a name in characters; the minimum is 2."""
MOST = 50
"""Names kept per text, the most frequent ones."""
LONGEST_TEXT = 200_000
"""Characters of a text that are scanned."""

# two to six capitalised words on one line
_CAPITALS = re.compile(r"\b[A-Z][A-Za-z0-9]+(?:[ \t][A-Z][A-Za-z0-9]+){1,5}\b")
# the opening line of a fenced block that names a language
_FENCE = re.compile(r"^[ \t]{0,3}(?:`{3,}|~{3,})[ \t]*([A-Za-z][\w+#.-]{0,29})[ \t]*$", re.MULTILINE)
# a whole block up to its closing fence or the end of the text; possessive, so that no part of a fence is given back
_CODE = re.compile(r"^[ \t]{0,3}(`{3,}+|~{3,}+)[^\n]*\n.*?(?:^[ \t]{0,3}\1[`~]*+[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_USED = re.compile(r"\b(?:using|with|via|implements)[ \t]+([A-Z][\w.+#-]{1,60}|[a-z][a-z0-9]*[._-][\w.-]{1,60})")
_HEADING = re.compile(r"^#{2,4}[ \t]+(\S[^\n]{0,198})$", re.MULTILINE)
_QUOTED = re.compile(r"(?<!\w)[\"“]([^\"“”\n]{2,50})[\"”](?!\w)")
_BEFORE = "the|a|an|this|that|these|those|in|on|at|by|for|from|to|of|with|if|when|and|or|but|we|it|as|see"
_ARTICLES = re.compile(rf"(?:(?:{_BEFORE}) )+")
_EDGES = " \t\"'`*_#.,:;!?()[]{}<>"

DENIED = frozenset(
    {
        "abstract",
        "acceptance",
        "acknowledgements",
        "alternatives",
        "appendix",
        "background",
        "changelog",
        "conclusion",
        "consequences",
        "considerations",
        "contents",
        "context",
        "copyright",
        "decision",
        "definitions",
        "dependencies",
        "description",
        "design",
        "details",
        "discussion",
        "evidence",
        "example",
        "examples",
        "goals",
        "implementation",
        "introduction",
        "notes",
        "overview",
        "problem",
        "proposal",
        "purpose",
        "questions",
        "rationale",
        "references",
        "requirements",
        "results",
        "risks",
        "scope",
        "solution",
        "specification",
        "status",
        "summary",
        "testing",
        "title",
        "todo",
        "usage",
        "backwards compatibility",
        "design details",
        "drawbacks",
        "future work",
        "graduation criteria",
        "how to teach this",
        "implementation history",
        "next steps",
        "non-goals",
        "open issues",
        "open questions",
        "prior art",
        "reference implementation",
        "rejected ideas",
        "release signoff checklist",
        "security considerations",
        "security implications",
        "test plan",
        "user stories",
    }
)
"""Names that do not indicate a document's subject, collected from headings shared by most documents of two projects."""


class Entity(NamedTuple):
    """A normalised name, and the rule that found it first."""

    name: str
    kind: str


def entities(text: str) -> tuple[Entity, ...]:
    """The names in a text, most frequent first, then by name; at most `MOST`."""
    text = text[:LONGEST_TEXT]
    # Identifiers in code are not names, but the language of a fence is.
    prose = _CODE.sub("\n", text)
    # A name found by several rules keeps the kind of the first one.
    counts: dict[str, int] = {}
    kinds: dict[str, str] = {}
    found = [
        *(("phrase", match[0]) for match in _CAPITALS.finditer(_HEADING.sub("\n", prose))),
        *(("used", match[1]) for match in _USED.finditer(prose)),
        *(("heading", match[1]) for match in _HEADING.finditer(prose)),
        *(("quoted", match[1]) for match in _QUOTED.finditer(prose)),
        *(("language", match[1]) for match in _FENCE.finditer(text)),
    ]
    for kind, written in found:
        name = _normalise(written)
        if kind == "phrase" and " " not in name:
            continue  # a word that begins a sentence, and an article before it
        if 1 < len(name) <= LONGEST and name not in DENIED and any(sign.isalpha() for sign in name):
            counts[name] = counts.get(name, 0) + 1
            kinds.setdefault(name, kind)
    best = sorted(counts, key=lambda name: (-counts[name], name))[:MOST]
    return tuple(Entity(name, kinds[name]) for name in best)


def _normalise(written: str) -> str:
    """The normalised name: without surrounding punctuation and leading articles, case-folded."""
    name = unicodedata.normalize("NFC", " ".join(written.strip(_EDGES).split())).casefold()
    leading = _ARTICLES.match(name)
    return name[leading.end() :] if leading else name
