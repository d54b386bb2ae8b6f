"""Looking words up in inverted indexes: which memories hold a word, and which of a few hold which."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from pipeline.ports import FIELDS, Column, Ids, Lexicon, Scope, TermIndex


def memories_with(term: str, lexicon: Lexicon) -> Ids:
    """The memories that hold a word in any field, ascending."""
    indexes = [lexicon.index(field) for field in FIELDS]
    return np.unique(np.concatenate([index.ids[index.postings(term).rows] for index in indexes]))


def memories_with_all(text: str, lexicon: Lexicon) -> Ids:
    """The memories that hold every word of a text, in any fields, ascending; none for a text without words.

    An identifier is held as a whole or by all of its parts: "SQLite" by a memory that writes "sqlite".
    """
    telling = set(lexicon.analyse(text))  # a word alone would keep what it loses here, if it is a stop word
    found: Ids | None = None
    for word in text.split():
        tokens = tuple(dict.fromkeys(token for token in lexicon.analyse(word) if token in telling))
        if tokens:
            held = _holding(tokens, lexicon)
            found = held if found is None else np.intersect1d(found, held)
    return np.empty(0, np.int64) if found is None else found


def _holding(tokens: Sequence[str], lexicon: Lexicon) -> Ids:
    """The memories that hold all tokens of one word, or the first where that is the whole of the others."""
    first, *parts = (memories_with(token, lexicon) for token in tokens)
    if not parts:
        return first
    together = reduce(np.intersect1d, parts)
    is_whole = all(token in tokens[0] for token in tokens)
    return np.union1d(first, together) if is_whole else np.intersect1d(first, together)


def holders(index: TermIndex, terms: Sequence[str], ids: Ids) -> tuple[NDArray[np.bool_], Column]:
    """Which of these entries hold which term, bool[n, terms], and how many entries of the index hold each term.

    `ids` may repeat and come in any order; an id that is no entry of the index holds nothing.
    """
    row_of = index.rows_of(ids)
    held = np.zeros((len(ids), len(terms)), np.bool_)
    frequency = np.zeros(len(terms))
    for column, term in enumerate(terms):
        found = index.postings(term).rows
        frequency[column] = len(found)
        if len(found):
            at = np.minimum(found.searchsorted(row_of), len(found) - 1)
            held[:, column] = found[at] == row_of
    return held, frequency


def most_telling(terms: Sequence[str], limit: int, scope: Scope, lexicon: Lexicon) -> Ids:
    """The `limit` admitted memories that hold most of the information of a query, Σ idf of its distinct words in any
    field; ties go to the lower id. Far cheaper than a ranking, and enough to see what a question is about."""
    indexes = [lexicon.index(field) for field in FIELDS]
    held = np.zeros((len(set(terms)), 1 + max(index.ids.max(initial=-1) for index in indexes)), np.bool_)
    for row, term in zip(held, dict.fromkeys(terms), strict=True):
        for index in indexes:
            row[index.ids[index.postings(term).rows]] = True
    information = idf(held.sum(axis=1).astype(np.float64), indexes[0].count) @ held
    found: Ids = np.flatnonzero(information > 0.0).astype(np.int64)
    found = found[scope.admits(found)]
    best: Ids = found[np.argsort(-information[found], kind="stable")[:limit]]
    return best


def information_held(terms: Sequence[str], memories: Ids, lexicon: Lexicon, count: int) -> Column:
    """The share of Σ idf of distinct terms that each memory holds in any field, float64[memories], in [0, 1].

    `count` is the number of memories of the store. A term that no memory holds has the largest idf. Needs a term.
    """
    found = [holders(lexicon.index(field), terms, memories) for field in FIELDS]
    held = np.logical_or.reduce([held for held, _ in found])
    information = idf(np.max([frequency for _, frequency in found], axis=0), count)
    share: Column = (held @ information) / information.sum()
    return share


def idf(frequency: Column, count: int) -> Column:
    """log((N - df + 0.5) / (df + 0.5) + 1) of terms that `frequency` of `count` entries hold; always positive."""
    return np.asarray(np.log((count - frequency + 0.5) / (frequency + 0.5) + 1.0))
