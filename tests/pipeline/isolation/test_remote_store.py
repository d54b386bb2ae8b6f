"""The store over the wire: the same answers, the same errors, and nothing but the ports."""

from __future__ import annotations

import gc
import sqlite3
from typing import Any

import numpy as np
import pytest
from answered import present

from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.isolation.codec import Handle, pack, unpack
from speckit_memory.pipeline.isolation.remote_store import MOST_HANDLES, StoreLink, StoreServer, make_proxy
from speckit_memory.pipeline.ports import Filter
from speckit_memory.pipeline.process.clock import query_ns
from speckit_memory.pipeline.testing import FakeStore, Memory

STORE = FakeStore(
    Memory(1, "Rank fusion", ("fusion of ranked lists", "second part"), ("rank fusion",)),
    Memory(2, "Backups", ("copy the file",), folder="storage"),
    relevance={"copy the file": 0.75},
)


class Asking:
    """A store seen through the wire, without a process in between; counts the questions."""

    def __init__(self, store: Any = STORE) -> None:
        self.server = StoreServer(store)
        self.questions: list[tuple[int, str]] = []
        self.line = StoreLink(self._ask)
        self.store = make_proxy(self.line, Handle("Store", 0))

    def _ask(self, number: int, name: str, arguments: Any, released: Any) -> tuple[Any, ...]:
        self.questions.append((number, name))
        question = unpack(*pack((number, name, tuple(arguments), tuple(released))), writable=False)
        answer: tuple[Any, ...] = unpack(*pack(self.server.answer(*question)), writable=True)
        return answer


def test_positions_names_and_defaults_of_arguments_are_those_of_the_ports() -> None:
    store = Asking().store
    assert store.lexicon.index("body").count == store.lexicon.index(field="body", level="memory").count == 2
    ids = np.array([2, 1])
    by_name = store.attributes.label(ids=ids, name="title")
    assert by_name.tolist() == STORE.attributes.label("title", ids).tolist() == ["Backups", "Rank fusion"]
    with pytest.raises(TypeError):
        store.attributes.label("title")


def test_what_a_component_is_given_is_its_own_to_change() -> None:
    column = Asking().store.attributes.number("confidence", np.array([1, 2]))
    column[np.isnan(column)] = 0.5
    assert column.tolist() == [0.5, 0.5]


def test_scopes_and_indexes_stay_with_the_store_and_are_handed_back_by_number() -> None:
    asking = Asking()
    scope = asking.store.attributes.scope(Filter(folder="storage"), 0.0)
    assert (scope.size, scope.complete) == (1, False)
    assert scope.admits(np.array([1, 2, 99])).tolist() == [False, True, False]
    query = asking.store.vectors.embed("copy file")
    found = asking.store.vectors.nearest(query, 5, scope, "memory")
    whole = STORE.vectors.nearest(
        present(STORE.vectors.embed("copy file")), 5, STORE.attributes.scope(Filter("storage"), 0.0), "memory"
    )
    assert [column.tolist() for column in found] == [column.tolist() for column in whole]


def test_bags_of_words_stay_with_the_store_and_score_what_they_are_told() -> None:
    here, there = (store.lexicon.bags((1.0, 0.0, 0.0, 1.0), 1.2, 0.75, "chunk") for store in (STORE, Asking().store))
    terms = {"rank": 1.0, "file": 0.5}
    assert there.ids.tolist() == here.ids.tolist()
    assert there.parents.tolist() == here.parents.tolist()
    assert there.neighbours is here.neighbours is None
    assert there.scores(terms).tolist() == here.scores(terms).tolist()
    assert there.coverage(terms).tolist() == here.coverage(terms).tolist()
    assert there.scores(terms).any()
    with pytest.raises(ValueError, match="one of them above 0"):
        Asking().store.lexicon.bags((0.0, 0.0, 0.0, 0.0), 1.2, 0.75)


def test_properties_and_indexes_are_asked_for_once() -> None:
    asking = Asking()
    for _ in range(3):
        assert (
            asking.store.lexicon.index("body", "chunk").ids.tolist()
            == STORE.lexicon.index("body", "chunk").ids.tolist()
        )
        assert asking.store.vectors.dimensions == STORE.vectors.dimensions
    assert [name for _, name in asking.questions] == ["index", "ids", "dimensions"]


class Failing:
    """A store all of whose parts are itself, and whose counts fail."""

    def __getattr__(self, name: str) -> Any:
        if name == "count":
            raise SpeckitError("E020", "the store is busy")
        if name == "edge_count":
            raise ValueError("no edges here")
        if name == "dimensions":
            raise sqlite3.OperationalError("disk I/O error")
        return self


def test_what_fails_for_the_store_fails_for_the_component() -> None:
    with pytest.raises(KeyError):
        Asking().store.attributes.number("confidence", np.array([77]))
    store = Asking(Failing()).store
    with pytest.raises(SpeckitError) as raised:
        _ = store.attributes.count
    assert str(raised.value) == "E020 the store is busy"
    with pytest.raises(ValueError, match="no edges here"):
        _ = store.graph.edge_count
    with pytest.raises(RuntimeError, match="disk I/O error"):
        _ = store.vectors.dimensions


@pytest.mark.parametrize("name", ["_memories", "__class__", "write", "close", ""])
def test_nothing_but_the_ports_is_answered(name: str) -> None:
    asking = Asking()
    with pytest.raises(AttributeError):
        asking.line.asked(asking.store.attributes._number, name, ())


def test_objects_that_nobody_holds_are_let_go_and_the_others_are_counted() -> None:
    asking = Asking()
    for _ in range(3 * MOST_HANDLES):
        asking.store.attributes.scope(Filter(), 0.0)
        gc.collect(0)
    with pytest.raises(MemoryError, match=f"more than {MOST_HANDLES}"):
        _ = [asking.store.attributes.scope(Filter(), 0.0) for _ in range(MOST_HANDLES + 1)]


def test_the_store_answers_during_the_call_only() -> None:
    asking = Asking()
    passages = asking.store.passages
    assert passages.body(2) == STORE.passages.body(2)
    asking.line.close()
    with pytest.raises(RuntimeError, match="only be used during the call"):
        passages.body(2)


def test_a_deadline_is_told_by_the_clock_of_each_process() -> None:
    seen: list[int | None] = []

    class Relevance:
        def score(self, query: str, texts: list[str], deadline_ns: int | None) -> Any:
            seen.append(deadline_ns)
            return np.ones(len(texts))

    class Store:
        relevance = Relevance()

        def __getattr__(self, name: str) -> Any:
            return None

    store = Asking(Store()).store
    before = query_ns() + 10**9
    store.relevance.score("q", ["a"], before)
    store.relevance.score("q", ["a"], None)
    told, none = seen
    assert told is not None
    assert before <= told <= query_ns() + 10**9
    assert none is None
