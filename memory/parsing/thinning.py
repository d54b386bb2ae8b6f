"""Drops passages of a long document with too little content to be searched (features I5, R7).

The score of a passage is 0.4 times its density, plus 0.6 if it is in an ANCHOR section, which an author marked. The
density is the share of its characters that belong to words, outside link targets and comments. Lists of links, rules,
and tables of symbols score below 0.3; prose and code do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from speckit_memory.memory.store.records import Chunk

ANCHORED = 0.6
"""Weight of being in an ANCHOR section."""
DENSE = 0.4
"""Weight of the density."""
LEAST = 0.3
"""Score below which a passage is dropped."""

_NOTHING = re.compile(
    r"<!--(?s:.*?)(?:-->|\Z)|\]\([^)\s]*(?:\s[^)]*)?\)|<?https?://\S+|^[ \t]*\[[^\]\n]+\]:.*$", re.MULTILINE
)
"""Comments, link targets, addresses and link reference definitions."""
_WORD = re.compile(r"\w{2,}|[^\W\d_]")
_BLANK = re.compile(r"\s+")


def density(text: str) -> float:
    """Return the share of non-blank characters that belong to words, in [0, 1]; 0 for a blank text."""
    whole = len(_BLANK.sub("", text))
    said = _NOTHING.sub(" ", text)
    return sum(map(len, _WORD.findall(said))) / whole if whole else 0.0


def score(chunk: Chunk) -> float:
    """Return how much content a passage has, in [0, 1]."""
    return ANCHORED * bool(chunk.anchor) + DENSE * density(chunk.text)


def thinned(passages: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield the passages with a sufficient score, in order. The first one always stays: it represents the document."""
    for number, chunk in enumerate(passages):
        if not number or score(chunk) >= LEAST:
            yield chunk
