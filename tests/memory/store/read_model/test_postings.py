from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from storing.indexes import index_of

from speckit_memory.memory.store.read_model.words.late_entries import MOST_TOGETHER, LateTexts
from speckit_memory.memory.store.read_model.words.term_index import HOLE, PostingsIndex
from speckit_memory.pipeline.ports import Postings

WORDS = ("a", "b", "c", "日本", "c++", "")
tokens = st.lists(st.sampled_from(WORDS), max_size=6)
entries = st.dictionaries(st.integers(1, 30), tokens, max_size=10)
Steps = Sequence[tuple[str, int, list[str]]]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 30), tokens),
        st.tuples(st.just("remove"), st.integers(1, 30), st.just([])),
        st.tuples(st.just("ask"), st.just(0), st.lists(st.sampled_from(WORDS), max_size=3)),
    ),
    max_size=40,
)


def said(entries: Iterable[tuple[int, Sequence[str]]]) -> Iterator[tuple[int, str]]:
    """Entries as an index takes them."""
    return ((id_, "".join(f" {word}" for word in words)) for id_, words in entries)


def made(entries: Iterable[tuple[int, Sequence[str]]] = (), *, ordered: bool = False) -> PostingsIndex:
    return index_of(entries, ordered=ordered)


def late(*entries: tuple[int, Sequence[str]]) -> LateTexts:
    texts = tuple(text for _, text in said(entries))
    ids = np.array([id_ for id_, _ in entries], np.int64)
    return LateTexts.of(ids, texts)


def contents(index: PostingsIndex) -> dict[str, dict[int, float]]:
    """Ids and frequencies of every word."""
    found = {word: index.postings(word) for word in WORDS}
    return {
        word: dict(zip(index.ids[postings.rows].tolist(), postings.frequency.tolist(), strict=True))
        for word, postings in found.items()
    }


def expected(documents: dict[int, list[str]]) -> dict[str, dict[int, float]]:
    return {
        word: {id_: float(Counter(words)[word]) for id_, words in documents.items() if word in words} for word in WORDS
    }


def plain(postings: Postings) -> tuple[list[int], list[float]]:
    return postings.rows.tolist(), postings.frequency.tolist()


def test_a_built_index_knows_rows_and_frequencies_of_each_term() -> None:
    index = made([(7, ["x", "y", "x"]), (3, ["y"]), (5, [])])
    assert (index.ids.tolist(), index.lengths.tolist(), index.count) == ([7, 3, 5], [3.0, 1.0, 0.0], 3)
    assert plain(index.postings("x")) == ([0], [2.0])
    assert plain(index.postings("y")) == ([0, 1], [1.0, 1.0])
    assert plain(index.postings("z")) == ([], [])


def test_the_row_of_an_entry_follows_every_change() -> None:
    asked = np.array([3, 9, 7, -1, 0, 5, 99])
    index = made([(7, ["x"]), (3, ["y"]), (5, [])])
    assert index.rows_of(asked).tolist() == [1, -1, 0, -1, -1, 2, -1]
    changed = index.copy()
    changed.add(late((9, ["x"])))
    assert changed.rows_of(asked).tolist() == [1, 3, 0, -1, -1, 2, -1]
    changed.remove([7])
    assert changed.rows_of(asked).tolist() == [1, 3, -1, -1, -1, 2, -1]
    changed.remove([5])
    assert changed.rows_of(asked).tolist() == [1, 3, -1, -1, -1, -1, -1]
    assert index.rows_of(asked).tolist() == [1, -1, 0, -1, -1, 2, -1]
    assert made().rows_of(asked).tolist() == [-1] * 7


def test_an_empty_index_answers_everything_with_nothing() -> None:
    index = made()
    assert (index.ids.tolist(), index.lengths.tolist(), index.count) == ([], [], 0)
    assert plain(index.postings("x")) == ([], [])


@pytest.mark.requirement("C3.incremental")
@given(entries, steps)
def test_an_index_holds_what_was_added_and_not_removed(start: dict[int, list[str]], changes: Steps) -> None:
    documents = dict(start)
    index = made(start.items())
    for kind, id_, words in changes:
        if kind == "ask":
            for word in words:
                index.postings(word)
        else:
            index.remove([id_])
            documents.pop(id_, None)
            if kind == "add":
                index.add(late((id_, words)))
                documents[id_] = words
    assert contents(index) == expected(documents)
    live = index.ids != HOLE
    assert dict(zip(index.ids[live].tolist(), index.lengths[live].tolist(), strict=True)) == {
        id_: float(len(words)) for id_, words in documents.items()
    }
    assert not index.lengths[~live].any()
    assert index.count == len(documents)
    for word in WORDS:
        rows = index.postings(word).rows
        assert np.all(np.diff(rows) > 0)
        assert not np.shares_memory(index.postings(word).rows, rows)


@given(entries, steps, steps)
def test_a_copy_changes_without_the_original(start: dict[int, list[str]], before: Steps, after: Steps) -> None:
    def apply(index: PostingsIndex, changes: Steps) -> None:
        for kind, id_, words in changes:
            if kind == "ask":
                for word in words:
                    index.postings(word)
            else:
                index.remove([id_])
                if kind == "add":
                    index.add(late((id_, words)))

    original = made(start.items())
    apply(original, before)
    twin = made(start.items())
    apply(twin, before)
    first, second = original.copy(), original.copy()
    apply(first, after)
    second.add(late((99, ["a", "b", "a"])))
    assert contents(original) == contents(twin)
    assert (original.ids.tolist(), original.lengths.tolist(), original.count) == (
        twin.ids.tolist(),
        twin.lengths.tolist(),
        twin.count,
    )


def test_additions_lie_in_few_parts_and_no_large_one_is_moved() -> None:
    there, added = 2 * MOST_TOGETHER, 3 * MOST_TOGETHER
    index = made((id_, ["x"]) for id_ in range(there))
    for id_ in range(there, there + added):
        index.add(late((id_, ["x"])))
        assert max(part.entries for part in index._late) <= MOST_TOGETHER
        assert len(index._late) <= added // MOST_TOGETHER + MOST_TOGETHER.bit_length()
    assert sum(part.entries for part in index._late) == added
    assert len(index.postings("x").rows) == there + added


def test_postings_belong_to_who_asked_whether_or_not_they_changed() -> None:
    index = made([(1, ["x", "y"])])
    index.add(late((2, ["x"])))
    for _ in range(2):
        assert (plain(index.postings("x")), plain(index.postings("y"))) == (([0, 1], [1.0, 1.0]), ([0], [1.0]))
        for column in (*_columns(index.postings("x")), *_columns(index.postings("y")), index.ids, index.lengths):
            np.add.at(column, 0, 9)  # writes into read-only arrays as well
            column[0] = 9


def _columns(postings: Postings) -> tuple[np.ndarray, np.ndarray]:
    return postings.rows, postings.frequency


def test_a_published_index_is_changed_by_way_of_a_copy() -> None:
    index = made([(1, ["x"])]).published()
    changes: tuple[Callable[[], None], ...] = (
        lambda: index.add(late((2, ["x"]))), lambda: index.remove([1]), lambda: index.remove([99]),
    )  # fmt: skip
    for change in changes:
        with pytest.raises(TypeError, match="take a copy"):
            change()
    twin = index.copy()
    twin.add(late((2, ["x"])))
    assert (plain(index.postings("x")), plain(twin.postings("x"))) == (([0], [1.0]), ([0, 1], [1.0, 1.0]))


def test_an_entry_cannot_be_added_twice() -> None:
    index = made([(1, ["x"])])
    with pytest.raises(ValueError, match=r"in the index already: \[1\]"):
        index.add(late((1, ["y"])))
    assert plain(index.postings("y")) == ([], [])


def test_removing_an_unknown_entry_changes_nothing() -> None:
    index = made([(1, ["x"]), (2, ["x"]), (3, ["y"]), (4, ["y"])])
    index.remove([2])
    index.remove([2])
    index.remove([HOLE])
    assert (index.count, plain(index.postings("x"))) == (3, ([0], [1.0]))


def test_words_in_a_row_are_found_within_an_entry_and_not_across_entries() -> None:
    index = made([(7, ["x", "y", "x"]), (3, []), (5, ["x", "x"]), (9, ["y"])], ordered=True)
    found = {(a, b): index.ids[index.adjacent(a, b)].tolist() for a in "xyz" for b in "xyz"}
    assert {pair: ids for pair, ids in found.items() if ids} == {("x", "y"): [7], ("y", "x"): [7], ("x", "x"): [5]}


def test_an_index_without_order_says_so() -> None:
    with pytest.raises(ValueError, match="order of its words"):
        made([(1, ["x", "y"])]).adjacent("x", "y")


@given(entries, steps)
def test_words_in_a_row_are_found_after_any_changes(start: dict[int, list[str]], changes: Steps) -> None:
    documents = dict(start)
    index = made(start.items(), ordered=True)
    for kind, id_, words in changes:
        index = index.copy()
        index.remove([id_])
        documents.pop(id_, None)
        if kind == "add":
            index.add(late((id_, words)))
            documents[id_] = words
    for first in WORDS:
        for second in WORDS:
            rows = index.adjacent(first, second)
            holders = {id_ for id_, words in documents.items() if (first, second) in pairwise(words)}
            assert set(index.ids[rows].tolist()) == holders
            assert np.all(np.diff(rows) > 0)


def test_many_additions_keep_the_order_of_words() -> None:
    index = made([(1, ["x", "gone", "y"]), (2, ["x", "y"])], ordered=True)
    for id_ in range(3, 1_010):
        index.add(late((id_, ["x", f"only{id_}", "y"] if id_ % 2 else ["x", "y"])))
    index.remove([1])
    found = set(index.ids[index.adjacent("x", "y")].tolist())
    assert found == {id_ for id_ in range(2, 1_010) if id_ % 2 == 0}
    assert index.ids[index.adjacent("only1003", "y")].tolist() == [1003]
    assert not len(index.adjacent("x", "gone"))


@given(st.lists(st.lists(tokens, max_size=3), max_size=8), st.integers(0, 2))
def test_an_entry_of_several_texts_holds_the_words_of_all(texts_of: list[list[list[str]]], first: int) -> None:
    """Whatever the order of the texts, as those of a memory's passages may be in any."""
    index = made([(id_, ["a"]) for id_ in range(100, 100 + first)])
    flat = [(entry, text) for entry, texts in enumerate(texts_of) for text in texts][::-1]
    texts = tuple("".join(f" {word}" for word in text) for _, text in flat)
    entries = np.array([entry for entry, _ in flat], np.int64)
    numbered = LateTexts.of(np.arange(len(texts)), texts)
    index.add(numbered._replace(ids=np.arange(len(texts_of)), entry_of_text=entries))
    documents = {id_: [word for text in said_ for word in text] for id_, said_ in enumerate(texts_of)}
    earlier = {id_: ["a"] for id_ in range(100, 100 + first)}
    assert contents(index) == expected(documents | earlier)
    assert index.lengths.tolist() == [1.0] * first + [float(len(words)) for words in documents.values()]
