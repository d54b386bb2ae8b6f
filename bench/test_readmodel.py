"""Budgets of the read model at 10,000 memories in 20,000 chunks, and of 30,000 vectors."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from storing.indexes import read_model

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.current import ReadModel
from speckit_memory.memory.store.read_model.snapshot import Snapshot
from speckit_memory.memory.store.read_model.vectors.matrix import VectorMatrix
from speckit_memory.memory.store.read_model.words.late_entries import LateTexts
from speckit_memory.memory.store.read_model.words.term_index import PostingsIndex
from speckit_memory.memory.store.records import Chunk, Document
from speckit_memory.memory.store.tables.words import fulltext
from speckit_memory.memory.store.writing import writer
from speckit_memory.pipeline.ports import Filter, Tokens, Vectors

MEMORIES = 10_000
VOCABULARY = 30_000
DIMENSIONS = 256
K1, B = 1.2, 0.75


class Corpus(NamedTuple):
    database: Database
    model: ReadModel
    random: np.random.Generator
    below: NDArray[np.float64]


def words(random: np.random.Generator, below: NDArray[np.float64], size: int) -> tuple[str, ...]:
    """Words with frequencies after Zipf's law."""
    return tuple(f"w{number}" for number in below.searchsorted(random.random(size), side="right"))


def put(database: Database, random: np.random.Generator, below: NDArray[np.float64], numbers: Iterable[int]) -> None:
    with database.write() as txn:
        for number in numbers:
            made, rows, tokens = document(random, below, number)
            writer.put_document(txn, made, rows, 1.0, "m", tokens)


def document(
    corpus_random: np.random.Generator, below: NDArray[np.float64], number: int
) -> tuple[Document, Vectors, list[Tokens]]:
    """A document of two passages of 75 words; the token of a word is its number."""
    passages = tuple(words(corpus_random, below, 75) for _ in range(2))
    rows = corpus_random.standard_normal((2, DIMENSIONS))
    made = Document(
        key=f"{number}",
        title=f"memory {number}",
        body="",
        content_hash=f"{number}",
        chunks=tuple(Chunk(text=" ".join(tokens), tokens=tokens) for tokens in passages),
        title_tokens=("memory", f"w{number}"),
    )
    tokens: list[Tokens] = [np.unique([int(word[1:]) for word in passage]).astype(np.uint16) for passage in passages]
    return made, (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32), tokens


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    random = np.random.default_rng(1)
    below = (1 / np.arange(1, VOCABULARY + 1)).cumsum()
    below /= below[-1]
    with Database.open(tmp_path_factory.mktemp("bench") / "store.db") as database:
        put(database, random, below, range(MEMORIES))
        yield Corpus(database, read_model(database), random, below)


def warm(model: ReadModel) -> Snapshot:
    """The current snapshot, from a segment in memory."""
    model.load()
    snapshot = model.current()
    assert snapshot.vectors.dimensions == DIMENSIONS
    snapshot.tokens.weights(np.arange(1))
    return snapshot


def built(corpus: Corpus) -> PostingsIndex:
    """The index of the bodies, in memory."""
    index = warm(corpus.model).lexicon.index("body")
    assert isinstance(index, PostingsIndex)
    return index.copy()


def bm25(index: PostingsIndex, terms: tuple[str, ...], limit: int) -> NDArray[np.int64]:
    """Ids of the best entries: the accumulation that a scorer does over postings."""
    scores = np.zeros(len(index.ids), np.float32)
    norms = K1 * (1 - B + B * index.lengths / (index.lengths.sum() / index.count))
    for term in terms:
        postings = index.postings(term)
        weight = np.log((index.count - len(postings.rows) + 0.5) / (len(postings.rows) + 0.5) + 1)
        scores[postings.rows] += weight * postings.frequency * (K1 + 1) / (postings.frequency + norms[postings.rows])
    best = np.argpartition(scores, -limit)[-limit:]
    found: NDArray[np.int64] = index.ids[best[np.lexsort((index.ids[best], -scores[best]))]]
    return found


def median_seconds(call: Callable[[], Any], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.thread_time()
        call()
        times.append(time.thread_time() - start)
    return statistics.median(times)


def test_load_of_everything(benchmark: Any, corpus: Corpus) -> None:
    benchmark.pedantic(lambda: warm(read_model(corpus.database)), rounds=1)


def test_load_of_attributes_alone(benchmark: Any, corpus: Corpus) -> None:
    benchmark.pedantic(lambda: read_model(corpus.database).current(), rounds=5)


def test_unchanged_snapshot(benchmark: Any, corpus: Corpus) -> None:
    corpus.model.current()
    benchmark(corpus.model.current)


def test_postings_add(benchmark: Any, corpus: Corpus) -> None:
    index = built(corpus)
    ids = itertools.count(10**6)
    texts = [" " + " ".join(words(corpus.random, corpus.below, 150)) for _ in range(200)]

    def add(id_: int, text: str) -> None:
        index.add(LateTexts.of(np.array([id_]), (text,)))

    benchmark.pedantic(add, setup=lambda: ((next(ids), texts[next(ids) % 200]), {}), rounds=200)


def test_postings_remove(benchmark: Any, corpus: Corpus) -> None:
    index = built(corpus)
    ids = iter(index.ids.tolist())
    benchmark.pedantic(index.remove, setup=lambda: (([next(ids)],), {}), rounds=200)


def test_six_terms_over_postings(benchmark: Any, corpus: Corpus) -> None:
    index = built(corpus)
    terms = ("w3", "w20", "w100", "w400", "w1000", "w5000")
    benchmark(bm25, index, terms, 50)


def test_postings_answer_ten_times_faster_than_fts5(benchmark: Any, corpus: Corpus) -> None:
    index = built(corpus)
    connection = corpus.database.reader()
    numbers, ratios = iter(range(10)), []

    def compare() -> None:
        number = next(numbers)
        terms = tuple(f"w{rank + number}" for rank in (3, 20, 100, 400, 1000, 5000))
        slow = median_seconds(partial(fulltext.match, connection, terms, (0, 0, 0, 1), 50), 3)
        fast = median_seconds(partial(bm25, index, terms, 50), 9)
        ratios.append(slow / fast)

    benchmark.pedantic(compare, rounds=10)
    print(f"FTS5 / postings: median ratio {statistics.median(ratios):.0f}")
    assert statistics.median(ratios) >= 10


@pytest.mark.parametrize("level", ["chunk", "memory"])
@pytest.mark.parametrize("admitted", [1.0, 0.5, 0.1])
def test_nearest_of_30000_vectors(benchmark: Any, level: Any, admitted: float) -> None:
    random = np.random.default_rng(2)
    rows = random.standard_normal((30_000, DIMENSIONS))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    matrix = VectorMatrix(
        np.arange(100_000, 130_000), np.sort(random.integers(0, 10_000, 30_000)), rows.astype(np.float32)
    )

    class Share:
        complete = admitted == 1.0
        size = int(admitted * len(rows))

        def admits(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
            return ids % 10 < 10 * admitted

    benchmark(matrix.nearest, rows[7].astype(np.float32), 50, Share(), level)


def test_scope_of_a_folder(benchmark: Any, corpus: Corpus) -> None:
    attributes = corpus.model.current().attributes
    benchmark(attributes.scope, Filter(folder="a"), 1.0)


def test_tokens_of_twenty_passages(benchmark: Any, corpus: Corpus) -> None:
    space = warm(corpus.model).tokens
    chunks = corpus.model.current().attributes.chunks[::700][:20]
    benchmark(space.of_passages, chunks)


@pytest.mark.parametrize("kind", ["new", "changed", "used"])
def test_refresh_after_one_change(benchmark: Any, corpus: Corpus, kind: str) -> None:
    warm(corpus.model)
    numbers = itertools.count(10**6)

    def change() -> None:
        if kind == "used":
            with corpus.database.write() as txn:
                writer.set_attribute(txn, "access_count", {1 + next(numbers) % 99: next(numbers)})
        else:
            put(corpus.database, corpus.random, corpus.below, [next(numbers) if kind == "new" else 5])

    benchmark.pedantic(corpus.model.current, setup=change, rounds=20)
