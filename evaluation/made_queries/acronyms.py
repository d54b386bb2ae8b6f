"""Acronyms and their long forms, as documents define them: "Long Form (LF)"."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from random import Random

from speckit_memory.evaluation.made_queries.collection import Collection, Rows
from speckit_memory.evaluation.made_queries.kind import MadeQuery, in_turn, shuffle_items
from speckit_memory.memory.parsing.acronyms import long_form

_MOST_DOCUMENTS = 10
_DEFINITION = re.compile(r"((?:[^\W\d_]+[ -]){1,7}[^\W\d_]+) \(([A-Z]{2,6})\)")


def acronyms(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """An acronym that a document defines as "Long Form (LF)", or its long form, in equal numbers.

    The documents that hold either form are relevant, at most ten; at least one of them lacks the form in the query.
    Left out are acronyms with several meanings, and those that occur in lower case.
    """
    meanings: defaultdict[str, set[str]] = defaultdict(set)
    for text in collection.texts:
        for words, acronym in _DEFINITION.findall(text):
            meanings[acronym].add(long_form(words, acronym).casefold())
    known = [
        (acronym, min(forms)) for acronym, forms in sorted(meanings.items()) if len(forms) == 1 and "" not in forms
    ]
    return in_turn([_queries(collection, shuffle_items(known, random), asked) for asked in (0, 1)])


def _queries(collection: Collection, drawn: Sequence[tuple[str, str]], asked: int) -> Iterator[MadeQuery]:
    """Queries that ask for the acronym (0) or for its long form (1)."""
    for known in drawn:
        short, long = known
        written = re.compile(rf"(?<![^\W_]){short}(?![^\W_])")
        holders = collection.by_word.get(short.casefold(), ())
        # an acronym in lower case may be another word
        if not all(written.search(collection.texts[row]) for row in holders):
            continue
        of_each: tuple[set[int], set[int]] = set(holders), set(_in_a_row(collection, long))
        relevant = of_each[0] | of_each[1]
        # some relevant document must lack the form in the query
        if relevant != of_each[asked] and of_each[asked] and len(relevant) <= _MOST_DOCUMENTS:
            yield MadeQuery(known[asked], tuple(sorted(relevant)))


def _in_a_row(collection: Collection, text: str) -> Rows:
    """The documents that hold the stems of a text in sequence."""
    stems = collection.tokens(text)
    run = f" {' '.join(stems)} "
    held = collection.with_tokens(stems)
    return tuple(row for row in held if run in f" {' '.join(collection.tokens(collection.texts[row]))} ")
