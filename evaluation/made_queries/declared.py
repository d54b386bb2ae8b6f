"""Queries on metadata that documents declare in front matter or at their head: authors, dates, status."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from random import Random
from typing import TypeVar

from speckit_memory.evaluation.made_queries.collection import Collection, Rows, is_content, postings
from speckit_memory.evaluation.made_queries.collection import words as folded_words
from speckit_memory.evaluation.made_queries.query_maker import MadeQuery, in_turn, shuffle_items
from speckit_memory.memory.parsing.dates import MONTHS, dates_in
from speckit_memory.memory.parsing.declarations.metadata import CREATED, MetadataField

_Value = TypeVar("_Value", bound=Hashable)
_AUTHORS = frozenset(("author", "authors", "owner", "owners", "editor", "editors", "decider", "deciders"))
_MOST_DOCUMENTS = 10
_MOST_OF_A_TOPIC = 20
_PERSON = re.compile(r"[^\W\d_][^\W\d_.'’-]*\.?(?:[ '’-][^\W\d_][^\W\d_.'’-]*\.?){1,3}")
_BESIDE_NAMES = re.compile(r"<[^<>]*>|\([^()]*\)|\[|\]|\"")
_BETWEEN_NAMES = re.compile(r"[,;&]|\band\b|(?:^|\s)[-*+]\s")


def authors(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """`proposals by NAME`, for a name of at least two words.

    The documents that name such an author, owner, editor or decider are relevant, at most ten.
    """
    found = _by_value(collection, _AUTHORS, _people)
    for name in shuffle_items(sorted(found), random):
        if len(found[name]) <= _MOST_DOCUMENTS:
            yield MadeQuery(f"proposals by {name}", found[name])


def dates(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """A day as in `created 2024-03-05` or `created on March 5, 2024`, or a month as in `created in March 2024`.

    Each form is equally frequent. The documents of that day or month are relevant, at most ten.
    """
    found = _by_value(collection, CREATED, lambda value: dates_in(value.value))
    days = {date: rows for date, rows in found.items() if date[2]}
    months: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for (year, month, _), rows in found.items():
        months[year, month].update(rows)
    drawn = shuffle_items(sorted(days), random)
    by_day = (MadeQuery(f"created {day.year}-{day.month:02}-{day.day:02}", days[day]) for day in drawn)
    drawn = shuffle_items(sorted(days), random)
    in_words = (MadeQuery(f"created on {MONTHS[day.month - 1]} {day.day}, {day.year}", days[day]) for day in drawn)
    by_month = (
        MadeQuery(f"created in {MONTHS[month - 1]} {year}", tuple(sorted(months[year, month])))
        for year, month in shuffle_items(sorted(months), random)
    )
    for query in in_turn([by_day, in_words, by_month]):
        if len(query.relevant) <= _MOST_DOCUMENTS:
            yield query


def latest(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """`latest proposal about TOPIC`, for a topic word in two to twenty titles.

    The document with the latest creation date is relevant; topics with two documents on that date are left out.
    """
    created: defaultdict[int, tuple[int, int, int]] = defaultdict(lambda: (0, 0, 0))
    for day, rows in _by_value(collection, CREATED, lambda value: dates_in(value.value)).items():
        for row in rows:
            created[row] = max(created[row], day)
    topics = _topics(collection)
    for topic in shuffle_items(sorted(topics), random):
        *others, newest = sorted(topics[topic], key=created.__getitem__)
        if others and len(topics[topic]) <= _MOST_OF_A_TOPIC and created[others[-1]] < created[newest]:
            yield MadeQuery(f"latest proposal about {topic}", (newest,))


def status(collection: Collection, random: Random) -> Iterator[MadeQuery]:
    """`status STATUS TOPIC`, for a topic word in up to twenty titles.

    The documents of the topic with that status are relevant; others of the topic have a different status.
    """
    of_row: dict[int, str] = {}
    for state, rows in _by_value(collection, frozenset(("status", "state")), _state).items():
        of_row |= dict.fromkeys(rows, state)
    topics = _topics(collection)
    for topic in shuffle_items(sorted(topics), random):
        states = sorted({of_row[row] for row in topics[topic] if row in of_row})
        if len(states) > 1 and len(topics[topic]) <= _MOST_OF_A_TOPIC:
            state = random.choice(states)
            yield MadeQuery(f"status {state} {topic}", tuple(row for row in topics[topic] if of_row.get(row) == state))


def _topics(collection: Collection) -> dict[str, Rows]:
    """The documents whose titles contain each content word made of letters."""
    titles = [{word for word in folded_words(document.title) if is_content(word)} for document in collection.documents]
    return {word: rows for word, rows in postings(titles).items() if word.isalpha()}


def _by_value(
    collection: Collection, names: frozenset[str], values: Callable[[MetadataField], Iterable[_Value]]
) -> dict[_Value, Rows]:
    """The documents of each value of the fields with these names."""
    of_row = (
        {value for field in fields if field.plain_name in names for value in values(field)}
        for fields in collection.fields
    )
    found: defaultdict[_Value, list[int]] = defaultdict(list)
    for row, said in enumerate(of_row):
        for value in said:
            found[value].append(row)
    return {value: tuple(rows) for value, rows in found.items()}


def _people(field: MetadataField) -> Iterator[str]:
    for piece in _BETWEEN_NAMES.split(_BESIDE_NAMES.sub(" ", field.value)):
        if _PERSON.fullmatch(name := " ".join(piece.split())):
            yield name


def _state(field: MetadataField) -> Iterator[str]:
    """The first word of a status."""
    if match := re.match(r"\W*([^\W\d_]+)", field.value):
        yield match[1].casefold()
