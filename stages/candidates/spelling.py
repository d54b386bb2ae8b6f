"""Words that nothing holds, taken for misspelt ones that something holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from heapq import nsmallest
from itertools import islice
from string import ascii_lowercase

import numpy as np
from pydantic import Field

from speckit_memory.pipeline.model.columns import Plan, Query, Respelling
from speckit_memory.pipeline.ports import FIELDS, Ids, Lexicon, Store
from speckit_memory.pipeline.roles.contracts import About, Params

_WORD = re.compile(r"(?<![\w'’./-])[^\W\d_]+(?![\w'’./-])")
"""A word of letters alone that is no part of a name, path or number: identifiers are not corrected."""


_LETTERS = re.compile(r"[^\W\d_]+")
_MOST_TEXTS = 3
"""In so many texts a word is looked up as it is written."""
MOST_LETTERS = 64
"""Of unknown words so many letters are looked at: a word has sixty neighbours for each of its letters."""


class SpellingParams(Params):
    """Which words are corrected, and how much what stands for them counts."""

    min_length: int = Field(
        5,
        ge=2,
        le=64,
        description="Shorter words are left alone: they have too many neighbours.",
        json_schema_extra={"tunable": [4, 7]},
    )
    min_length_far: int = Field(
        8,
        ge=2,
        le=64,
        description="Words with a stem as long as this may differ by two edits where one edit finds nothing.",
    )
    max_length: int = Field(32, ge=2, le=64, description="Longer words are left alone: they are no words.")
    discount: float = Field(
        0.8,
        gt=0,
        le=1,
        description="Weight of a neighbour one edit away; two edits away its square.",
        json_schema_extra={"tunable": [0.2, 1.0]},
    )
    neighbours: int = Field(5, ge=1, le=50, description="How many neighbours stand for a word at most.")
    max_query_words: int = Field(
        20, ge=1, le=1000, description="Queries of more words are pasted: their words are what they are."
    )
    max_unknown_words: int = Field(
        3, ge=1, le=20, description="How many unknown words of a query are looked at, the first ones."
    )
    max_words_as_typed: int = Field(
        3,
        ge=0,
        le=20,
        description="In queries of so many words, those are unknown as well of which memories hold other forms alone.",
    )


class Spelling:
    """Searches the nearest known words in place of a word that no memory holds in any field.

    Nearest are those one edit away: a letter inserted, left out or replaced, or two neighbours exchanged (Damerau 1964,
    as "optimal string alignment"). Every such form of the typed word is analysed as the index was, so that endings
    differ by one edit at most too. Where there is none, stems near the typed word's are taken, up to two edits away for
    long ones. Of several neighbours the nearest and then the most frequent ones stay. They count with a weight below
    that of words typed right, and the answer says what was searched. Quoted words are meant as they are typed.

    A slip may have the stem of another word: "looing" that of "loo". In a short query a word that no memory holds as it
    is typed is searched as the words one edit away as well that some memory holds as they are, unless one of them has
    its stem, as "deployment" has that of "deployments". Features C2, C3.
    """

    about = About(features=("C2", "C3"), costly=True)
    Params = SpellingParams

    def __init__(self, params: SpellingParams) -> None:
        self._params = params

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:
        """The plan with what stands for unknown words."""
        words = len(query.text.split())
        if words > self._params.max_query_words:
            return plan
        scope = store.attributes.scope(query.wanted, query.now)

        def is_held(word: str) -> bool:
            return len(store.fulltext.holding([word], 1, scope)) > 0

        # Looking for neighbours takes some milliseconds a word, whether or not there are any.
        candidates = self._unknown(query, store.lexicon, is_held if words <= self._params.max_words_as_typed else None)
        unknown = list(islice(_within(MOST_LETTERS, candidates), self._params.max_unknown_words))
        respelt = [found for word, term in unknown if (found := self._respelt(word, term, store, is_held))]
        if not respelt:
            return plan
        said = "; ".join(f"'{found.word}' as {', '.join(found.instead)}" for found in respelt)
        return replace(plan, respelt=(*plan.respelt, *respelt), reasons=plan.because(f"spelling: {said}"))

    def _unknown(
        self, query: Query, lexicon: Lexicon, is_held: Callable[[str], bool] | None
    ) -> Iterator[tuple[str, str]]:
        """The words that could be misspelt, each with its term: no memory holds them, they are not quoted, and they say
        more than that the question is about a time."""
        topic = query.plan.topic
        params, terms = self._params, set(query.terms if topic is None else topic)
        quoted = set(_WORD.findall(" ".join(query.required)))
        # Where other signs than blanks separate words, there may be a thousand of them.
        for word in islice(dict.fromkeys(_WORD.findall(query.text)), params.max_query_words):
            if word not in quoted and params.min_length <= len(word) <= params.max_length:
                tokens = lexicon.analyse(word)
                if len(tokens) != 1 or tokens[0] not in terms:
                    continue
                elsewhere = any(lexicon.index(field).holders(tokens[0]) for field in ("triggers", "path"))
                if not _holders(tokens[0], lexicon) or (is_held and not elsewhere and not is_held(word)):
                    yield word, tokens[0]

    def _respelt(self, word: str, term: str, store: Store, is_held: Callable[[str], bool]) -> Respelling | None:
        """What stands for a word; None for one without a known neighbour."""
        params, lexicon = self._params, store.lexicon
        readings: dict[str, list[str]] = {}
        for form in _one_edit(word.casefold()):
            if len(tokens := lexicon.analyse(form)) == 1:
                readings.setdefault(tokens[0], []).append(form)
        edits = dict.fromkeys(readings, 1)
        own = _holders(term, lexicon)
        known = _known(readings, lexicon)
        if own:
            if any(map(is_held, readings.get(term, ()))):
                return None
            known = {found: known[found] for found in known if found != term and any(map(is_held, readings[found]))}
        elif not known:
            furthest = 2 if len(term) >= params.min_length_far else 1
            # imported for the first such word: there may be none in the life of a process
            from rapidfuzz.distance import OSA
            from rapidfuzz.process import extract

            near = extract(term, lexicon.near(term, furthest), scorer=OSA.distance, score_cutoff=furthest, limit=None)
            edits = {found: int(distance) for found, distance, _ in near}
            known = _known(edits, lexicon)
        best = sorted(known, key=lambda found: (edits[found], -known[found], found))[: params.neighbours]
        if not best:
            return None
        # Stems are one edit away of which no word is: "super" and "superior" of "superio".
        written = {found: _as_written(found, word, store) or readings.get(found, [found])[-1] for found in best}
        edits = {found: max(edits[found], min(_distance(written[found], word), 2)) for found in best}
        best.sort(key=edits.__getitem__)
        instead = {found: params.discount ** edits[found] for found in best}
        return Respelling(word, term, instead | ({term: params.discount} if own else {}), written[best[0]])


def _within(letters: int, unknown: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The words, each with its term, as far as the letters go."""
    for word, term in unknown:
        letters -= len(word)
        if letters < 0:
            return
        yield word, term


def _known(terms: Iterable[str], lexicon: Lexicon) -> dict[str, int]:
    """Those of the terms that memories hold, and how many do."""
    words = lexicon.words()
    return {term: holders for term in terms if term in words and (holders := _holders(term, lexicon))}


def _as_written(term: str, word: str, store: Store) -> str:
    """The word nearest to this one that a memory holds and whose term this is, "" where none is seen."""
    lexicon = store.lexicon
    for index, texts in (
        (
            lexicon.index("body", "chunk"),
            lambda ids: [passage.text for passage in store.passages.passages(ids.tolist())],
        ),
        (lexicon.index("title"), lambda ids: store.attributes.label("title", ids)),
        (lexicon.index("path"), lambda ids: store.attributes.label("key", ids)),
    ):
        seen = texts(_some(index.ids[index.postings(term).rows], store)) if index.holders(term) else ()
        written = {found.casefold() for text in seen for found in _LETTERS.findall(text)}
        forms = [found for found in sorted(written) if lexicon.analyse(found) == (term,)]
        if forms:
            return str(min(forms, key=lambda form: _distance(form, word)))
    return ""


def _some(ids: Ids, store: Store) -> Ids:
    """A few of these memories or passages, the same ones in whatever order their documents came."""
    by_content = zip(store.attributes.label("content_hash", ids).tolist(), ids.tolist(), strict=True)
    return np.array([id_ for _, id_ in nsmallest(_MOST_TEXTS, by_content)], np.int64)


def _distance(form: str, word: str) -> int:
    from rapidfuzz.distance import OSA

    return OSA.distance(form, word.casefold())


def _holders(term: str, lexicon: Lexicon) -> int:
    """How many memories hold a term in the field that holds it most often."""
    return max(lexicon.index(field).holders(term) for field in FIELDS)


def _one_edit(word: str) -> Iterator[str]:
    """All words one edit away, letters exchanged first, for that is the most common slip."""
    # The letters of the word besides the plain ones: of another script, the likeliest.
    letters = dict.fromkeys(ascii_lowercase + word)
    splits = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    yield from (left + right[1] + right[0] + right[2:] for left, right in splits if len(right) > 1)
    yield from (left + right[1:] for left, right in splits if right)
    yield from (left + letter + right[1:] for left, right in splits if right for letter in letters)
    yield from (left + letter + right for left, right in splits for letter in letters)
