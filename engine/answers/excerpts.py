"""Cuts the excerpt of a passage for a question: one piece around most of its words, or two if they cover more.

Readers judge relevance by the excerpt, so it shows the query's words in context (Tombros and Sanderson, SIGIR 1998).
Length and number of pieces were chosen by measurement (docs/decisions/0073-recall-per-token.md).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from speckit_memory.memory.parsing.declarations.metadata import head_of

MOST_WORDS = 32
"""Maximum number of query words considered; the first words of a pasted page say what it is about."""
MARGIN = 0.15
"""Share of a piece reserved for the context around its words."""
# possessive quantifiers (++, *+) never backtrack: matching takes linear time on any text
_LINE_END = re.compile(r"(?<![ \t])[ \t]++\n")
_BLANK_LINES = re.compile(r"\n{3,}")
_DASHES = re.compile(r"[ \t]*+\|?+(?:[ \t]*+:?+-++:?+[ \t]*+\|?+)++")
_SPACE = re.compile(r"\s")
_WITHIN_WORDS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_SNAP = 40
"""The start of a piece moves up to this many characters to a word border."""

Span = tuple[int, int]


def excerpt(text: str, words: Sequence[str], characters: int) -> str:
    """The part of a readable text around the stems `words`, at most about `characters` long, cut at word borders.

    It is the piece with the most distinct words, or two pieces of half the length, on separate lines, if these contain
    more: the second piece is the best one for the words missing in the first. Line breaks are kept for code and tables,
    and rows of a table are shown below its header. Linear in the length of the text.
    """
    if characters <= 0:
        return ""
    if len(text) <= characters:
        return text
    places = _places(text.lower(), words)
    # one piece if it has all words found; otherwise two halves, if together they have more
    one, told = _piece(text, places, characters)
    if told.issuperset([word for _, word in places]):
        return _with_head(text, one, places)
    first, in_first = _piece(text, places, characters // 2)
    others = [(at, word) for at, word in places if word not in in_first]
    second, in_second = _piece(text, others, characters - characters // 2)
    apart = first[1] < second[0] or second[1] < first[0]
    if not apart or len(in_first | in_second) <= len(told):
        return _with_head(text, one, places)
    found = sorted(((first, places), (second, others)), key=lambda each: each[0])
    return "\n".join(_with_head(text, piece, around) for piece, around in found)


def _with_head(text: str, piece: Span, places: Sequence[tuple[int, str]]) -> str:
    """The piece, below the header of the table in whose rows it begins, as rows alone are unclear.

    The piece is shortened to make room, unless the header is longer than half of it.
    """
    head, characters = _head_of_table(text, piece[0]), piece[1] - piece[0]
    if head and len(head) < characters // 2:
        shorter, _ = _piece(text, places, characters - len(head) - 1)
        if _head_of_table(text, shorter[0]) == head:
            return f"{head}\n{_from_word_to_word(text, shorter)}"
    return _from_word_to_word(text, piece)


def _head_of_table(text: str, at: int) -> str:
    """The header line of the table that contains the offset, "" outside the rows of a table."""
    *above, line = text[: text.find("\n", at) if text.find("\n", at) >= 0 else len(text)].split("\n")
    if "|" not in line:
        return ""
    for number in range(len(above) - 1, 0, -1):
        if "|" not in above[number]:
            return ""
        if _DASHES.fullmatch(above[number]):
            return above[number - 1].strip()
    return ""


def readable(text: str, words: Sequence[str] = ()) -> str:
    """The text without HTML comments, trailing blanks and runs of empty lines.

    The head of a document with its status and authors is dropped too, unless the stems `words` occur nowhere else.
    """
    if "<!--" in text:
        text = "".join(_outside_comments(text))
    if " \n" in text or "\t\n" in text:
        text = _LINE_END.sub("\n", text)
    if "\n\n\n" in text:
        text = _BLANK_LINES.sub("\n\n", text)
    text = text.strip("\n").rstrip()
    if text.startswith("##"):  # a section further down
        return text
    below = text[head_of(text).end :].strip("\n")
    return below if below and (_places(below.lower(), words) or not _places(text.lower(), words)) else text


def _outside_comments(text: str) -> Iterator[str]:
    """The parts outside HTML comments; an unclosed comment counts as text."""
    at = 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        yield text[at:start]
        at = end + 3
    yield text[at:]


def _places(lowered: str, words: Sequence[str]) -> list[tuple[int, str]]:
    """Offsets of words that start with a stem, with that stem: the longest at each offset, without overlaps."""
    found: list[tuple[int, int, str]] = []
    # Negative length: of several stems at one offset, sorting puts the longest first.
    for stem in _stems(words):
        at = lowered.find(stem)
        while at >= 0:
            if not at or lowered[at - 1] not in _WITHIN_WORDS:
                found.append((at, -len(stem), stem))
            at = lowered.find(stem, at + 1)
    found.sort()
    places: list[tuple[int, str]] = []
    until = 0
    for at, shorter, stem in found:
        if at >= until:
            places.append((at, stem))
            # `shorter` is negative, so this adds the length of the stem.
            until = at - shorter
    return places


def _stems(words: Sequence[str]) -> list[str]:
    """The first distinct stems to look for."""
    stems: dict[str, None] = {}
    for word in words:
        # a stem ends in i where the word ends in y
        stems[word.removesuffix("i") if len(word) > 3 else word] = None
        if len(stems) == MOST_WORDS:
            break
    stems.pop("", None)
    return list(stems)


def _piece(text: str, places: Sequence[tuple[int, str]], characters: int) -> tuple[Span, frozenset[str]]:
    """The piece of this length with the most distinct words, the first one on ties, and those words."""
    # sliding window over the sorted places: `within` counts the occurrences of each stem inside it
    width = int(characters * (1 - MARGIN))
    within: dict[str, int] = {}
    most, at, until, oldest = 0, 0, 0, 0
    for place, word in places:
        within[word] = within.get(word, 0) + 1
        while place - places[oldest][0] > width:
            gone = places[oldest][1]
            within[gone] -= 1
            if not within[gone]:
                del within[gone]
            oldest += 1
        if len(within) > most:
            most, at, until = len(within), places[oldest][0], place
    # The rest of the width is shared equally between the context before the words and after them.
    span = _bounded(text, at - max(0, characters - (until - at)) // 2, characters)
    # places are sorted by offset; (span, "") sorts before every word at that offset.
    told = places[bisect_right(places, (span[0], "")) : bisect_right(places, (span[1], ""))]
    return span, frozenset(word for _, word in told)


def _bounded(text: str, start: int, characters: int) -> Span:
    # Near the end of the text the piece moves left instead of becoming shorter.
    start = max(0, min(start, len(text) - characters))
    return start, min(start + characters, len(text))


def _from_word_to_word(text: str, piece: Span) -> str:
    start, end = piece
    if start > 0 and (border := _SPACE.search(text, start, min(start + _SNAP, end))):
        start = border.end()
    if end < len(text):
        blank = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
        end = blank if blank > start else end
    return ("… " if start else "") + text[start:end].strip() + (" …" if end < len(text) else "")
