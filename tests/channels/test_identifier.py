"""The channel that finds what the query names."""

from __future__ import annotations

import pytest
from components.asking import query, scores
from components.fake_store import FakeStore, Memory

from channels.identifier import Identifier, IdentifierParams
from pipeline.model import Filter

STORE = FakeStore(
    Memory(1, "E113", ("the reader refuses it",)),
    Memory(2, "Reader", ("raises E113 or E114",)),
    Memory(3, "Writer", ("raises E200 and sha256 sums",), folder="writing"),
    Memory(4, "Sums", ("sha256 sums",)),
    Memory(5, "More sums", ("sha256 again",)),
    Memory(6, "Old", ("E200",), tier="deprecated"),
)


@pytest.mark.requirement("C2", "C3")
def test_the_rarer_an_identifier_the_more_it_counts() -> None:
    found = Identifier(IdentifierParams(most_memories=3)).search(query("Why E113, e114 and SHA256?"), 10, STORE)

    # E113 stands in 2 memories and counts 1/2, e114 in 1, sha256 in 3.
    # memory 2: s = 1/2 + 1 = 3/2, s / (1 + s) = 3/5; memory 1: (1/2) / (3/2) = 1/3; the rest: (1/3) / (4/3) = 1/4
    assert scores(found) == {2: 0.6, 1: 0.333333, 3: 0.25, 4: 0.25, 5: 0.25}


def test_an_identifier_of_too_many_memories_finds_nothing() -> None:
    found = Identifier(IdentifierParams(most_memories=2)).search(query("sha256 or E114"), 10, STORE)

    assert scores(found) == {2: 0.5}


@pytest.mark.parametrize("text", ["reader raises sums", "2026", "Reader", "E999", ""])
def test_words_numbers_and_unknown_identifiers_find_nothing(text: str) -> None:
    assert scores(Identifier(IdentifierParams(most_memories=9)).search(query(text), 10, STORE)) == {}


def test_only_what_the_asker_may_see_is_found() -> None:
    channel = Identifier(IdentifierParams(most_memories=2))

    # 1/2 / (3/2): the deprecated memory 6 holds it as well
    assert scores(channel.search(query("E200"), 10, STORE)) == {3: 0.333333}
    assert scores(channel.search(query("E200", wanted=Filter(folder="reading")), 10, STORE)) == {}
    assert scores(channel.search(query("E113"), 1, STORE)) == {1: 0.333333}
