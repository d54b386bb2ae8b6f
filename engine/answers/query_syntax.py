"""What the marks of a typed query mean: "quoted words" must be there as they stand, a -word must not.

"X but not Y" is a mark as well, where nothing speaks against that. Of a pasted stack trace its exceptions are meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from speckit_memory.engine.answers.stack_traces import asked_by

MOST_WORDS = 20
"""A longer text is pasted rather than typed: its quotes and dashes are its own. So are those of several lines."""

MOST_CHARACTERS = 1000
"""A longer text is pasted as well, however few blanks it has."""

MOST_IN_SENTENCE = 8
"""A sentence that is longer than this and ends with a full stop is pasted too: what it quotes is no demand."""

_QUOTE = '"“”„‟«»＂'
# A mark stands where a word could begin, and a closing quote where one could end: 5" and f("x") are no marks.
_MARK = re.compile(
    rf"(?<!\S)(?P<minus>-?)[{_QUOTE}](?=[^{_QUOTE}]*?[^\W_])(?P<quoted>[^{_QUOTE}]++)[{_QUOTE}](?!\w)"
    r"|(?<!\S)-(?![A-Za-z\d]{1,2}(?!\S))(?P<word>[^\W_]\S*)"
)
# What no query is typed with: braces, pipes, assignments, and a key with its colon.
_PASTED = re.compile(rf"[{{}}\[\]|<>=\\;]|[{_QUOTE}]\s*:|:\s*[{_QUOTE}]")
MOST_IN_NEGATION = 8
"""What says in more words what it is about and what not is a sentence, as documents hold them."""
_LEFT_OUT = r"[^\W_][^\s,;:?!]*(?:\s+[^\W_][^\s,;:?!]*){0,2}"
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
"""Words of questions and sentences: "why is it caching but not invalidating" asks for no document that lacks a word."""
_STOP = re.compile(rf"[.][)\]{_QUOTE}]*$")
_END = f".,;:!?…'’)]}}{_QUOTE}"
"""Signs of which a run ends a sentence and not a word: `-rsf,` is rsf, `-c++` is c++."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A query as it is meant: the words to search, without marks, and the texts that must and must not be held.

    A text of several words stands for these words one after the other. `negation` is how words say what is left out
    ("not redis"): a text that holds this, and all others, speaks of just that, and then nothing is left out.
    """

    text: str
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    negation: str = ""


def read(text: str) -> Typed:
    """The meaning of a typed query; the text as it is when it is pasted or has no marks.

    Quoted words are words of the query, excluded ones are not. Quotes without a partner are letters like others, and so
    are a minus within a word, before a blank, before another minus or before an option such as -la or -3.
    """
    text = text.strip()
    if (asked := asked_by(text)) != text:
        return Typed(asked)
    if _pasted(text):
        return Typed(text)
    if not _MARK.search(text):
        return _negated(text) or Typed(text)
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
    return Typed(rest, tuple(required), tuple(excluded))


def _negated(text: str) -> Typed | None:
    """The meaning of "X but not Y", "X, not Y" or "X except Y"; None for what is said otherwise."""
    if len(text.split()) > MOST_IN_NEGATION or not (found := _NEGATION.fullmatch(text)) or _ASKS.search(text):
        return None
    left_out = tuple(dict.fromkeys(part.rstrip(_END) for part in _JOINT.split(found["left_out"])))
    return Typed(found["about"], excluded=left_out, negation=f"{found['sign']} {left_out[0]}")


def _pasted(text: str) -> bool:
    words = len(text.split())
    return (
        len(text) > MOST_CHARACTERS
        or _PASTED.search(text) is not None
        or len(text.splitlines()) > 1
        or words > (MOST_IN_SENTENCE if _STOP.search(text) else MOST_WORDS)
    )
