"""Scores how well a document can be found, and repairs two kinds of defects on intake (feature I10).

The score is a weighted sum of four parts. A document below the pass mark is mended at most twice, without changing its
file: headings become trigger phrases, and unclosed sections end where the next one begins. The catalogue's third
repair, cutting the text to its budget, is left out: documents are stored in passages, and cutting would lose content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from speckit_memory.memory.parsing.markdown.title import GENERIC_TITLES

WEIGHTS = {"triggers": 0.25, "anchors": 0.30, "budget": 0.20, "coherence": 0.25}
PASS = 0.6
MOST_ATTEMPTS = 2
BUDGET = 8000
"""Characters: 2,000 tokens of four characters."""
ENOUGH_TRIGGERS = 4
MOST_MENDED_TRIGGERS = 8
LONGEST_HEADING_TRIGGER = 60
"""Characters; a longer heading is a sentence, which does not occur literally in queries."""

_LINE = re.compile(r"^(?: {0,3}(#{1,6})[ \t]++(\S[^\n]*)|[ \t]*+(`{3,}+|~{3,}+)[^\n]*)$", re.MULTILINE)
_MARKS = re.compile(r"[`*_]|^\d+(?:\.\d+)*[.)]?\s+")


@dataclass(frozen=True, slots=True)
class DocumentQuality:
    """The score of a document in [0, 1] with its four parts, its defects, and the repairs made on intake."""

    score: float
    parts: dict[str, float]
    issues: tuple[str, ...]
    mended: tuple[str, ...] = ()
    attempts: int = 0

    @property
    def passed(self) -> bool:
        """Whether the score reaches the pass mark."""
        return self.score >= PASS

    def as_json(self) -> dict[str, object]:
        """Return the quality as plain data."""
        return {
            "score": self.score,
            "passed": self.passed,
            "parts": dict(self.parts),
            "issues": list(self.issues),
            "mended": list(self.mended),
            "attempts": self.attempts,
        }


def assess(triggers: int, sections: int, broken: int, body: str) -> DocumentQuality:
    """Assess the quality of a document.

    Args:
        triggers: The number of trigger phrases.
        sections: The number of well-formed sections.
        broken: The number of broken anchor tags.
        body: The text of the document.
    """
    length = len(body.strip())
    heading = next(headings(body), None) is not None
    parts = {
        "triggers": 0.0 if not triggers else 0.5 if triggers < ENOUGH_TRIGGERS else 1.0,
        # A text without sections gets a neutral score; otherwise the share of sound ones.
        "anchors": 0.5 if not sections + broken else round(sections / (sections + broken), 4),
        "budget": 1.0 if length <= BUDGET else round(BUDGET / length, 4),
        # A quarter each: any text, more than 50 characters, a heading, more than 200 characters.
        "coherence": 0.25 * sum((length > 0, length > 50, heading, length > 200)),
    }
    issues = (
        *(["no trigger phrases"] if not triggers else []),
        *([f"{broken} broken anchor tags"] if broken > 1 else ["a broken anchor tag"] if broken else []),
        *([f"{length:,} characters, over the budget of {BUDGET:,}"] if length > BUDGET else []),
        *(["hardly any text"] if length <= 50 else ["a short text"] if length <= 200 else []),
        *([] if heading else ["no heading"]),
    )
    # Rounded: floating-point error would otherwise put a score of exactly 0.6 below the pass mark.
    return DocumentQuality(round(sum(WEIGHTS[name] * part for name, part in parts.items()), 4), parts, issues)


def headings(body: str) -> Iterator[str]:
    """Yield the texts of the headings outside fenced code, in order."""
    fence = ""
    for match in _LINE.finditer(body):
        if match[3]:
            if not fence:
                fence = match[3]
            elif match[3].startswith(fence):
                fence = ""
        elif not fence:
            yield match[2].rstrip(" \t#")


def triggers_of_headings(body: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Return trigger phrases from headings: two words or more, not generic, and not `known` (title, triggers)."""
    taken = {phrase.casefold() for phrase in known}
    found: list[str] = []
    for heading in headings(body):
        phrase = " ".join(_MARKS.sub("", heading).split())
        folded = phrase.casefold()
        if len(phrase) > LONGEST_HEADING_TRIGGER or len(folded.split()) < 2 or folded in taken | GENERIC_TITLES:
            continue
        taken.add(folded)
        found.append(phrase)
        if len(found) == MOST_MENDED_TRIGGERS:
            break
    return tuple(found)
