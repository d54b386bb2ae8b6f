"""Words that nothing holds, taken for misspelt ones that something holds."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from string import ascii_lowercase

from pydantic import Field
from rapidfuzz.distance import OSA
from rapidfuzz.process import extract

from pipeline.contracts import About, Params
from pipeline.model import Plan, Query, Respelling
from pipeline.ports import FIELDS, Lexicon, Store

_WORD = re.compile(r"(?<![\w'’./-])[^\W\d_]+(?![\w'’./-])")
"""A word of letters alone that is no part of a name, path or number: identifiers are not corrected."""


class SpellingParams(Params):
    """Which words are corrected, and how much what stands for them counts."""

    shortest: int = Field(
        5, ge=2, le=64, description="Shorter words are left alone: they have too many neighbours.",
        json_schema_extra={"tunable": [4, 7]},
    )  # fmt: skip
    shortest_far: int = Field(
        8,
        ge=2,
        le=64,
        description="Words with a stem as long as this may differ by two edits where one edit finds nothing.",
    )
    longest: int = Field(32, ge=2, le=64, description="Longer words are left alone: they are no words.")
    discount: float = Field(
        0.5, gt=0, le=1, description="Weight of a neighbour one edit away; two edits away its square.",
        json_schema_extra={"tunable": [0.2, 1.0]},
    )  # fmt: skip
    neighbours: int = Field(5, ge=1, le=50, description="How many neighbours stand for a word at most.")
    most_words: int = Field(3, ge=1, le=20, description="How many words of a query are corrected at most.")


class Spelling:
    """Searches the nearest known words in place of a word that no memory holds in any field.

    Nearest are those one edit away: a letter inserted, left out or replaced, or two neighbours exchanged (Damerau 1964,
    as "optimal string alignment"). Every such form of the typed word is analysed as the index was, so that endings
    differ by one edit at most too. Where there is none, stems two edits from the typed word's are taken. Of several
    neighbours the most frequent ones stay. They count with a weight below that of words typed right, and the answer
    says what was searched. Quoted words are meant as they are typed. Features C2, C3.
    """

    about = About(features=("C2", "C3"), costly=True)
    Params = SpellingParams

    def __init__(self, params: SpellingParams) -> None:
        self._params = params

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:
        """The plan with what stands for unknown words."""
        params, lexicon = self._params, store.lexicon
        respelt: list[Respelling] = []
        quoted = set(_WORD.findall(" ".join(query.required)))
        for word in dict.fromkeys(_WORD.findall(query.text)):
            if (
                word not in quoted
                and params.shortest <= len(word) <= params.longest
                and len(respelt) < params.most_words
            ):
                found = self._respelt(word, query.terms, lexicon)
                respelt += [found] if found else []
        if not respelt:
            return plan
        said = "; ".join(f"'{found.word}' as {', '.join(found.instead)}" for found in respelt)
        return replace(plan, respelt=(*plan.respelt, *respelt), reasons=plan.because(f"spelling: {said}"))

    def _respelt(self, word: str, terms: Collection[str], lexicon: Lexicon) -> Respelling | None:
        """What stands for a word; None for one that is known, is no term of the query, or has no known neighbour."""
        params = self._params
        tokens = lexicon.analyse(word)
        if len(tokens) != 1 or tokens[0] not in terms or _holders(tokens[0], lexicon):
            return None
        weight = params.discount
        readings = {found[0]: form for form in _one_edit(word.casefold()) if len(found := lexicon.analyse(form)) == 1}
        known = {term: holders for term in readings if (holders := _holders(term, lexicon))}
        if not known and len(tokens[0]) >= params.shortest_far:
            weight = params.discount**2
            near = extract(tokens[0], lexicon.words(), scorer=OSA.distance, score_cutoff=2, limit=None)
            readings = {term: term for term, _, _ in near}
            known = {term: holders for term in readings if (holders := _holders(term, lexicon))}
        best = sorted(known, key=lambda term: (-known[term], term))[: params.neighbours]
        return Respelling(word, tokens[0], dict.fromkeys(best, weight), readings[best[0]]) if best else None


def _holders(term: str, lexicon: Lexicon) -> int:
    """How many memories hold a term in the field that holds it most often."""
    return max(len(lexicon.index(field).postings(term).rows) for field in FIELDS)


def _one_edit(word: str) -> Iterator[str]:
    """All words one edit away, letters exchanged first, for that is the most common slip."""
    # The letters of the word besides the plain ones: of another script, the likeliest.
    letters = dict.fromkeys(ascii_lowercase + word)
    splits = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    yield from (left + right[1] + right[0] + right[2:] for left, right in splits if len(right) > 1)
    yield from (left + right[1:] for left, right in splits if right)
    yield from (left + letter + right[1:] for left, right in splits if right for letter in letters)
    yield from (left + letter + right for left, right in splits for letter in letters)
