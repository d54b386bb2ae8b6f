"""Which passages of a long document say so little that they need not be searched (feature I5, R7).

The score of a passage is 0.6 where it lies in an ANCHOR section, for somebody marked it, and 0.4 times its density: the
share of its characters that belong to words of what is said, and not to targets of links, comments or signs. Lists of
links, rules, and tables of signs fall below 0.3; prose and code do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from speckit_memory.memory.store.records import Chunk

ANCHORED = 0.6
"""What lying in an ANCHOR section counts."""
DENSE = 0.4
"""What density counts."""
LEAST = 0.3
"""A passage that scores less is left out."""

_NOTHING = re.compile(
    r"<!--(?s:.*?)(?:-->|\Z)|\]\([^)\s]*(?:\s[^)]*)?\)|<?https?://\S+|^[ \t]*\[[^\]\n]+\]:.*$", re.MULTILINE
)
"""Comments, targets of links, addresses, definitions of references."""
_WORD = re.compile(r"\w{2,}|[^\W\d_]")
_BLANK = re.compile(r"\s+")


def density(text: str) -> float:
    """The share of the characters, blanks aside, that belong to words of what is said; in [0, 1], 0 for nothing."""
    whole = len(_BLANK.sub("", text))
    said = _NOTHING.sub(" ", text)
    return sum(map(len, _WORD.findall(said))) / whole if whole else 0.0


def score(chunk: Chunk) -> float:
    """How much a passage is worth being searched, in [0, 1]."""
    return ANCHORED * bool(chunk.anchor) + DENSE * density(chunk.text)


def thinned(passages: Iterable[Chunk]) -> Iterator[Chunk]:
    """The passages that score enough, in order. The first one stays: it is what is shown of a document."""
    for number, chunk in enumerate(passages):
        if not number or score(chunk) >= LEAST:
            yield chunk
