"""Word look-ups in inverted indexes: the memories that hold a word, and which of given memories hold which words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.arithmetic import distinct, german, idf, leading
from speckit_memory.pipeline.model.columns import Hits, Query, total_order
from speckit_memory.pipeline.model.costs import StepCostEstimate
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import FIELDS, Column, Field, Ids, Lexicon, Scope, Store, TermIndex

MOST_TERMS = 800
"""Maximum number of different words of a text that are searched, in order; 10,000 characters hold up to 770."""
MOST_JOINED = 4
"""Compounds are only looked for in queries of at most this many German words; longer queries have enough words."""
MOST_SEEDING = 400
"""Maximum number of query words, the most informative, by which seed memories in the graph are found."""
_SEEDING = (10.0, 5.0, 2.0, 1.0), 1.2, 0.75
"""Field weights, k1 and b of the bags by which seeds are found: those of the full-text search."""


def searchable(text: str, lexicon: Lexicon) -> tuple[str, ...]:
    """The analysed words of a text, repeats included, up to `MOST_TERMS` different ones."""
    # Truncated at the first term that would exceed the limit of distinct terms.
    terms = query_tokens(text, lexicon)
    if len(terms) <= MOST_TERMS:
        return terms
    known: set[str] = set()
    for place, term in enumerate(terms):
        known.add(term)
        if len(known) > MOST_TERMS:
            return terms[:place]
    return terms


def query_tokens(text: str, lexicon: Lexicon) -> tuple[str, ...]:
    """The tokens of a query without German function words, followed by German terms that it may mean.

    These are the stems of its words and, for a short query, compounds that contain them and their parts, as far as
    documents hold them.
    """
    terms = lexicon.analyse(text)
    if not terms:
        return terms
    lexicon.prefetch((german.MARK, *terms))
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
        # a form that no document holds is replaced by its stems, parts and compounds
        if meant and not any(map(is_held, lexicon.analyse(word))):
            idle.append(word)
        found += meant
    return (*_without(telling, idle, lexicon), *found)


def _without(terms: tuple[str, ...], words: Iterable[str], lexicon: Lexicon) -> tuple[str, ...]:
    """The terms without those of these words."""
    idle = {term for word in words for term in lexicon.analyse(word)}
    return tuple(term for term in terms if term not in idle)


def left_unsearched(terms: tuple[str, ...], text: str, lexicon: Lexicon) -> tuple[str, ...]:
    """The warning of an answer if `searchable` left out words of the text, else nothing."""
    if len(set(terms)) < MOST_TERMS or len(terms) == len(query_tokens(text, lexicon)):
        return ()
    return (f"only the first {MOST_TERMS:,} different words of the query were looked up; its meaning covers all of it",)


def memories_with(term: str, lexicon: Lexicon) -> Ids:
    """The memories that hold a word in any field, ascending."""
    indexes = [index for field in FIELDS if (index := lexicon.index(field)).holders(term)]
    if not indexes:
        return np.empty(0, np.int64)
    return distinct(np.concatenate([index.ids_of(index.postings(term).rows) for index in indexes]))


def memories_with_all(text: str, lexicon: Lexicon) -> Ids:
    """The memories that hold every word of a text, in any fields, ascending; none for a text without words.

    An identifier is held as a whole or by all of its parts: "SQLite" by a memory that writes "sqlite".
    """
    content_words = set(lexicon.analyse(text))  # analysed alone, a stop word would be kept
    found: Ids | None = None
    for word in text.split():
        tokens = tuple(dict.fromkeys(token for token in lexicon.analyse(word) if token in content_words))
        if tokens:
            # An identifier yields several tokens for one word: the whole and its parts.
            held = _holding(tokens, lexicon)
            found = held if found is None else np.intersect1d(found, held)
    return np.empty(0, np.int64) if found is None else found


def _holding(tokens: Sequence[str], lexicon: Lexicon) -> Ids:
    """The memories that hold all tokens of one word, or its first token if that is the whole word."""
    first, *parts = (memories_with(token, lexicon) for token in tokens)
    if not parts:
        return first
    together = reduce(np.intersect1d, parts)
    is_whole = all(token in tokens[0] for token in tokens)
    return np.union1d(first, together) if is_whole else np.intersect1d(first, together)


def holders(index: TermIndex, terms: Sequence[str], ids: Ids) -> tuple[NDArray[np.bool_], Column]:
    """Which of these entries hold which term, bool[n, terms], and each term's document frequency in the index.

    `ids` may repeat and be in any order; an id that is not in the index holds nothing.
    """
    # -1 for ids that are not in the index, which hold no term
    row_of = index.rows_of(ids)
    held = np.zeros((len(ids), len(terms)), np.bool_)
    frequency = np.zeros(len(terms))
    for column, term in enumerate(terms):
        frequency[column] = index.holders(term)
        if frequency[column]:
            held[:, column] = index.holding(term, row_of)
    return held, frequency


def informative_terms(query: Query, store: Store, fields: Iterable[Field], *, k3: float, most: int) -> dict[str, float]:
    """The different words of a query with their weights: (k3 + 1) · n / (k3 + n) for a word that occurs n times.

    Corrections of a misspelt word weigh less, by the factor in the plan. Of more than `most` words the most informative
    are kept, by that weight times idf; this bounds the time for a pasted page.

    Args:
        query: The query with its terms.
        store: The store that holds the words.
        fields: The fields that count: the document frequency of a word is its highest among them.
        k3: Saturation of repeated words.
        most: Maximum number of words.
    """
    counts = Counter(query.terms).items()
    weights = {term: query.weight(term) * (k3 + 1.0) * count / (k3 + count) for term, count in counts}
    if len(weights) <= most:
        return weights
    used = [store.lexicon.index(field) for field in fields]
    frequency = {term: max(index.holders(term) for index in used) for term in weights}
    known = [term for term in weights if frequency[term]]
    rarity = idf(np.array([frequency[term] for term in known], np.float64), store.attributes.count)
    worth = rarity * [weights[term] for term in known]
    kept = np.sort(np.argsort(-worth, kind="stable")[:most])
    return {known[place]: weights[known[place]] for place in kept.tolist()}


def seeds_of(query: Query, limit: int, store: Store) -> Hits:
    """The `limit` best admitted memories by BM25 over title, triggers, path and body, where walks in the graph start.

    The in-memory index takes a tenth of the time of the full-text search, whose weights these are.
    """
    scope = store.attributes.scope(query.wanted, query.now)
    bags = store.lexicon.bags(*_SEEDING)
    scores = bags.scores(informative_terms(query, store, FIELDS, k3=0.0, most=MOST_SEEDING))
    rows = best_admitted(bags.ids_of, scores, limit, scope)
    return Hits(bags.ids_of(rows), scores[rows], Scale.BM25)


def cost_of_seeds(query: Query, store: Store) -> StepCostEstimate:
    """The postings that `seeds_of` reads."""
    terms = informative_terms(query, store, FIELDS, k3=0.0, most=MOST_SEEDING)
    indexes = [store.lexicon.index(field) for field in FIELDS]
    return StepCostEstimate(postings=sum(index.holders(term) for index in indexes for term in terms))


def best_admitted(
    ids_of: Callable[[NDArray[np.intp]], Ids], scores: Column, limit: int, scope: Scope
) -> NDArray[np.intp]:
    """The admitted rows with the highest positive scores, in total order.

    Args:
        ids_of: Maps rows to ids; it is only called for few rows.
        scores: Score of each row, float64[rows].
        limit: Maximum number of rows.
        scope: The memories that the filter admits.
    """
    rows = (scores > 0.0).nonzero()[0]
    if not scope.complete:
        # Usually most rows are admitted, so twice the limit holds enough of them.
        first = rows[leading(scores[rows], 2 * limit)]
        first = first[scope.admits(ids_of(first))]
        rows = first if len(first) >= limit else rows[scope.admits(ids_of(rows))]
    # A partition in O(n) finds the best rows and all that tie with the last of them; only these are sorted.
    rows = rows[leading(scores[rows], limit)]
    return rows[total_order(scores[rows], ids_of(rows))[:limit]]


def information_held(terms: Sequence[str], memories: Ids, lexicon: Lexicon, count: int) -> Column:
    """The share of Σ idf of distinct terms that each memory holds in any field, float64[memories], in [0, 1].

    Args:
        terms: Distinct terms, at least one; a term that no memory holds has the largest idf.
        memories: The memories to compare.
        lexicon: The indexes to search.
        count: Number of memories in the store.
    """
    # held: (memories, terms) bool; information: (terms,)
    held, frequency = np.zeros((len(memories), len(terms)), np.bool_), [0] * len(terms)
    for field in FIELDS:
        index, rows = lexicon.index(field), None
        for column, term in enumerate(terms):
            if in_field := index.holders(term):
                rows = index.rows_of(memories) if rows is None else rows
                held[:, column] |= index.holding(term, rows)
                frequency[column] = max(frequency[column], in_field)
    information = idf(np.array(frequency, np.float64), count)
    share: Column = (held @ information) / information.sum()
    return share


def coverage(terms: tuple[str, ...], memories: Ids, lexicon: Lexicon, count: int) -> float:
    """The largest share of Σ idf of the distinct terms that one of these memories holds in any field; in [0, 1].

    Args:
        terms: Terms of the query, 1 is returned for none; a term that no memory holds has the largest idf, so a query
            for
            it has a low coverage.
        memories: The memories to compare.
        lexicon: The indexes to search.
        count: Number of memories in the store.
    """
    wanted = tuple(dict.fromkeys(terms))
    if not wanted:
        return 1.0
    return float(information_held(wanted, memories, lexicon, count).max())
