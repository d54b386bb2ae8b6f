"""Vectors in lists: most of the nearest are found, and everything but which rows are looked at is exact."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.read_model.vectors import ivf_lists, ivf_matrix
from speckit_memory.memory.store.read_model.vectors.ivf_lists import InvertedLists
from speckit_memory.memory.store.read_model.vectors.ivf_matrix import ListedMatrix, answered_by
from speckit_memory.memory.store.read_model.vectors.matrix import VectorMatrix
from speckit_memory.pipeline.ports import Ids, Level, Vectors

pytest.importorskip("faiss")

ROWS, WIDTH, SUBJECTS = 8_000, 48, 60
rng = np.random.default_rng(55)


def unit(rows: NDArray[np.floating[Any]]) -> Vectors:
    turned: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return turned


def texts(count: int) -> Vectors:
    """Vectors as texts have them: of a few subjects each, some of which many texts share."""
    subjects = unit(np.random.default_rng(1).normal(size=(SUBJECTS, WIDTH)))
    shares = rng.gamma(0.15, size=(count, SUBJECTS)) * np.linspace(2.0, 0.5, SUBJECTS)
    return unit(shares @ subjects + 0.08 * rng.normal(size=(count, WIDTH)))


@dataclass(frozen=True)
class Some:
    """Admits the memories of a mask; ids are those of memories."""

    mask: NDArray[np.bool_]

    @property
    def size(self) -> int:
        return int(self.mask.sum())

    @property
    def complete(self) -> bool:
        return bool(self.mask.all())

    def admits(self, ids: Ids) -> NDArray[np.bool_]:
        return (ids >= 0) & self.mask[np.maximum(ids, 0)]


VECTORS = texts(ROWS)
CHUNKS = np.arange(ROWS, dtype=np.int64) + 7
PARENTS = np.arange(ROWS, dtype=np.int64) // 3
MEMORIES = len(np.unique(PARENTS))
EVERY = Some(np.ones(MEMORIES, np.bool_))
QUESTIONS = texts(60)


@pytest.fixture(scope="module")
def stored() -> NDArray[np.uint8]:
    with TemporaryFile() as file:
        ivf_lists.write(VECTORS, file)
        return np.array(np.memmap(file, np.uint8, "r"))


@pytest.fixture
def exact() -> VectorMatrix:
    return VectorMatrix(CHUNKS, PARENTS, VECTORS)


@pytest.fixture
def listed(exact: VectorMatrix, stored: NDArray[np.uint8]) -> ListedMatrix:
    return ListedMatrix(exact, InvertedLists(stored, ROWS))


def same(found: tuple[Any, ...], expected: tuple[Any, ...]) -> bool:
    return [column.tolist() for column in found] == [column.tolist() for column in expected]


def by_lists(before: int) -> bool:
    return answered_by("lists") > before


@pytest.mark.parametrize("level", ["memory", "chunk"])
def test_nearly_all_of_the_nearest_are_found_with_their_exact_similarities(
    exact: VectorMatrix, listed: ListedMatrix, level: Level
) -> None:
    shares = []
    for question in QUESTIONS:
        before = answered_by("lists")
        ids, similarities, best = listed.nearest(question, 50, EVERY, level)
        assert by_lists(before)
        meant, cosines, chunks = exact.nearest(question, 50, EVERY, level)
        known = {id_: (cosine, chunk) for id_, cosine, chunk in zip(meant, cosines, chunks, strict=True)}
        assert all(known[i] == (s, b) for i, s, b in zip(ids, similarities, best, strict=True) if i in known)
        assert np.array_equal(np.lexsort((ids, -similarities)), np.arange(50))
        shares.append(len(np.intersect1d(ids, meant)) / 50)
    assert np.mean(shares) >= 0.99
    assert min(shares) >= 0.8


def test_fewer_lists_are_read_than_there_are(listed: ListedMatrix) -> None:
    near, _ = listed._lists.near(QUESTIONS[0].astype(np.float64), ROWS)
    assert ivf_lists.list_count(ROWS) == 286
    assert 0.5 * ROWS < len(near) < ROWS


def test_no_row_of_the_lists_that_was_left_out_is_nearer(
    listed: ListedMatrix, monkeypatch: pytest.MonkeyPatch, stored: NDArray[np.uint8]
) -> None:
    monkeypatch.setattr(ivf_lists, "PROBES", 1e9)
    lists = InvertedLists(stored, ROWS)
    for question in QUESTIONS:
        rows, rest = lists.near(question.astype(np.float64), 300)
        others = np.setdiff1d(np.arange(ROWS), rows)
        assert (VECTORS[others].astype(np.float64) @ question).max() < rest


def test_all_lists_together_answer_exactly(
    exact: VectorMatrix, stored: NDArray[np.uint8], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ivf_lists, "PROBES", 1e9)
    listed = ListedMatrix(exact, InvertedLists(stored, ROWS))
    for question in QUESTIONS:
        assert same(listed.nearest(question, 50, EVERY, "memory"), exact.nearest(question, 50, EVERY, "memory"))


def test_a_filter_that_admits_few_is_answered_exactly(exact: VectorMatrix, listed: ListedMatrix) -> None:
    for share in (0.0005, 0.1, 0.6, 0.85):
        scope = Some(rng.random(MEMORIES) < share)
        scope.mask[-1] = False
        for question in QUESTIONS[:10]:
            before = answered_by("lists")
            found = listed.nearest(question, 20, scope, "memory")
            assert same(found, exact.nearest(question, 20, scope, "memory"))
            assert not by_lists(before)


def test_what_a_wide_filter_leaves_out_is_not_found(exact: VectorMatrix, listed: ListedMatrix) -> None:
    for question in QUESTIONS[:10]:
        nearest, _, _ = exact.nearest(question, 40, EVERY, "memory")
        scope = Some(~np.isin(np.arange(MEMORIES), nearest[::2]))
        before = answered_by("lists")
        found, _, _ = listed.nearest(question, 20, scope, "memory")
        assert by_lists(before)
        assert not np.isin(found, nearest[::2]).any()
        assert np.isin(nearest[1:20:2], found).all()


def test_changed_and_removed_memories_are_answered_as_they_are_now(
    exact: VectorMatrix, listed: ListedMatrix, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ivf_lists, "PROBES", 1e9)
    for question in QUESTIONS[:20]:
        nearest, _, _ = exact.nearest(question, 9, EVERY, "memory")
        gone, turned = nearest[:3], nearest[3:6]
        chunks = np.arange(len(turned), dtype=np.int64) + 10**6
        vectors = unit(np.array([question, -question, question + 0.05 * rng.normal(size=WIDTH)]))
        change = np.append(gone, turned), chunks, turned, vectors
        later = listed.replaced(*change)
        meant = exact.replaced(*change)
        assert isinstance(later, ListedMatrix)
        for level in ("memory", "chunk"):
            before = answered_by("lists")
            found = later.nearest(question, 10, EVERY, level)
            assert by_lists(before)
            assert same(found, meant.nearest(question, 10, EVERY, level))
        assert later.nearest(question, 1, EVERY, "memory")[0].tolist() == [turned[0]]
        assert later.count == meant.count
        ids = np.append(gone, turned)
        assert np.array_equal(later.vectors(ids), meant.vectors(ids))
        # the state before is as it was
        assert same(listed.nearest(question, 9, EVERY, "memory"), exact.nearest(question, 9, EVERY, "memory"))


def test_where_the_lists_run_dry_all_rows_are_compared(
    exact: VectorMatrix, stored: NDArray[np.uint8], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ivf_lists, "PROBES", 0.01)
    listed = ListedMatrix(exact, InvertedLists(stored, ROWS))
    before = answered_by("lists")
    assert same(listed.nearest(QUESTIONS[0], 900, EVERY, "memory"), exact.nearest(QUESTIONS[0], 900, EVERY, "memory"))
    assert not by_lists(before)


def test_more_rows_are_fetched_until_so_many_memories_are_there(
    stored: NDArray[np.uint8], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ivf_lists, "PROBES", 1e9)
    monkeypatch.setattr(ivf_matrix, "LEAST_FETCHED", 1)
    alike = np.zeros(ROWS, np.int64)
    alike[::4] = 1 + np.arange(ROWS // 4)  # one memory has three quarters of all passages
    exact = VectorMatrix(CHUNKS, alike, VECTORS)
    listed = ListedMatrix(exact, InvertedLists(stored, ROWS))
    for question in QUESTIONS[:10]:
        before = answered_by("lists")
        assert same(listed.nearest(question, 30, EVERY, "memory"), exact.nearest(question, 30, EVERY, "memory"))
        assert by_lists(before)


def test_who_wants_most_rows_gets_all(exact: VectorMatrix, listed: ListedMatrix) -> None:
    before = answered_by("lists")
    assert same(listed.nearest(QUESTIONS[0], ROWS, EVERY, "memory"), exact.nearest(QUESTIONS[0], ROWS, EVERY, "memory"))
    assert not by_lists(before)


def test_nothing_is_near_to_nothing_and_other_dimensions_are_refused(listed: ListedMatrix) -> None:
    assert not len(listed.nearest(np.zeros(WIDTH, np.float32), 5, EVERY, "memory")[0])
    assert not len(listed.nearest(QUESTIONS[0], 0, EVERY, "memory")[0])
    with pytest.raises(SpeckitError, match=r"E002 the query has the shape \(3,\)"):
        listed.nearest(np.ones(3, np.float32), 5, EVERY, "memory")


def test_what_no_version_of_the_library_reads_is_passed_over(exact: VectorMatrix, stored: NDArray[np.uint8]) -> None:
    listed = ListedMatrix(exact, InvertedLists(stored[5:], ROWS))
    assert same(listed.nearest(QUESTIONS[0], 5, EVERY, "memory"), exact.nearest(QUESTIONS[0], 5, EVERY, "memory"))
    assert listed.failure.startswith("the index of vectors cannot be read: ")
    with pytest.raises(RuntimeError, match="cannot be read"):
        listed._lists.near(QUESTIONS[0].astype(np.float64), 5)


def test_few_rows_have_lists_too(tmp_path: Path) -> None:
    for count in (1, 2, 40):
        with (tmp_path / "lists").open("w+b") as file:
            ivf_lists.write(VECTORS[:count], file)
        lists = InvertedLists(np.memmap(tmp_path / "lists", np.uint8, "r"), count)
        assert sorted(lists.near(VECTORS[0].astype(np.float64), 100)[0].tolist()) == list(range(count))
