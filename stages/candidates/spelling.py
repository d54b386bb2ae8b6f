"""Corrects misspelt words: replaces words that no memory holds by similar words that some memory holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import nsmallest
from itertools import chain, islice
from string import ascii_lowercase
from typing import NamedTuple

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Plan, Query, Respelling
from speckit_memory.pipeline.ports import FIELDS, Ids, Lexicon, Store
from speckit_memory.pipeline.roles.contracts import About, Params

_WORD = re.compile(r"(?<![\w'’./-])[^\W\d_]+(?![\w'’./-])")
"""A word of letters only that is not part of a name, path or number: identifiers are not corrected."""


_LETTERS = re.compile(r"[^\W\d_]+")
_MOST_TEXTS = 3
"""Number of texts from which the original spelling of a term is read."""
MOST_LETTERS = 64
"""Maximum number of letters of all unknown words: a word has about sixty neighbours per letter."""


class SpellingParams(Params):
    """The words that are corrected, and the weights of the corrections."""

    min_length: int = Field(
        5,
        ge=2,
        le=64,
        description="Minimum length of corrected words; shorter ones have too many neighbours.",
        json_schema_extra={"tunable": [4, 7]},
    )
    min_length_far: int = Field(
        8,
        ge=2,
        le=64,
        description="Minimum stem length for two edits, which are tried if one edit finds nothing.",
    )
    max_length: int = Field(32, ge=2, le=64, description="Maximum length of corrected words.")
    discount: float = Field(
        0.8,
        gt=0,
        le=1,
        description="Weight of a neighbour one edit away; two edits away, its square.",
        json_schema_extra={"tunable": [0.2, 1.0]},
    )
    neighbours: int = Field(5, ge=1, le=50, description="Maximum number of replacements of a word.")
    max_query_words: int = Field(
        20, ge=1, le=1000, description="Maximum number of words; longer queries are pasted text."
    )
    max_unknown_words: int = Field(
        3, ge=1, le=20, description="Maximum number of unknown words that are corrected, in order."
    )
    max_words_as_typed: int = Field(
        3,
        ge=0,
        le=20,
        description="Maximum query length for also correcting words that memories only hold in other forms.",
    )


class _Neighbours(NamedTuple):
    """Known terms near a word, the best first, with their distances, and the forms of the word with each term."""

    word: str
    term: str
    best: list[str]
    edits: dict[str, int]
    readings: dict[str, list[str]]
    is_held: bool


class Spelling:
    """Searches the nearest known words instead of a word that no memory holds in any field.

    Nearest are those one edit away: a letter inserted, deleted or substituted, or two neighbours transposed (Damerau
    1964, as "optimal string alignment"). Every such form of the typed word is analysed in the same way as the index, so
    that inflections also differ by at most one edit. If there is none, stems near the typed word's are used, up to two
    edits away for long ones. The nearest, then the most frequent neighbours are kept. Their weight is lower than that
    of words typed correctly, and the answer says which words were searched. Quoted words are not corrected.

    A typo may have the stem of another word: "looing" that of "loo". In a short query, a word that no memory holds
    exactly as typed is therefore also replaced by words one edit away that some memory holds in that form, unless one
    of them has the same stem, as "deployment" and "deployments" do. Features C2, C3.
    """

    about = About(features=("C2", "C3"), costly=True)
    Params = SpellingParams

    def __init__(self, params: SpellingParams) -> None:
        self._params = params

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:
        """The plan with replacements for unknown words."""
        words = len(query.text.split())
        if words > self._params.max_query_words:
            return plan
        scope = store.attributes.scope(query.wanted, query.now)

        def is_held(word: str) -> bool:
            # The question is whether there is one, so a limit of 1 ends the search early.
            return len(store.fulltext.holding([word], 1, scope)) > 0

        if words <= self._params.max_words_as_typed:
            typed = _WORD.findall(query.text)
            store.fulltext.prefetch([word for word in typed if len(store.lexicon.analyse(word)) == 1])
        # Searching for neighbours takes some milliseconds per word, even if there are none.
        # None switches off the test of words as typed, which is for short queries only.
        candidates = self._unknown(query, store.lexicon, is_held if words <= self._params.max_words_as_typed else None)
        unknown = list(islice(_within(MOST_LETTERS, candidates), self._params.max_unknown_words))
        replaceable = [found for word, term in unknown if (found := self._neighbours(word, term, store, is_held))]
        texts = _texts_with({term for found in replaceable for term in found.best}, store)
        respelt = [self._respelt(found, texts, store) for found in replaceable]
        if not respelt:
            return plan
        store.fulltext.prefetch([found.reading for found in respelt])
        said = "; ".join(f"'{found.word}' as {', '.join(found.instead)}" for found in respelt)
        return replace(plan, respelt=(*plan.respelt, *respelt), reasons=plan.because(f"spelling: {said}"))

    def _unknown(
        self, query: Query, lexicon: Lexicon, is_held: Callable[[str], bool] | None
    ) -> Iterator[tuple[str, str]]:
        """The words that may be misspelt, each with its term.

        They are in no memory, are not quoted, and belong to the topic rather than to a mention of time.
        """
        topic = query.plan.topic
        params, terms = self._params, set(query.terms if topic is None else topic)
        quoted = set(_WORD.findall(" ".join(query.required)))
        # Bounded: with separators other than blanks there may be a thousand words.
        for word in islice(dict.fromkeys(_WORD.findall(query.text)), params.max_query_words):
            if word not in quoted and params.min_length <= len(word) <= params.max_length:
                tokens = lexicon.analyse(word)
                if len(tokens) != 1 or tokens[0] not in terms:
                    continue
                term = tokens[0]
                if not any(lexicon.index(field).holders(term) for field in FIELDS) or (
                    is_held
                    and not any(lexicon.index(field).holders(term) for field in ("triggers", "path"))
                    and not is_held(word)
                ):
                    yield word, term

    def _neighbours(self, word: str, term: str, store: Store, is_held: Callable[[str], bool]) -> _Neighbours | None:
        """The known neighbours of a word; None if it has none."""
        params, lexicon = self._params, store.lexicon
        readings: dict[str, list[str]] = {}
        forms = list(_one_edit(word.casefold()))
        for form, token in zip(forms, lexicon.word_tokens(forms), strict=True):
            if token is not None:
                # setdefault keeps the order of `_one_edit`: transpositions come first among the forms of a term.
                readings.setdefault(token, []).append(form)
        edits = dict.fromkeys(readings, 1)
        own = _holders(term, lexicon)
        known = _document_frequencies(readings, lexicon)
        # A term that some memory holds, but not in the typed form: only exact forms may replace it.
        if own:
            store.fulltext.prefetch([form for found in (term, *known) for form in readings.get(found, ())])
            if any(map(is_held, readings.get(term, ()))):
                return None
            known = {found: known[found] for found in known if found != term and any(map(is_held, readings[found]))}
        elif not known:
            furthest = 2 if len(term) >= params.min_length_far else 1
            # imported late: many processes never need it
            from rapidfuzz.distance import OSA
            from rapidfuzz.process import extract

            # OSA, not Levenshtein: a transposition counts as one edit (Damerau 1964).
            near = extract(term, lexicon.near(term, furthest), scorer=OSA.distance, score_cutoff=furthest, limit=None)
            edits = {found: int(distance) for found, distance, _ in near}
            known = _document_frequencies(edits, lexicon)
        # Fewest edits first, then the most frequent, then alphabetically.
        best = sorted(known, key=lambda found: (edits[found], -known[found], found))[: params.neighbours]
        return _Neighbours(word, term, best, edits, readings, bool(own)) if best else None

    def _respelt(self, found: _Neighbours, texts: Mapping[str, Sequence[str]], store: Store) -> Respelling:
        """The replacement of a word; `texts` are some passages with each of its neighbours."""
        params, (word, term, best, edits, readings, own) = self._params, found
        # Some stems one edit away are not words: "super" and "superior" of "superio".
        written = {near: _as_written(near, word, texts[near], store) or readings.get(near, [near])[-1] for near in best}
        # Capped at 2: the weight is discount² at least, also for a stem whose written form is further away.
        edits = {near: max(edits[near], min(_distance(written[near], word), 2)) for near in best}
        # Stable: equal distances keep the order by frequency found above.
        best = sorted(best, key=edits.__getitem__)
        instead = {near: params.discount ** edits[near] for near in best}
        return Respelling(word, term, instead | ({term: params.discount} if own else {}), written[best[0]])


def _within(letters: int, unknown: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The words with their terms, until `letters` are used up."""
    for word, term in unknown:
        letters -= len(word)
        if letters < 0:
            return
        yield word, term


def _document_frequencies(terms: Iterable[str], lexicon: Lexicon) -> dict[str, int]:
    """The terms that memories hold, each with its document frequency."""
    known = lexicon.words() & set(terms)
    lexicon.prefetch(known)
    return {term: holders for term in known if (holders := _holders(term, lexicon))}


def _texts_with(terms: Iterable[str], store: Store) -> dict[str, list[str]]:
    """The texts of a few passages with each of these terms, all read at once."""
    index = store.lexicon.index("body", "chunk")
    chosen = {
        term: _some(index.ids_of(index.postings(term).rows), store).tolist() if index.holders(term) else []
        for term in terms
    }
    ids = list(dict.fromkeys(chain.from_iterable(chosen.values())))
    texts = dict(zip(ids, store.passages.passages(ids), strict=True)) if ids else {}
    return {term: [texts[passage].text for passage in passages] for term, passages in chosen.items()}


def _as_written(term: str, word: str, passages: Sequence[str], store: Store) -> str:
    """The spelling nearest to this word, in these passages or some names, whose term this is; "" if none is found."""
    lexicon = store.lexicon
    for seen in chain((passages,), _names_with(term, store)):
        written = {found.casefold() for text in seen for found in _LETTERS.findall(text)}
        folded = sorted(written)
        tokens = lexicon.word_tokens(folded)
        forms = [form for form, token in zip(folded, tokens, strict=True) if token == term]
        if forms:
            return str(min(forms, key=lambda form: _distance(form, word)))
    return ""


def _names_with(term: str, store: Store) -> Iterator[list[str]]:
    """A few titles with a term, then a few keys."""
    for index, label in ((store.lexicon.index("title"), "title"), (store.lexicon.index("path"), "key")):
        if index.holders(term):
            ids = _some(index.ids_of(index.postings(term).rows), store)
            yield [*map(str, store.attributes.label(label, ids))]


def _some(ids: Ids, store: Store) -> Ids:
    """A few of these memories or passages, independent of the order in which they were stored."""
    by_content = zip(store.attributes.label("content_hash", ids).tolist(), ids.tolist(), strict=True)
    return np.array([id_ for _, id_ in nsmallest(_MOST_TEXTS, by_content)], np.int64)


def _distance(form: str, word: str) -> int:
    from rapidfuzz.distance import OSA

    return OSA.distance(form, word.casefold())


def _holders(term: str, lexicon: Lexicon) -> int:
    """The highest document frequency of a term over all fields."""
    return max(lexicon.index(field).holders(term) for field in FIELDS)


def _one_edit(word: str) -> Iterator[str]:
    """All words one edit away; transpositions first, since they are the most common typos."""
    # The letters of the word itself cover other scripts.
    letters = dict.fromkeys(ascii_lowercase + word)
    splits = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    yield from (left + right[1] + right[0] + right[2:] for left, right in splits if len(right) > 1)
    yield from (left + right[1:] for left, right in splits if right)
    yield from (left + letter + right[1:] for left, right in splits if right for letter in letters)
    yield from (left + letter + right for left, right in splits for letter in letters)
