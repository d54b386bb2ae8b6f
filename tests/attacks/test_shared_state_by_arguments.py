"""Arguments that lie, change later or write into what they are shown: the store remembers nothing of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from frame.observed import NOW, plain, searches
from storing.project import living
from tally import Tally

from speckit_memory.channels.degree import RELATION_WEIGHTS
from speckit_memory.engine import Memory
from speckit_memory.pipeline.ports import FIELDS, Filter

WEIGHTS = (10.0, 5.0, 2.0, 1.0)
FEW = ("default", "cross-encoder"), (1, 3, 9, 27)
EVERY = np.arange(1, 60)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with living(tmp_path_factory.mktemp("project"), NOW) as opened:
        yield opened


class Liar(str):
    """Has the characters of one text, and the hash and the equality of another."""

    __slots__ = ("_taken",)
    _taken: str

    @classmethod
    def of(cls, text: str, taken_for: str) -> Liar:
        liar = cls(text)
        liar._taken = taken_for
        return liar

    def __hash__(self) -> int:
        return hash(self._taken)

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    def __str__(self) -> str:
        return self


class Weights(dict[str, float]):
    """Lists other weights than it gives."""

    def get(self, key: str, default: Any = None) -> Any:
        return 0.0


class Writer:
    """A scope that writes into the ids that it is asked about."""

    complete = False

    def __init__(self, size: int) -> None:
        self.size = size

    def admits(self, ids: np.ndarray) -> np.ndarray:
        for array in (ids, ids.base):
            if isinstance(array, np.ndarray):
                with suppress(ValueError):
                    array.setflags(write=True)
                np.add.at(array, slice(None), 100)  # type: ignore[arg-type]
        return np.ones(len(ids), np.bool_)


class Grasping:
    """Stands for an array, and writes into every array that numpy shows it."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.shape, self.dtype, self.ndim, self.size = array.shape, array.dtype, array.ndim, array.size

    def __len__(self) -> int:
        return len(self._array)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        return self._array

    def any(self) -> bool:
        return True

    def astype(self, *_: Any, **__: Any) -> Grasping:
        return self

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        return function(*self._spoilt(arguments), **keywords)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        return getattr(ufunc, method)(*self._spoilt(inputs), **keywords)

    def _spoilt(self, arguments: Any) -> list[Any]:
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                np.add.at(argument, slice(None), 1)  # type: ignore[arg-type]
        return [argument._array if argument is self else argument for argument in arguments]


def lies(s: Any) -> None:
    liar = Liar.of
    s.attributes.of_tier(liar("important", "critical"))
    s.attributes.of_tier(liar("none", "constitutional"))
    for term in ("gateway", "payment", "rank"):
        for field in FIELDS:
            s.lexicon.index(field).postings(liar("nowhere", term))
        s.lexicon.index("body", "chunk").adjacent(liar("no", term), liar("where", "gateway"))
    s.lexicon.index(liar("title", "body"))
    s.fulltext.match(
        [liar("quokka", "payment"), liar("quokka", "gateway")], WEIGHTS, 20, s.attributes.scope(Filter(), NOW)
    )
    s.graph.in_edges(EVERY, liar("void", "supersedes"))
    s.graph.degrees({liar("void", "supersedes"): 3.0})
    s.tokens.of_text(liar("quokka", "payment gateway retries"))
    s.vectors.embed(liar("quokka", "payment gateway retries"))
    s.attributes.scope(Filter(folder=liar("docs", "")), NOW)
    s.attributes.scope(Filter(tier=liar("critical", "")), NOW)


def changes_afterwards(s: Any) -> None:
    changed: dict[str, object] = {"folder": "specs", "tier": "", "folders": ("docs",), "memories": (1,)}
    undone: dict[str, object] = {"folder": "", "folders": (), "memories": None}
    for wanted in (Filter(), Filter(folder="docs/gateway")):
        s.attributes.scope(wanted, NOW)
        for name, value in changed.items():
            object.__setattr__(wanted, name, value)
        s.attributes.scope(wanted, NOW)
        for name, value in undone.items():
            object.__setattr__(wanted, name, value)
    folders = ["docs/old"]
    s.attributes.scope(Filter(folders=folders), NOW)  # type: ignore[arg-type]
    folders[:] = []
    weights = [np.array(weight) for weight in (0.0, 0.0, 0.0, 1.0)]
    s.fulltext.match(("payment", "gateway"), tuple(weights), 20, s.attributes.scope(Filter(), NOW))
    for held, weight in zip(weights, WEIGHTS, strict=True):
        held[...] = weight
    held = np.array(0.1)
    s.graph.degrees({"supersedes": held})
    held[...] = 1.5


def lists_other_weights(s: Any) -> None:
    s.graph.degrees(Weights(RELATION_WEIGHTS))


def writes_into_what_it_is_asked(s: Any) -> None:
    vector = s.vectors.embed("payment gateway")
    for size in (0, 1, 5, 10**6):
        for level in ("memory", "chunk"):
            s.vectors.nearest(vector, 10, Writer(size), level)
        s.fulltext.match(("payment", "gateway"), WEIGHTS, 10, Writer(size))
        s.fulltext.match(("importer",), WEIGHTS, 2000, Writer(size))


def grasps(s: Any) -> None:
    ids, vector = Grasping(EVERY.copy()), Grasping(s.vectors.embed("payment gateway"))
    scope = s.attributes.scope(Filter(), NOW)
    few = s.attributes.scope(Filter(folder="specs"), NOW)
    works: tuple[Callable[[], Any], ...] = (
        lambda: s.vectors.nearest(vector, 10, scope, "memory"),
        lambda: s.vectors.nearest(vector, 10, few, "chunk"),
        lambda: s.vectors.vectors(ids),
        lambda: s.tokens.of_passages(ids),
        lambda: s.tokens.weights(ids),
        lambda: s.tokens.vectors(ids),
        lambda: s.attributes.parents(ids),
        lambda: s.attributes.number("created_at", ids),
        lambda: s.attributes.label("key", ids),
        lambda: s.attributes.neighbours(ids),
        lambda: s.attributes.scope(Filter(), Grasping(np.array(NOW))),
        lambda: s.attributes.scope(Filter(memories=ids), NOW),  # type: ignore[arg-type]
        lambda: s.lexicon.index("body").rows_of(ids),
        lambda: s.lexicon.index("body").holding("payment", ids),
        lambda: s.graph.regions(ids),
        lambda: s.graph.in_edges(ids, "supersedes"),
        lambda: s.sessions.attention("conversation", ids, NOW),
        lambda: scope.admits(ids),
    )
    for work in works:
        with suppress(Exception):
            work()


def asks_for_views(s: Any) -> None:
    """What is no array of numbers may make a view of a copy."""
    for index in (slice(None), Ellipsis, None, 5, True, (), (slice(None),), np.newaxis, np.s_[::2]):
        for work in (s.tokens.vectors, s.tokens.weights, s.tokens.of_passages, s.vectors.vectors, s.attributes.parents,
                     s.lexicon.index("body").rows_of, s.attributes.neighbours, s.graph.regions):  # fmt: skip
            with suppress(Exception):
                for answer in np.atleast_1d(work(index)):
                    np.asarray(answer)[...] = 0
            with suppress(Exception):
                found = work(index)
                found[...] = 0
        for name in ("created_at", "characters"):
            with suppress(Exception):
                s.attributes.number(name, index)[...] = 0


def fails_the_cross_encoder(s: Any) -> None:
    for texts in ([object()], [None], 7, [b"bytes"], ["x", 3]):
        for query in ("gateway", None, 5):
            with suppress(TypeError):
                s.relevance.score(query, texts, None)


WAYS = [lies, changes_afterwards, lists_other_weights, writes_into_what_it_is_asked, grasps, asks_for_views,
        fails_the_cross_encoder]  # fmt: skip


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("way", WAYS, ids=[way.__name__ for way in WAYS])
def test_nothing_that_the_store_was_asked_changes_what_it_answers_others(
    tally: Tally, memory: Memory, way: Callable[[Any], None], warm: bool
) -> None:
    """Asked before anybody has searched a state of the store, when nothing is kept yet, and afterwards."""
    expected = searches(memory, *FEW)
    if not warm:
        memory.session.opened.read_model._snapshot = None  # the next search reads the store anew
        memory.session.view().lexicon.index("body")
    way(memory.session.view())
    tally.tried(len(WAYS))

    assert searches(memory, *FEW) == expected


def test_what_was_kept_for_a_liar_is_not_found_by_others(tally: Tally, memory: Memory) -> None:
    memory.session.opened.read_model._snapshot = None
    store = memory.session.view()
    lies(store)
    got = (
        [store.attributes.of_tier(tier) for tier in ("critical", "constitutional")],
        store.graph.in_edges(EVERY, "supersedes"),
    )
    memory.session.opened.read_model._snapshot = None
    store = memory.session.view()
    tally.tried(3)
    assert plain(got) == plain(
        (
            [store.attributes.of_tier(t) for t in ("critical", "constitutional")],
            store.graph.in_edges(EVERY, "supersedes"),
        )
    )
