"""Queries made of somebody's own memories, judged by how they are made (feature E3, phase A).

Beside the kinds of `made_queries` there are trigger phrases and headings; hard negatives are memories whose titles are
near to the one that is asked for, and questions that nothing in the store answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from speckit_memory.engine.questions import MAX_QUERY_CHARACTERS
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.dataset import DatasetQuery
from speckit_memory.evaluation.grounds.own_documents import OwnDocument
from speckit_memory.evaluation.made_queries.collection import Collection, is_content
from speckit_memory.evaluation.made_queries.collection import words as folded_words
from speckit_memory.evaluation.made_queries.kind import shuffled
from speckit_memory.evaluation.made_queries.kinds import KINDS
from speckit_memory.evaluation.made_queries.making import Maker

EACH = 20
"""So many queries of each kind, or as many as there are."""

LEAST_MEMORIES = 5
LEAST_QUERIES = 10
"""Below these nothing is measured: any figure would be chance."""

_NEAR = 0.5
"""A title that shares this part of the content words of another is near to it."""

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
"""Questions about other things than software. Those are asked of which no memory holds two content words."""


@dataclass(frozen=True, slots=True)
class OwnQueries:
    """Queries with their judgements by key; a grade of 0 marks a hard negative. `missing` says what lacks."""

    queries: tuple[DatasetQuery, ...]
    judgements: Mapping[str, Mapping[str, float]]
    unanswerable: tuple[DatasetQuery, ...]
    missing: tuple[str, ...]


def own_queries(documents: Sequence[OwnDocument], *, seed: int, each: int = EACH) -> OwnQueries:
    """Makes queries of every kind. Raises SpeckitError (E125) when there are too few memories, or of too few words."""
    if len(documents) < LEAST_MEMORIES:
        message = f"the store holds {len(documents)} memories; queries of one's own take {LEAST_MEMORIES} at least"
        raise SpeckitError("E125", message, actions=("index more documents", "measure on a dataset with --dataset"))
    collection = Collection([one.document for one in documents])
    maker = Maker(collection.documents, scoped=False, seed=seed)
    made: dict[str, list[tuple[str, tuple[str, ...]]]] = {
        "triggers": _unique([(phrase, one) for one in documents for phrase in one.document.triggers], seed, each),
        "headings": _unique([(text, one) for one in documents for text in one.headings], seed, each),
    }
    for kind in KINDS:
        made[kind] = [(query.query.text, query.relevant) for query in maker.make(kind, each)]
    queries = [
        (DatasetQuery(f"{kind}-{number:04}", text), relevant)
        for kind, found in made.items()
        for number, (text, relevant) in enumerate(found, 1)
    ]
    asks = {
        "triggers": "no memory has a trigger phrase of its own",
        "headings": "no memory has a heading of two words of its own",
        **{kind: f"there is no {entry.asks_for}" for kind, entry in KINDS.items()},
    }
    missing = tuple(f"no query of the kind {kind}: {asks[kind]}" for kind, found in made.items() if not found)
    if len(queries) < LEAST_QUERIES:
        message = f"only {len(queries)} queries can be made of {len(documents)} memories; {LEAST_QUERIES} are needed"
        raise SpeckitError("E125", f"{message}: {'; '.join(missing)}", actions=("index more documents",))
    judgements = {
        query.id: {**_near(collection, relevant), **dict.fromkeys(relevant, 1.0)} for query, relevant in queries
    }
    return OwnQueries(tuple(query for query, _ in queries), judgements, tuple(_foreign(collection)), missing)


def _unique(phrases: Sequence[tuple[str, OwnDocument]], seed: int, each: int) -> list[tuple[str, tuple[str, ...]]]:
    """Phrases of two content words that one memory has and no other, by seed."""
    owners: dict[str, set[str]] = {}
    for text, one in phrases:
        owners.setdefault(text.casefold(), set()).add(one.document.key)
    texts = {text.casefold(): text for text, _ in reversed(phrases)}
    chosen = [
        (texts[folded], tuple(keys))
        for folded, keys in sorted(owners.items())
        if len(keys) == 1 and len(folded) <= MAX_QUERY_CHARACTERS and sum(map(is_content, folded_words(folded))) >= 2
    ]
    return shuffled(chosen, Random(seed))[:each]


def _near(collection: Collection, relevant: Sequence[str]) -> dict[str, float]:
    """Memories whose titles are near to those of the relevant ones, wherever they lie: grade 0."""
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
