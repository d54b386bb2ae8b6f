"""Bags of words are kept with the state of the store that they were laid out over."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from storing.answers import NOW
from storing.indexes import read_model
from storing.models import WORDS

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.words.lexicon import MOST_BAGS
from speckit_memory.memory.store.records import Document
from speckit_memory.memory.store.writing import writer
from speckit_memory.pipeline.ports import Level

Make = Callable[..., Document]
WEIGHTS = (10.0, 5.0, 2.0, 1.0)
TERMS = dict.fromkeys(WORDS, 1.0)


def put(database: Database, *documents: Document) -> list[int]:
    with database.write() as txn:
        return [writer.put_document(txn, document, None, NOW, None, None).id for document in documents]


def test_bags_of_a_setting_are_laid_out_once_while_the_words_stay_the_same(database: Database, document: Make) -> None:
    model = read_model(database)
    [memory, _] = put(database, document("a", "alpha"), document("b", "beta"))
    first = model.current().lexicon.bags(WEIGHTS, 1.2, 0.75)
    assert model.current().lexicon.bags((10, 5, 2, 1), 1.2, 0.75, "memory") is first
    assert model.current().lexicon.bags(WEIGHTS, 1.2, 0.75, "chunk") is not first
    assert model.current().lexicon.bags(WEIGHTS, 1.3, 0.75) is not first

    with database.write() as txn:
        writer.set_attribute(txn, "access_count", {memory: 7})
    assert model.current().lexicon.bags(WEIGHTS, 1.2, 0.75) is first

    known = first.scores(TERMS).tolist()
    put(database, document("c", "alpha"))
    later = model.current().lexicon.bags(WEIGHTS, 1.2, 0.75)
    assert later is not first
    assert (len(first.ids), len(later.ids)) == (2, 3)
    assert first.scores(TERMS).tolist() == known


def test_the_settings_last_asked_for_are_kept(database: Database, document: Make) -> None:
    put(database, document("a", "alpha"))
    lexicon = read_model(database).current().lexicon
    everyday = lexicon.bags(WEIGHTS, 1.2, 0.75)
    second = lexicon.bags(WEIGHTS, 1.2, 0.5)
    for number in range(MOST_BAGS - 1):
        lexicon.bags(WEIGHTS, 2.0 + number, 0.75)
        assert lexicon.bags(WEIGHTS, 1.2, 0.75) is everyday

    assert lexicon.bags(WEIGHTS, 1.2, 0.5) is not second
    assert len(lexicon._bags) == MOST_BAGS


def test_threads_share_bags_that_are_laid_out_in_a_race(database: Database, document: Make) -> None:
    put(database, *(document(f"m{number}", f"alpha {WORDS[number % 4]}") for number in range(8)))
    for _ in range(20):
        lexicon = read_model(database).current().lexicon
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(lexicon.bags, WEIGHTS, 1.2, 0.75) for _ in range(4)]
            found = [each.result() for each in asked]
        assert len(set(map(id, found))) == 1


@pytest.mark.parametrize("level", ["memory", "chunk"])
def test_holes_score_nothing_and_belong_to_nobody(database: Database, document: Make, level: str) -> None:
    model = read_model(database)
    ids = put(database, *(document(f"m{number}", "alpha", "beta", folder="f") for number in range(4)))
    model.load()  # what the file answers has no holes
    with database.write() as txn:
        writer.delete_memories(txn, ids[1:2])

    bags = model.current().lexicon.bags(WEIGHTS, 1.2, 0.75, level)  # type: ignore[arg-type]

    holes = bags.ids < 0
    assert holes.any()
    assert not bags.scores(TERMS)[holes].any()
    assert not bags.coverage(TERMS)[holes].any()
    assert (bags.parents[holes] == -1).all()
    owners = model.current().lexicon.index("body").ids[bags.parents[~holes]]
    assert np.array_equal(owners, model.current().attributes.parents(bags.ids[~holes]))


@pytest.mark.parametrize("level", ["memory", "chunk"])
def test_what_is_told_of_a_few_rows_is_what_is_told_of_all(database: Database, document: Make, level: Level) -> None:
    put(database, *(document(f"m{number}", "alpha", "beta", folder="f") for number in range(6)), document("alone", "x"))
    bags = read_model(database).current().lexicon.bags(WEIGHTS, 1.2, 0.75, level)
    rows = np.array([3, 0, len(bags.ids) - 1, 3])
    assert bags.height == len(bags.ids)
    assert bags.ids_of(rows).tolist() == bags.ids[rows].tolist()
    assert bags.parents_of(rows).tolist() == bags.parents[rows].tolist()
    values = np.append(np.random.default_rng(1).random(7), 0.0)
    neighbours = bags.neighbours
    assert neighbours is not None
    wanted = [max(values[before], values[after]) for before, after in zip(*neighbours, strict=True)]
    assert np.any(np.array(wanted) > 0.0)
    beside = bags.better_neighbour(values)
    assert beside is not None
    assert beside.tolist() == wanted
