"""Makes queries from the user's own memories, judged by how they are made (feature E3, phase A).

In addition to the kinds of `made_queries` there are trigger phrases, headings, reworded sentences, and questions that
need two memories. Hard negatives are memories with similar titles; unanswerable questions are about nothing in the
store.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice
from random import Random

from speckit_memory.engine.answers.request import MAX_QUERY_CHARACTERS
from speckit_memory.engine.api.memory import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.datasets.dataset import DatasetQuery
from speckit_memory.evaluation.datasets.documents import DatasetDocument
from speckit_memory.evaluation.made_queries.collection import Collection, is_content, plain_runs
from speckit_memory.evaluation.made_queries.collection import words as folded_words
from speckit_memory.evaluation.made_queries.kinds import KINDS
from speckit_memory.evaluation.made_queries.query_maker import MadeQuery, QueryMaker, in_turn, shuffle_items
from speckit_memory.memory.store.records import Tier

_PAGE = 500
_FENCED = re.compile(r"^ {0,3}(?P<fence>```|~~~)(?s:.*?)(?:^ {0,3}(?P=fence)|\Z)", re.MULTILINE)
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class OwnDocument:
    """A memory as the material for queries. `memory` is its id, `content` the digest of its text."""

    memory: int
    content: str
    document: DatasetDocument
    headings: tuple[str, ...]


def own_documents(memory: Memory) -> list[OwnDocument]:
    """All memories that a search may return, by key; deprecated ones are left out."""
    return list(_documents(memory))


def _documents(memory: Memory) -> Iterator[OwnDocument]:
    passages, offset, total = memory.session.view().passages, 0, 1
    while offset < total:
        page, total = memory.list(sort="key", limit=_PAGE, offset=offset)
        offset += _PAGE
        for record in page:
            if record.tier == Tier.DEPRECATED:
                continue
            document = DatasetDocument(
                key=record.key,
                title=record.title,
                text=passages.body(record.id),
                folder=record.folder,
                tier=record.tier,
                triggers=record.triggers,
                created_at=record.created_at,
            )
            yield OwnDocument(record.id, record.content_hash, document, tuple(_headings(document)))


def _headings(document: DatasetDocument) -> dict[str, None]:
    """The distinct headings of a Markdown text below its title; fenced code is ignored."""
    text = _FENCED.sub("", document.text)
    found = (match[1].strip() for match in _HEADING.finditer(text))
    return dict.fromkeys(heading for heading in found if heading.casefold() != document.title.casefold())


Asked = tuple[str, tuple[str, ...]]
"""A query and the keys of the memories that answer it."""
Labelled = tuple[DatasetQuery, tuple[str, ...]]
"""The same with the number of the query among those of its kind."""

ENOUGH_QUERIES = 400
"""Total number of queries, spread evenly over the kinds; criteria of flags ask for 200 to 300."""
_LONGEST_KIND = 100
"""Maximum number of queries of one kind, so that no kind dominates."""

LEAST_MEMORIES = 5
LEAST_QUERIES = 10
"""Below these minima nothing is measured: any figure would be chance."""

_WORDS = 3
_TRIES = 20
"""Number of words in a rewording, and of word combinations tried in each run of words."""

_NEAR = 0.5
"""Minimum share of a title's content words that a similar title contains."""

FOREIGN = (
    "how long does sourdough bread have to rise before baking",
    "which planets of the solar system have visible rings",
    "what medicine helps against seasonal hay fever in children",
    "when did the Ottoman siege of Vienna end",
    "how are violin strings tuned in perfect fifths",
    "why do migrating storks avoid flying across open sea",
    "what is the offside rule in football",
    "how deep is the Mariana trench below sea level",
    "which cheese belongs on a classic Neapolitan pizza",
    "how do glaciers carve valleys in granite mountains",
    "who painted the ceiling of the Sistine chapel",
    "what causes the northern lights above Norway",
    "how many strings does a medieval lute have",
    "which grape varieties grow in the Burgundy vineyards",
)
"""Questions on topics other than software. Asked only if no memory holds two of their content words."""


@dataclass(frozen=True, slots=True)
class OwnQueries:
    """Queries with their judgements by key; a grade of 0 marks a hard negative. `missing` lists the kinds without a
    query."""

    queries: tuple[DatasetQuery, ...]
    judgements: Mapping[str, Mapping[str, float]]
    unanswerable: tuple[DatasetQuery, ...]
    missing: tuple[str, ...]


def own_queries(documents: Sequence[OwnDocument], *, seed: int, window: int = 1) -> OwnQueries:
    """Makes `ENOUGH_QUERIES` queries of every kind in turn, or as many as there are.

    The second window begins after the queries of the first. Raises SpeckitError (E125) when there are too few memories
    or too few queries.
    """
    if len(documents) < LEAST_MEMORIES:
        message = f"the store holds {len(documents)} memories; making queries takes at least {LEAST_MEMORIES}"
        raise SpeckitError("E125", message, actions=("index more documents", "measure on a dataset with --dataset"))
    collection = Collection([one.document for one in documents])
    maker = QueryMaker(collection.documents, scoped=False, seed=seed)
    made: dict[str, list[Asked]] = {
        "triggers": _unique([(phrase, one) for one in documents for phrase in one.document.triggers], seed),
        "headings": _unique([(text, one) for one in documents for text in one.headings], seed),
        "rewordings": _rewordings(collection, Random(f"{seed} rewordings")),
    }
    for kind in KINDS:
        made[kind] = [(query.query.text, query.relevant) for query in maker.make(kind, _LONGEST_KIND)]
    # made of the surplus rewordings, so that no query repeats another
    made["two_memories"] = _two_memories(made["rewordings"][_LONGEST_KIND:])
    made["rewordings"] = made["rewordings"][:_LONGEST_KIND]
    start = (window - 1) * ENOUGH_QUERIES
    whole = _distinct(in_turn([_labelled(kind, found) for kind, found in made.items()]))
    taken = list(islice(whole, start, start + ENOUGH_QUERIES))
    # grouped by kind again, after taking kinds in turn
    queries = sorted(taken, key=lambda one: list(made).index(one[0].id.rpartition("-")[0]))
    asks = {
        "triggers": "no trigger phrase belongs to one memory alone",
        "headings": "no heading of two words belongs to one memory alone",
        "rewordings": "no line has three words that only one memory holds together and others hold in other forms",
        "two_memories": "there are too few rewordings to join any two",
        **{kind: f"there is no {entry.asks_for}" for kind, entry in KINDS.items()},
    }
    missing = tuple(f"no query of the kind {kind}: {asks[kind]}" for kind, found in made.items() if not found)
    if len(queries) < LEAST_QUERIES:
        further = " further" if window > 1 else ""
        message = (
            f"only {len(queries)}{further} queries can be made of {len(documents)} memories; {LEAST_QUERIES} are needed"
        )
        raise SpeckitError("E125", f"{message}: {'; '.join(missing)}", actions=("index more documents",))
    judgements = {
        query.id: {**_near(collection, relevant), **dict.fromkeys(relevant, 1.0)} for query, relevant in queries
    }
    return OwnQueries(tuple(query for query, _ in queries), judgements, tuple(_foreign(collection)), missing)


def _labelled(kind: str, found: Iterable[Asked]) -> Iterator[Labelled]:
    return ((DatasetQuery(f"{kind}-{number:04}", text), relevant) for number, (text, relevant) in enumerate(found, 1))


def _distinct(labelled: Iterable[Labelled]) -> Iterator[Labelled]:
    """The first query of each text: two kinds may make the same one."""
    seen = set[str]()
    for query, relevant in labelled:
        if query.text not in seen:
            seen.add(query.text)
            yield query, relevant


def _rewordings(collection: Collection, random: Random) -> list[Asked]:
    """Queries of a user who remembers a line vaguely: its most common content words, reordered and in other
    inflections.

    One memory alone holds all their stems.
    """
    forms: dict[tuple[str, ...], list[str]] = {}
    for word in sorted(collection.by_word):
        if word.isalpha() and is_content(word):
            forms.setdefault(collection.tokens(word), []).append(word)
    rows = shuffle_items(range(len(collection.documents)), random)
    made = in_turn([_reworded(collection, row, forms, random) for row in rows])
    return [
        (query.text, tuple(collection.documents[row].key for row in query.relevant))
        for query in islice(made, 2 * _LONGEST_KIND)
    ]


def _reworded(
    collection: Collection, row: int, forms: Mapping[tuple[str, ...], list[str]], random: Random
) -> Iterator[MadeQuery]:
    def holders(word: str) -> int:
        return len(collection.with_tokens(collection.tokens(word)))

    runs = [run for line in collection.prose[row] for run in plain_runs(line.casefold())]
    for run in shuffle_items(runs, random):
        words = sorted({word for word in run if is_content(word)}, key=lambda word: (-holders(word), word))
        for chosen in islice(combinations(words, _WORDS), _TRIES):
            stems = [collection.tokens(word) for word in chosen]
            others = [
                [form for form in forms.get(stem, ()) if form != word] for word, stem in zip(chosen, stems, strict=True)
            ]
            # at least one word changes, and the stems still identify the memory
            if any(others) and collection.with_tokens(chain.from_iterable(stems)) == (row,):
                changed = [random.choice(other or [word]) for word, other in zip(chosen, others, strict=True)]
                yield MadeQuery(" ".join(shuffle_items(changed, random)), (row,))
                break


def _two_memories(single: Sequence[Asked]) -> list[Asked]:
    """Questions that need two memories: a query for one and a query for the other, joined by "and"."""
    half = len(single) // 2
    both = zip(single[:half], single[half:], strict=False)
    return [(f"{text} and {further}", (*one, *other)) for (text, one), (further, other) in both if one != other]


def _unique(phrases: Sequence[tuple[str, OwnDocument]], seed: int) -> list[Asked]:
    """Phrases with at least two content words that belong to one memory alone, in seeded order."""
    owners: dict[str, set[str]] = {}
    for text, one in phrases:
        owners.setdefault(text.casefold(), set()).add(one.document.key)
    texts = {text.casefold(): text for text, _ in reversed(phrases)}
    chosen = [
        (texts[folded], tuple(keys))
        for folded, keys in sorted(owners.items())
        if len(keys) == 1 and len(folded) <= MAX_QUERY_CHARACTERS and sum(map(is_content, folded_words(folded))) >= 2
    ]
    return shuffle_items(chosen, Random(seed))[:_LONGEST_KIND]


def _near(collection: Collection, relevant: Sequence[str]) -> dict[str, float]:
    """Memories with titles similar to those of the relevant ones, in any folder, with grade 0."""
    titles = {one.key: frozenset(filter(is_content, folded_words(one.title))) for one in collection.documents}
    near = {
        key
        for wanted in relevant
        for key, words in titles.items()
        if titles[wanted] and len(words & titles[wanted]) >= _NEAR * len(titles[wanted])
    }
    return dict.fromkeys(sorted(near - set(relevant)), 0.0)


def _foreign(collection: Collection) -> Iterator[DatasetQuery]:
    """Questions that nothing here answers: no memory holds two of their content words."""
    for number, text in enumerate(FOREIGN, 1):
        held: dict[int, int] = {}
        for token in set(collection.tokens(text)):
            for row in collection.by_stem.get(token, ()):
                held[row] = held.get(row, 0) + 1
        if max(held.values(), default=0) < 2:
            yield DatasetQuery(f"unanswerable-{number:04}", text)
