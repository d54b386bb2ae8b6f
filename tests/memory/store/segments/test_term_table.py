"""Terms found in a hash table that lies in a file."""

from __future__ import annotations

from io import BytesIO
from itertools import product
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from speckit_memory.memory.store.segment_files.container import Container, FileWriter
from speckit_memory.memory.store.segment_files.term_table import MOST_ASKED, HashedTerms, TermTable
from speckit_memory.memory.store.segment_writing.runs import Runs
from speckit_memory.memory.store.segment_writing.spill import Spill

pytestmark = pytest.mark.requirement("P10")


def _table(folder: Path, terms: list[str]) -> TermTable:
    with Spill(BytesIO()) as spill, FileWriter(folder / "a.seg") as writer:
        runs = Runs(spill)
        runs.add(terms)
        runs.write_terms(writer, "words")
        writer.finish({})
    return TermTable(Container.open(folder / "a.seg"), "words")


@pytest.mark.parametrize(
    "terms",
    [[], ["one"], ["", "a", "aa"], ["été", "ß", "漢字", "😀"], [f"term{number}" for number in range(3_000)]],
    ids=["none", "one", "beginnings", "more than ASCII", "thousands"],
)
def test_every_term_has_its_number_and_no_other_has_one(tmp_path: Path, terms: list[str]) -> None:
    table = _table(tmp_path, terms)
    ordered = sorted(terms, key=str.encode)
    assert list(table) == ordered
    assert len(table) == len(ordered)
    for number, term in enumerate(ordered):
        assert table.get(term) == number
        assert table.name(number) == term
    others = ["absent", "term", "term3000", "\ud800", "a" * 100_000]
    for other in others:
        assert table.get(other) is None
    asked = [*others, *ordered]
    assert list(table.known(HashedTerms(asked))) == ordered


def test_terms_that_share_a_bucket_are_told_apart(tmp_path: Path) -> None:
    letters = ("".join(word) for word in product("abcdefgh", repeat=5))
    # So few buckets as there will be: the low bits of all these are the same.
    alike = [word for word in letters if crc32(word.encode()) & 0x7F == 5][:60]
    assert len(alike) == 60
    table = _table(tmp_path, alike[::2])
    assert [table.get(word) for word in sorted(alike[::2])] == list(range(30))
    assert {table.get(word) for word in alike[1::2]} == {None}


def test_what_was_asked_for_is_forgotten_at_last(tmp_path: Path) -> None:
    table = _table(tmp_path, ["known"])
    for number in range(2 * MOST_ASKED):
        assert table.get(f"other{number}") is None
    assert table.get("known") == 0
    assert len(table._asked) <= MOST_ASKED


def test_the_arrays_are_read_where_they_lie(tmp_path: Path) -> None:
    _table(tmp_path, ["a", "b"])
    held = Container.open(tmp_path / "a.seg")
    buckets = held.array("words.buckets")
    assert buckets[-1] == 2
    assert np.log2(len(buckets) - 1) % 1 == 0
    assert sorted(held.array("words.hashed")) == [0, 1]
