"""Names of people and things: words capitalised inside a sentence, and acronyms with their long forms."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from random import Random

from speckit_memory.evaluation.made_queries.collection import Collection, Rows, is_content
from speckit_memory.evaluation.made_queries.collection import words as folded_words
from speckit_memory.evaluation.made_queries.query_maker import MadeQuery, in_turn, shuffle_items
from speckit_memory.memory.parsing.acronyms import long_form

_MOST_DOCUMENTS = 5
_LONGEST = 3
_RUN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*(?: [^\W\d_]+(?:['’-][^\W\d_]+)*)*")
_PARTICLES = frozenset(("of", "van", "von", "der", "den", "de", "del", "della", "da", "di", "dos", "du", "la", "le"))
_JOINTS = frozenset(("and", "or", "for", "the", "in", "on", "to", "with"))
_HUMPED = re.compile(r".*[a-z](?<!Mc)(?<!Mac)[A-Z]|[A-Z]{2,}[a-z]{2,}")
_DATES = re.compile(
    "(mon|tues?|wed(nes)?|thu(rs)?|fri|sat(ur)?|sun)(day)?s?|jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|"
    "aug(ust)?|sept?(ember)?|oct(ober)?|nov(ember)?|dec(ember)?"
)


def names(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """One to three capitalised words in a row, inside a sentence, not at its start: "Guido van Rossum".

    The documents that hold the words in a row are relevant, at most five; no other document holds all the words. A
    one-word name never occurs in lower case. Names of one, two and three words are equally frequent.
    """
    found = {name for lines in collection.prose for line in lines for name in _in_line(line)}
    sizes = ([name for name in sorted(found) if _size(name) == size] for size in range(1, _LONGEST + 1))
    return in_turn([_queries(collection, shuffle_items(of_size, random)) for of_size in sizes])


def _queries(collection: Collection, drawn: Sequence[str]) -> Iterator[MadeQuery]:
    for name in drawn:
        rows = _documents(collection, name)
        if 0 < len(rows) <= _MOST_DOCUMENTS and (_size(name) > 1 or not _written_small(collection, name, rows)):
            yield MadeQuery(name, rows)


def _documents(collection: Collection, name: str) -> Rows:
    """The documents of a name; empty when another document holds its words apart."""
    rows = collection.with_sequence(folded_words(name))
    # Equal rows: every document with all the words has them in a row.
    return rows if rows == collection.with_tokens(collection.tokens(name)) else ()


def _written_small(collection: Collection, name: str, rows: Rows) -> bool:
    small = re.compile(rf"(?<!\w){re.escape(name.lower())}(?!\w)")
    return any(small.search(collection.texts[row]) for row in rows)


def _size(name: str) -> int:
    return sum(word not in _PARTICLES for word in name.split())


def _in_line(line: str) -> Iterator[str]:
    return chain.from_iterable(_in_run(run.split(" ")) for run in _RUN.findall(line))


def _in_run(run: Sequence[str]) -> Iterator[str]:
    """The names in a run of words: capitalised words after one that is not, unless they are part of a longer name."""
    start = 0
    while start < len(run):
        end = start
        while end < len(run) and (_capitalised(run[end]) or (end > start and run[end] in _PARTICLES)):
            end += 1
        # A name does not end in a particle: "van" in "Guido van" is given back.
        while end > start and run[end - 1] in _PARTICLES:
            end -= 1
        name = re.sub(r"['’]s$", "", " ".join(run[start:end]))
        inside = start > 0 and run[start - 1].islower()
        if inside and 1 <= _size(name) <= _LONGEST and not (_goes_on(run[end:]) or _goes_on(run[start - 1 :: -1])):
            yield name
        # At least one word further, so that the loop ends.
        start = max(end, start + 1)


def _goes_on(words: Sequence[str]) -> bool:
    """Whether lower-case words lead to a further capitalised one, as in "Kyoto Encyclopedia of Genes and Genomes"."""
    further = next((place for place, word in enumerate(words) if word not in _JOINTS | _PARTICLES), len(words))
    return 0 < further < len(words) and _capitalised(words[further])


def _capitalised(word: str) -> bool:
    parts = word.split("-")
    return (
        len(word) > 2
        and all(part[0].isupper() and not _HUMPED.match(part) for part in parts)
        and is_content(word.casefold())
        and not _DATES.fullmatch(word.casefold())
    )


_MOST_DEFINED = 10
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
    return in_turn([_of_definitions(collection, shuffle_items(known, random), asked) for asked in (0, 1)])


def _of_definitions(collection: Collection, drawn: Sequence[tuple[str, str]], asked: int) -> Iterator[MadeQuery]:
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
        if relevant != of_each[asked] and of_each[asked] and len(relevant) <= _MOST_DEFINED:
            yield MadeQuery(known[asked], tuple(sorted(relevant)))


def _in_a_row(collection: Collection, text: str) -> Rows:
    """The documents that hold the stems of a text in sequence."""
    stems = collection.tokens(text)
    run = f" {' '.join(stems)} "
    held = collection.with_tokens(stems)
    return tuple(row for row in held if run in f" {' '.join(collection.tokens(collection.texts[row]))} ")
