"""Texts as the numbers of their terms, which is how an inverted index counts and sorts them.

A text is its tokens with a blank before each, so that texts one after the other are a text again, and one with an empty
token is not the empty one.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import count, islice
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

TOGETHER = 64
"""So many texts are split at once, which costs less than one by one: some milliseconds' work."""


class NumberedTexts(NamedTuple):
    """The tokens of some texts. Never changed once they are there."""

    numbering: Mapping[str, int]
    """The number of each term: 0, 1, … in the order in which they were met."""
    codes: NDArray[np.int64]
    """The term of each token, text after text."""
    sizes: NDArray[np.int64]
    """How many tokens each text has."""

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """Number the terms of these texts from 0 on."""
        numbering: defaultdict[str, int] = defaultdict(count().__next__)
        codes, sizes = flattened(texts, numbering)
        return cls(dict(numbering), codes, sizes)


def flattened(texts: Iterable[str], numbering: defaultdict[str, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The numbers of all tokens one after the other, and how many tokens each text has; new terms are numbered."""
    number, remaining = numbering.__getitem__, iter(texts)
    codes, sizes = array("q"), array("q")
    while some := list(islice(remaining, TOGETHER)):
        joined = "".join(some)
        if joined:
            codes.extend(map(number, joined[1:].split(" ")))
        sizes.extend(text.count(" ") for text in some)
    return np.array(codes, np.int64), np.array(sizes, np.int64)
