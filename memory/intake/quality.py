"""How well a document is made to be found, and the two things that can be mended as it is stored (feature I10).

The score weighs four parts. Below the pass mark a document is mended, at most twice and never its file: headings serve
as trigger phrases, and sections that were never closed end where the next one begins. The catalogue's third repair,
to cut the text at its budget, is left out: a document is kept in passages, and cutting it would lose what it says.
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
"""Characters; a longer heading is a sentence, which nobody asks literally."""

_LINE = re.compile(r"^(?: {0,3}(#{1,6})[ \t]++(\S[^\n]*)|[ \t]*+(`{3,}+|~{3,}+)[^\n]*)$", re.MULTILINE)
_MARKS = re.compile(r"[`*_]|^\d+(?:\.\d+)*[.)]?\s+")


@dataclass(frozen=True, slots=True)
class Quality:
    """The score of a document in [0, 1] with its four parts, what is wanting, and what was mended as it is stored."""

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
        """As plain data."""
        return {
            "score": self.score,
            "passed": self.passed,
            "parts": dict(self.parts),
            "issues": list(self.issues),
            "mended": list(self.mended),
            "attempts": self.attempts,
        }


def assess(triggers: int, sections: int, broken: int, body: str) -> Quality:
    """The quality of a document with so many trigger phrases, sound sections and broken tags."""
    length = len(body.strip())
    heading = next(headings(body), None) is not None
    parts = {
        "triggers": 0.0 if not triggers else 0.5 if triggers < ENOUGH_TRIGGERS else 1.0,
        "anchors": 0.5 if not sections + broken else round(sections / (sections + broken), 4),
        "budget": 1.0 if length <= BUDGET else round(BUDGET / length, 4),
        "coherence": 0.25 * sum((length > 0, length > 50, heading, length > 200)),
    }
    issues = (
        *(["no trigger phrases"] if not triggers else []),
        *([f"{broken} broken anchor tags"] if broken > 1 else ["a broken anchor tag"] if broken else []),
        *([f"{length:,} characters, over the budget of {BUDGET:,}"] if length > BUDGET else []),
        *(["hardly any text"] if length <= 50 else ["a short text"] if length <= 200 else []),
        *([] if heading else ["no heading"]),
    )
    # weights of two decimals: without rounding, what is exactly 0.6 would fall short of it
    return Quality(round(sum(WEIGHTS[name] * part for name, part in parts.items()), 4), parts, issues)


def headings(body: str) -> Iterator[str]:
    """The texts of the headings, in order, of those outside of fenced code."""
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
    """Trigger phrases made of headings: of two words or more, not generic, and none that is known, as the title is."""
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
