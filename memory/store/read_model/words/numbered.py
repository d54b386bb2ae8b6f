"""Texts as arrays of term numbers, the form in which an inverted index counts and sorts them.

A text is its tokens with a blank before each: concatenated texts are a text again, and a text with one empty token
differs from the empty text.
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
"""Texts split together, which is faster than one by one: some milliseconds of work."""


class NumberedTexts(NamedTuple):
    """The tokens of some texts as term numbers. Immutable."""

    numbering: Mapping[str, int]
    """The number of each term: 0, 1, … in order of first occurrence."""
    codes: NDArray[np.int64]
    """(tokens,): the term of each token, text after text."""
    sizes: NDArray[np.int64]
    """(texts,): the number of tokens of each text."""

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """Number the terms of these texts, counting from 0."""
        numbering: defaultdict[str, int] = defaultdict(count().__next__)
        codes, sizes = flatten_tokens(texts, numbering)
        return cls(dict(numbering), codes, sizes)


def flatten_tokens(
    texts: Iterable[str], numbering: defaultdict[str, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The term numbers of all tokens in order, and the number of tokens of each text; adds new terms to `numbering`."""
    number, remaining = numbering.__getitem__, iter(texts)
    codes, sizes = array("q"), array("q")
    while some := list(islice(remaining, TOGETHER)):
        joined = "".join(some)
        if joined:
            # The first blank would give an empty token; `number` assigns a new number to each unseen term.
            codes.extend(map(number, joined[1:].split(" ")))
        sizes.extend(text.count(" ") for text in some)
    return np.array(codes, np.int64), np.array(sizes, np.int64)
