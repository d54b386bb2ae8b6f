"""Looking words up in inverted indexes: which memories hold a word, and which of a few hold which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.arithmetic import distinct, german, idf, leading
from speckit_memory.pipeline.model.columns import total_order
from speckit_memory.pipeline.ports import FIELDS, Column, Ids, Lexicon, Scope, TermIndex

MOST_TERMS = 800
"""So many different words of a text are searched, the first ones; a page of 10,000 characters holds up to 770."""
MOST_JOINED = 4
"""Compounds are looked for in queries of so many German words: other words of a longer one find what is meant."""
MOST_SEEDING = 400
"""So many words of a query, the rarest, find the memories whose connections are followed."""
ALL_FIELDS = (10.0, 5.0, 2.0, 1.0), 1.2, 0.75
"""Weights and numbers of the bags that tell which memories hold a word at all: those of the full-text search, which
the store lays out for seeds as well."""
MOST_COMPARED = 128
"""Of so many words of a query, the rarest, the holders are looked at where a rough look is enough."""


def searchable(text: str, lexicon: Lexicon) -> tuple[str, ...]:
    """The analysed words of a text up to the first that would be one too many, repeats included."""
    terms = asked(text, lexicon)
    if len(terms) <= MOST_TERMS:
        return terms
    known: set[str] = set()
    for place, term in enumerate(terms):
        known.add(term)
        if len(known) > MOST_TERMS:
            return terms[:place]
    return terms


def asked(text: str, lexicon: Lexicon) -> tuple[str, ...]:
    """The tokens of a query without German function words, and behind them the German terms that it may mean: stems,
    and in a short query the compounds that hold them and their parts, as far as documents hold them."""
    terms = lexicon.analyse(text)
    if not terms:
        return terms
    holds_german = lexicon.index("body").holders(german.MARK) > 0
    if not german.is_german(text, otherwise=holds_german):
        return terms
    words = german.words(text)
    content = [word for word in dict.fromkeys(words) if word not in german.STOP_WORDS]
    telling = _without(terms, german.STOP_WORDS.intersection(words), lexicon) or terms
    if not holds_german:
        return telling

    def is_held(term: str) -> bool:
        return any(lexicon.index(field).holders(term) for field in FIELDS)

    known = german.stems_among(lexicon.words()) if len(content) <= MOST_JOINED else ""
    found, idle = [], []
    for word in content:
        stem = german.stem(word)
        meant = [stem] if is_held(stem) else german.parts(word, is_held)
        meant += german.compounds(stem, known)
        # nothing is known of a form that no document holds but what it stands for
        if meant and not any(map(is_held, lexicon.analyse(word))):
            idle.append(word)
        found += meant
    return (*_without(telling, idle, lexicon), *found)


def _without(terms: tuple[str, ...], words: Iterable[str], lexicon: Lexicon) -> tuple[str, ...]:
    """The terms but those of these words."""
    idle = {term for word in words for term in lexicon.analyse(word)}
    return tuple(term for term in terms if term not in idle)


def left_unsearched(terms: tuple[str, ...], text: str, lexicon: Lexicon) -> tuple[str, ...]:
    """What an answer says when `searchable` left words of the text out."""
    if len(set(terms)) < MOST_TERMS or len(terms) == len(asked(text, lexicon)):
        return ()
    return (
        f"only the first {MOST_TERMS:,} different words of the query were looked up; its meaning is that of all of it",
    )


def memories_with(term: str, lexicon: Lexicon) -> Ids:
    """The memories that hold a word in any field, ascending."""
    indexes = [index for field in FIELDS if (index := lexicon.index(field)).holders(term)]
    if not indexes:
        return np.empty(0, np.int64)
    return distinct(np.concatenate([index.ids[index.postings(term).rows] for index in indexes]))


def memories_with_all(text: str, lexicon: Lexicon) -> Ids:
    """The memories that hold every word of a text, in any fields, ascending; none for a text without words.

    An identifier is held as a whole or by all of its parts: "SQLite" by a memory that writes "sqlite".
    """
    content_words = set(lexicon.analyse(text))  # a word alone would keep what it loses here, if it is a stop word
    found: Ids | None = None
    for word in text.split():
        tokens = tuple(dict.fromkeys(token for token in lexicon.analyse(word) if token in content_words))
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
        frequency[column] = index.holders(term)
        if frequency[column]:
            held[:, column] = index.holding(term, row_of)
    return held, frequency


def most_telling(terms: Sequence[str], limit: int, scope: Scope, lexicon: Lexicon) -> Ids:
    """The `limit` admitted memories that hold most of the information of a query, Σ idf of its distinct words in any
    field; ties go to the lower id. Far cheaper than a ranking, and enough to see what a question is about.

    Of a pasted page only the rarest words are looked at."""
    looked_at = tuple(dict.fromkeys(terms))
    if len(looked_at) > MOST_COMPARED:
        looked_at = _rarest(looked_at, [lexicon.index(field) for field in FIELDS])
    bags = lexicon.bags(*ALL_FIELDS)
    held = bags.coverage(dict.fromkeys(looked_at, 1.0))
    return bags.ids_of(best_admitted(bags.ids_of, held, limit, scope))


def best_admitted(
    ids_of: Callable[[NDArray[np.intp]], Ids], scores: Column, limit: int, scope: Scope
) -> NDArray[np.intp]:
    """The admitted rows with the highest positive scores, in total order. `ids_of` tells the ids of a few rows."""
    rows = np.flatnonzero(scores > 0.0)
    if not scope.complete:
        # Most rows are admitted as a rule, so that twice as many as wanted hold enough of them.
        first = rows[leading(scores[rows], 2 * limit)]
        first = first[scope.admits(ids_of(first))]
        rows = first if len(first) >= limit else rows[scope.admits(ids_of(rows))]
    # A partition in O(n) leaves the best and all that tie with the last of them; only these are sorted.
    rows = rows[leading(scores[rows], limit)]
    return rows[total_order(scores[rows], ids_of(rows))[:limit]]


def _rarest(terms: tuple[str, ...], indexes: Sequence[TermIndex]) -> tuple[str, ...]:
    """The `MOST_COMPARED` rarest terms that any index knows, the first among equals, in order."""
    frequency = {term: held for term in terms if (held := max(index.holders(term) for index in indexes))}
    kept = set(sorted(frequency, key=frequency.__getitem__)[:MOST_COMPARED])
    return tuple(term for term in frequency if term in kept)


def information_held(terms: Sequence[str], memories: Ids, lexicon: Lexicon, count: int) -> Column:
    """The share of Σ idf of distinct terms that each memory holds in any field, float64[memories], in [0, 1].

    `count` is the number of memories of the store. A term that no memory holds has the largest idf. Needs a term.
    """
    found = [holders(lexicon.index(field), terms, memories) for field in FIELDS]
    held = np.logical_or.reduce([held for held, _ in found])
    information = idf(np.max([frequency for _, frequency in found], axis=0), count)
    share: Column = (held @ information) / information.sum()
    return share


def coverage(terms: tuple[str, ...], memories: Ids, lexicon: Lexicon, count: int) -> float:
    """The largest share of Σ idf of the distinct terms that one of these memories holds in any field; in [0, 1].

    A term that no memory holds has the largest idf: asking for it is asking for what is not there. 1 without terms.
    """
    wanted = tuple(dict.fromkeys(terms))
    if not wanted:
        return 1.0
    return float(information_held(wanted, memories, lexicon, count).max())
