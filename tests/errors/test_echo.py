"""How messages word counts."""

from __future__ import annotations

import pytest

from speckit_memory.errors.echo import plural


@pytest.mark.parametrize(
    ("count", "noun", "words"),
    [(1, "link", "1 link"), (2, "link", "2 links"), (1_200, "memory", "1,200 memories"), (0, "day", "0 days")],
)
def test_a_count_has_the_plural_of_its_noun(count: int, noun: str, words: str) -> None:
    assert plural(count, noun) == words
