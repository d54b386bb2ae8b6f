"""Parses the operators of a typed query: "quoted words" are required as a phrase, a -word is excluded.

"X but not Y" excludes too, unless it is a sentence. A pasted stack trace is reduced to its exceptions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from speckit_memory.engine.answers.stack_traces import asked_by

MOST_WORDS = 20
"""A longer text, or one of several lines, was pasted rather than typed: its quotes and dashes are no operators."""

MOST_CHARACTERS = 1000
"""A longer text was pasted too, however few blanks it has."""

MOST_IN_SENTENCE = 8
"""A longer sentence that ends with a full stop was pasted too: its quotes are no operators."""

_QUOTE = '"“”„‟«»＂'
# An operator begins where a word could begin and ends where one could end, so not in 5" or f("x").
_MARK = re.compile(
    rf"(?<!\S)(?P<minus>-?)[{_QUOTE}](?=[^{_QUOTE}]*?[^\W_])(?P<quoted>[^{_QUOTE}]++)[{_QUOTE}](?!\w)"
    r"|(?<!\S)-(?![A-Za-z\d]{1,2}(?!\S))(?P<word>[^\W_]\S*)"
)
# Signs of pasted text: braces, pipes, assignments, and a key with its colon.
_PASTED = re.compile(rf"[{{}}\[\]|<>=\\;]|[{_QUOTE}]\s*:|:\s*[{_QUOTE}]")
MOST_IN_NEGATION = 8
"""A negation with more words than this is a sentence from a document."""
_LEFT_OUT = r"[^\W_][^\s,;:?!]*(?:\s+[^\W_][^\s,;:?!]*){0,2}"
# "caching but not redis or memcached": about "caching", sign "not", left_out "redis or memcached"
_NEGATION = re.compile(
    r"(?P<about>.*?[^\W_])(?:,?\s+(?:but|and)(?=\s+no)|,(?=\s+not)|,?(?=\s+(?:except|excluding|other)))\s+"
    r"(?P<sign>not(?!\s+(?:only|just|merely|all|every|always|yet)\b)|no|except(?:\s+for)?|excluding|other\s+than)"
    r"\s+(?:(?:any|the|an?)\s+)?"
    rf"(?P<left_out>{_LEFT_OUT}(?:,\s+{_LEFT_OUT})*)[.?!]*",
    re.IGNORECASE,
)
_JOINT = re.compile(r",\s+(?:(?:or|and|nor|not)\s+)?|\s+(?:or|and|nor)\s+", re.IGNORECASE)
_ASKS = re.compile(
    r"\b(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|am|be|been|do|does|did|can|could|may|might|must|"
    r"shall|should|will|would|has|have|had|i|we|you|he|she|it|they|this|that|to)\b",
    re.IGNORECASE,
)
"""Words of questions and sentences: "why is it caching but not invalidating" excludes nothing."""
_STOP = re.compile(rf"[.][)\]{_QUOTE}]*$")
_END = f".,;:!?…'’)]}}{_QUOTE}"
"""Trailing characters that do not belong to a word: `-rsf,` is rsf, but `-c++` is c++."""


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed query: the text without operators, and the required and excluded phrases.

    `negation` is the wording of an exclusion ("not redis"): if a memory with all other words contains this wording, it
    is about the negation itself, and nothing is excluded.
    """

    text: str
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    negation: str = ""


def read(text: str) -> ParsedQuery:
    """Parses a typed query. A pasted text, or one without operators, is returned unchanged.

    Required words are also words of the query; excluded ones are not. Unpaired quotes are ordinary characters, and so
    is a minus within a word, before a blank or another minus, or before an option such as -la or -3.
    """
    text = text.strip()
    if (asked := asked_by(text)) != text:
        return ParsedQuery(asked)
    if _pasted(text):
        return ParsedQuery(text)
    if not _MARK.search(text):
        return _negated(text) or ParsedQuery(text)
    required: dict[str, None] = {}
    excluded: dict[str, None] = {}

    def plain(mark: re.Match[str]) -> str:
        if mark["word"]:
            excluded[mark["word"].rstrip(_END)] = None
            return " "
        words = " ".join(mark["quoted"].split())
        if mark["minus"]:
            excluded[words] = None
            return " "
        required[words] = None
        return words

    rest = " ".join(_MARK.sub(plain, text).split())
    return ParsedQuery(rest, tuple(required), tuple(excluded))


def _negated(text: str) -> ParsedQuery | None:
    """Parses "X but not Y", "X, not Y" or "X except Y"; None for any other text."""
    if len(text.split()) > MOST_IN_NEGATION or not (found := _NEGATION.fullmatch(text)) or _ASKS.search(text):
        return None
    left_out = tuple(dict.fromkeys(part.rstrip(_END) for part in _JOINT.split(found["left_out"])))
    return ParsedQuery(found["about"], excluded=left_out, negation=f"{found['sign']} {left_out[0]}")


def _pasted(text: str) -> bool:
    words = len(text.split())
    return (
        len(text) > MOST_CHARACTERS
        or _PASTED.search(text) is not None
        or len(text.splitlines()) > 1
        or words > (MOST_IN_SENTENCE if _STOP.search(text) else MOST_WORDS)
    )
