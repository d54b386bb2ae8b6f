"""The channel that finds what the query names."""

from __future__ import annotations

from typing import cast

import pytest
from components.asking import query, scores

from speckit_memory.channels.identifier import Identifier, IdentifierParams, at_paths, identifiers
from speckit_memory.memory.indexing import Analyser
from speckit_memory.pipeline.ports import Filter, Store
from speckit_memory.pipeline.testing import FakeStore, Memory

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
    found = Identifier(IdentifierParams(max_memories=3)).search(query("Why E113, e114 and SHA256?"), 10, STORE)

    # E113 stands in 2 memories and counts 1/2, e114 in 1, sha256 in 3.
    # memory 2: s = 1/2 + 1 = 3/2, s / (1 + s) = 3/5; memory 1: (1/2) / (3/2) = 1/3; the rest: (1/3) / (4/3) = 1/4
    assert scores(found) == {2: 0.6, 1: 0.333333, 3: 0.25, 4: 0.25, 5: 0.25}


def test_an_identifier_of_too_many_memories_finds_nothing() -> None:
    found = Identifier(IdentifierParams(max_memories=2)).search(query("sha256 or E114"), 10, STORE)

    assert scores(found) == {2: 0.5}


@pytest.mark.parametrize("text", ["reader raises sums", "2026", "Reader", "E999", ""])
def test_words_numbers_and_unknown_identifiers_find_nothing(text: str) -> None:
    assert scores(Identifier(IdentifierParams(max_memories=9)).search(query(text), 10, STORE)) == {}


def test_only_what_the_asker_may_see_is_found() -> None:
    channel = Identifier(IdentifierParams(max_memories=2))

    # 1/2 / (3/2): the deprecated memory 6 holds it as well
    assert scores(channel.search(query("E200"), 10, STORE)) == {3: 0.333333}
    assert scores(channel.search(query("E200", wanted=Filter(folder="reading")), 10, STORE)) == {}
    assert scores(channel.search(query("E113"), 1, STORE)) == {1: 0.333333}


REFERENCES = FakeStore(
    *(Memory(i, f"Part {i}", ("see #4711 and 2026",)) for i in range(1, 4)),
    Memory(4, "Elsewhere", ("nothing",)),
)


@pytest.mark.requirement("C3")
def test_a_reference_may_stand_in_several_memories() -> None:
    found = Identifier(IdentifierParams(max_reference_memories=3)).search(query("what about #4711?"), 10, REFERENCES)

    # 4711 stands in 3 memories: (1/3) / (4/3) = 1/4
    assert scores(found) == {1: 0.25, 2: 0.25, 3: 0.25}
    assert scores(Identifier(IdentifierParams()).search(query("4711 or 2026?"), 10, REFERENCES)) == {}
    assert (
        scores(
            Identifier(IdentifierParams(max_reference_memories=2)).search(query("what about #4711?"), 10, REFERENCES)
        )
        == {}
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("REQ-006, req_006 or CVE-2021-44228?", {"req-006": True, "req_006": True, "cve-2021-44228": True}),
        ("see #4711 (C#12 is none)", {"4711": True}),
        ("computeMPAB of auth/token_store.py", {"computempab": False, "auth/token_store.py": False}),
        ("from v1.2.3 to 2.10.4 in 3.11", {"1.2.3": False, "2.10.4": False}),
        ("ＲＥＱ－００６", {"req-006": True}),
        ("UTF-8 of the plain state-of-the-art in 2026", {"utf-8": False}),
    ],
)
def test_identifiers_are_told_from_words_and_numbers(text: str, expected: dict[str, bool]) -> None:
    class Words:
        analyse = staticmethod(Analyser().tokens)

    class Real:
        lexicon = Words()

    assert identifiers(text, cast("Store", Real())) == expected


NUMBERED = FakeStore(
    Memory(1, "One", ("text",), path="docs/adr/0003-sessions"),
    Memory(2, "Two", ("adr 3",), path="docs/adr/0013-retries"),
    Memory(3, "Three", ("text",), path="spec/003-cart/what"),
    Memory(4, "Four", ("text",), path="spec/003-cart/plan"),
    Memory(5, "Five", ("text",), path="notes/2026/summary"),
)


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ADR 3", {1: 0.5}),
        # s = 1 for each
        ("adr-003 or adr/13?", {1: 0.5, 2: 0.5}),
        # two memories: (1/2) / (3/2) = 1/3
        ("spec 03", {3: 0.333333, 4: 0.333333}),
        ("adr 3.11, adr 3-4 and adr 33, 3 adr, retries 3", {}),
        ("notes 2026", {}),
    ],
)
def test_a_word_and_a_number_name_what_has_both_in_its_path(text: str, expected: dict[int, float]) -> None:
    assert scores(Identifier(IdentifierParams()).search(query(text), 10, NUMBERED)) == expected


@pytest.mark.requirement("C3")
def test_a_long_line_of_assignments_is_gone_through_once_for_paths() -> None:
    assert list(at_paths(f"/ {'a=' * 100_000}", NUMBERED)) == []


@pytest.mark.requirement("C2", "C3")
def test_what_a_pasted_text_refers_to_finds_nothing() -> None:
    channel = Identifier(IdentifierParams(max_words=4))

    assert scores(channel.search(query("raised as of E114"), 10, STORE)) == {2: 0.5}
    assert scores(channel.search(query("that is raised as E114"), 10, STORE)) == {}
