"""What the marks of a typed query mean: "quoted words" must be there as they stand, a -word must not."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
_STOP = re.compile(rf"[.][)\]{_QUOTE}]*$")
_END = f".,;:!?…'’)]}}{_QUOTE}"
"""Signs of which a run ends a sentence and not a word: `-rsf,` is rsf, `-c++` is c++."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A query as it is meant: the words to search, without marks, and the texts that must and must not be held.

    A text of several words stands for these words one after the other.
    """

    text: str
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


def read(text: str) -> Typed:
    """The meaning of a typed query; the text as it is when it is pasted or has no marks.

    Quoted words are words of the query, excluded ones are not. Quotes without a partner are letters like others, and so
    are a minus within a word, before a blank, before another minus or before an option such as -la or -3.
    """
    text = text.strip()
    if _pasted(text) or not _MARK.search(text):
        return Typed(text)
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


def _pasted(text: str) -> bool:
    words = len(text.split())
    return (
        len(text) > MOST_CHARACTERS
        or _PASTED.search(text) is not None
        or len(text.splitlines()) > 1
        or words > (MOST_IN_SENTENCE if _STOP.search(text) else MOST_WORDS)
    )
