"""The judgements of every kind, held against a count of its own that shares no code with the makers."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice, product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from speckit_memory.evaluation.made_queries.collection import Collection
from speckit_memory.evaluation.made_queries.kinds import KINDS
from speckit_memory.evaluation.made_queries.query_maker import derive
from speckit_memory.memory.indexing import Analyser
from tests.evaluation.made_queries.made import collection, made

SYLLABLES = (
    "bro", "cal", "dor", "fin", "gul", "hem", "jas", "kip", "lum", "mon", "nar", "pes", "rud", "tiv", "wex", "zog",
)  # fmt: skip
WORDS = ["".join(chosen) for chosen in product(SYLLABLES, repeat=3)]


def sentence(random: Random) -> str:
    """Words of skewed frequency, with names, identifiers and inflections among them."""
    drawn = [WORDS[int(random.random() ** 3 * len(WORDS))] for _ in range(random.randint(4, 14))]
    place = random.randrange(1, len(drawn))
    word = drawn[place]
    shape = random.choice(("plain", "plain", "name", "camel", "snake", "plural", "option", "code"))
    drawn[place] = {
        "plain": word, "name": f"{word.title()} {random.choice(WORDS).title()}", "plural": f"{word}s",
        "camel": word + random.choice(WORDS).title(), "snake": f"{word}_{random.choice(WORDS)}",
        "option": f"--{word}-{random.choice(WORDS)}", "code": f"`{word}`",
    }[shape]  # fmt: skip
    return " ".join(drawn).replace(word, word.capitalize(), 1) + random.choice((".", "?", ".\n", ".\n\n"))


def generated(seed: int, documents: int) -> Collection:
    random = Random(seed)
    bodies = [" ".join(sentence(random) for _ in range(random.randint(2, 30))) for _ in range(documents)]
    shared = sentence(random)
    bodies = [f"{shared} {body}" if random.random() < 0.2 else body for body in bodies]
    return collection(*bodies, titles=tuple(" ".join(random.sample(WORDS, 3)).title() for _ in bodies))


def plain(text: str) -> str:
    return f" {' '.join(re.findall('[a-z0-9]+', text.lower()))} "


def holding(pattern: str, of: Collection) -> tuple[int, ...]:
    texts = [f"{document.title}\n{document.text}" for document in of.documents]
    return tuple(row for row, text in enumerate(texts) if re.search(pattern, text, re.IGNORECASE))


def in_a_row(query: str, of: Collection) -> tuple[int, ...]:
    texts = [plain(f"{document.title}\n{document.text}") for document in of.documents]
    return tuple(row for row, text in enumerate(texts) if plain(query) in text)


def both(query: str, of: Collection) -> tuple[int, ...]:
    first, second = (set(holding(rf"\b{word}\b", of)) for word in query.split())
    return tuple(sorted(first & second))


def titled(query: str, of: Collection) -> tuple[int, ...]:
    return tuple(row for row, document in enumerate(of.documents) if document.title == query)


def verbatim(query: str, of: Collection) -> tuple[int, ...]:
    return tuple(row for row, document in enumerate(of.documents) if query in document.text)


COUNTS: dict[str, Callable[[str, Collection], tuple[int, ...]]] = {
    "words": lambda query, of: holding(rf"\b{query}\b", of),
    "pairs": both,
    "surfaces": both,
    "names": in_a_row,
    "identifiers": lambda query, of: holding(re.escape(query), of),
    "phrases": in_a_row,
    "titles": titled,
    "paragraphs": verbatim,
}


@pytest.mark.requirement("E3.true", "E3.kinds")
@pytest.mark.parametrize("kind", COUNTS)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_relevant_documents_are_those_that_hold_what_is_asked(kind: str, seed: int) -> None:
    of = generated(seed, 150)
    queries = dict(islice(made(kind, of).items(), 100))

    assert len(queries) >= 20
    assert queries == {query: COUNTS[kind](query, of) for query in queries}


@pytest.mark.requirement("E3")
@pytest.mark.parametrize("seed", [1, 2])
def test_a_misspelt_word_means_one_word_and_its_documents(seed: int) -> None:
    of = generated(seed, 150)
    queries = list(islice(derive("typos")(of, Random(seed)), 100))

    assert len(queries) >= 20
    for query in queries:
        assert query.relevant == holding(rf"\b{query.notes['word']}\b", of)
        assert len(query.relevant) == query.notes["df"]
        assert holding(rf"\b{query.text}\b", of) == ()


@pytest.mark.parametrize("kind", ["words", "pairs", "names"])
def test_no_other_document_has_the_words_in_another_form(kind: str) -> None:
    of = generated(3, 150)
    analyser = Analyser()
    tokens = [set(analyser.tokens(f"{document.title}\n{document.text}")) for document in of.documents]

    for query, relevant in islice(made(kind, of).items(), 100):
        asked = set(analyser.tokens(query))
        assert tuple(row for row, held in enumerate(tokens) if held >= asked) == relevant


PIECES = ("run", "runs", "Cache", "cache", "the", "of", "Guido", "van", "Rossum", "user_id", "v1.2.3", "--dry-run",
          "`a.b`", "größe", "検索", "'s", "—", "1.2", "\n", "```", "x" * 70)  # fmt: skip
LINE = st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join)


@settings(max_examples=examples(0.2))
@given(texts=st.lists(st.tuples(LINE | st.text(max_size=30), LINE | st.text(max_size=200)), max_size=6))
@pytest.mark.parametrize("kind", KINDS)
def test_any_documents_at_all_give_queries_that_can_be_asked(kind: str, texts: list[tuple[str, str]]) -> None:
    of = collection(*(body for _, body in texts), titles=tuple(title for title, _ in texts))
    first = [(query.text, query.relevant, dict(query.notes)) for query in derive(kind)(of, Random(5))]
    again = [(query.text, query.relevant, dict(query.notes)) for query in derive(kind)(of, Random(5))]

    assert first == again
    for text, relevant, _ in first:
        assert any(character.isalnum() for character in text)
        assert relevant
        assert relevant == tuple(sorted(set(relevant)))
        assert set(relevant) <= set(range(len(texts)))
