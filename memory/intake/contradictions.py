"""Detects whether a text contradicts an older one: eight patterns with a confidence each (feature M6).

Words such as "not" or "instead" occur in nearly every long text. A match therefore only counts in a sentence that is
new, if the most similar sentence of the old text is about the same subject and does not match the same pattern.
"""

from __future__ import annotations

import re
from typing import NamedTuple

SHARED_WORDS = 2
SHARED_PART = 1 / 3
"""Two sentences are about the same subject if they share this many words and this fraction of the new one's words."""
LEAST_LETTERS = 4
MOST_SENTENCES = 400
LONGEST_SENTENCE = 500
"""Characters read of a sentence, of the first `MOST_SENTENCES`: the time of a comparison is bounded."""
CONTRADICTS_FROM = 0.5
"""Confidence from which a match counts as a contradiction; a clarification alone does not."""


class Pattern(NamedTuple):
    """One kind of contradiction: its name, the confidence of a match, and the pattern."""

    name: str
    confidence: float
    words: re.Pattern[str]


class Contradiction(NamedTuple):
    """The match with the highest confidence, and the sentence with it."""

    pattern: str
    confidence: float
    sentence: str

    @property
    def counts(self) -> bool:
        """Whether the confidence suffices to treat the old text as no longer valid."""
        return self.confidence >= CONTRADICTS_FROM


def _pattern(name: str, confidence: float, words: str) -> Pattern:
    return Pattern(name, confidence, re.compile(rf"\b(?:{words})\b", re.IGNORECASE))


PATTERNS = (
    _pattern(
        "explicit",
        0.85,
        r"contradict(?:s|ed|ing)?|contrary to|conflicts? with|the opposite (?:of|is)|overrul(?:es?|ed)"
        r"|overturn(?:s|ed)?"
        r"|revers(?:es|ed) (?:the|our|that|this|an?) (?:\w+ )?(?:decision|choice|policy|rule)|disprove[sd]?",
    ),
    _pattern(
        "obsolescence",
        0.80,
        r"obsolete|outdated|out[- ]of[- ]date|superseded"
        r"|no longer (?:valid|applies|apply|holds?|true|relevant|current|correct)",
    ),
    _pattern(
        "deprecation",
        0.75,
        r"deprecat(?:e|es|ed|ing|ion)|phas(?:ed|ing) out|sunsett?ed|sunsetting|discontinued|retired|end[- ]of[- ]life",
    ),
    _pattern(
        "correction",
        0.70,
        r"correction|erratum|corrected|(?:is|are|was|were|proved) (?:wrong|mistaken|incorrect|false)"
        r"|by mistake|in error|(?<=^)actually|turned out (?:to be )?(?:wrong|false)",
    ),
    _pattern(
        "prohibition",
        0.65,
        r"must not|mustn't|may not|shall not|(?:do not|don't) (?!need|have to)|never|forbidden|prohibited|not allowed",
    ),
    _pattern(
        "negation",
        0.60,
        r"no longer|not any ?more|(?:is|are|was|were|do|does|did|has|have|will|can|could|should) ?not"
        r"|(?:is|are|was|were|does|did|has|have|wo|ca|could|should)n't|cannot",
    ),
    _pattern(
        "replacement",
        0.55,
        r"replac(?:e|es|ed|ing|ement)|instead of|rather than|in favou?r of"
        r"|(?:switch|migrat|mov|chang)(?:e|es|ed|ing) (?:\w+ )?(?:from|to)",
    ),
    _pattern(
        "clarification",
        0.45,
        r"clarif(?:y|ies|ied|ication)|to be (?:clear|precise|exact)|more precisely|in other words|that is to say",
    ),
)
"""Highest confidence first."""

_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_WORD = re.compile(r"\w+")


def contradiction(new: str, old: str) -> Contradiction | None:
    """Return the match with the highest confidence that `new` contradicts `old`; None if there is none."""
    before = _sentences(old)
    known = {_normalised(sentence) for sentence in before}
    words_before = [_words(sentence) for sentence in before]
    best: Contradiction | None = None
    for sentence in _sentences(new):
        # A sentence that the old text also has cannot contradict it.
        if _normalised(sentence) in known:
            continue
        words = _words(sentence)
        nearest, shared = _nearest(words, before, words_before)
        if shared < max(SHARED_WORDS, SHARED_PART * len(words)):
            continue
        # Patterns are sorted by confidence, so the first one below the best so far ends the search.
        for pattern in PATTERNS:
            if best is not None and pattern.confidence <= best.confidence:
                break
            if pattern.words.search(sentence) and not pattern.words.search(nearest):
                best = Contradiction(pattern.name, pattern.confidence, sentence[:200])
    return best


def _nearest(words: set[str], sentences: list[str], their_words: list[set[str]]) -> tuple[str, int]:
    """Return the sentence that shares the most words (the first on ties), and how many it shares."""
    shared = [len(words & others) for others in their_words]
    most = max(shared, default=0)
    return (sentences[shared.index(most)], most) if most else ("", 0)


def _sentences(text: str) -> list[str]:
    found: list[str] = []
    for part in _SENTENCE_END.split(text):
        if stripped := part.strip(" \t#>*-|")[:LONGEST_SENTENCE]:
            found.append(stripped)
            if len(found) == MOST_SENTENCES:
                break
    return found


def _words(sentence: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(sentence) if len(word) >= LEAST_LETTERS}


def _normalised(sentence: str) -> str:
    return " ".join(_WORD.findall(sentence.casefold()))
