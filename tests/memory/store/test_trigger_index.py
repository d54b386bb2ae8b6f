from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory.store.trigger_index import TriggerIndex

PHRASES = ("rank fusion", "straße".casefold(), "über", "x")
entries = st.lists(st.tuples(st.integers(1, 5), st.sampled_from(PHRASES)), unique=True, max_size=12)


def test_a_text_is_a_trigger_when_it_is_a_whole_phrase_whatever_its_case_or_composition() -> None:
    index = TriggerIndex([(1, "rank fusion"), (2, "strasse"), (2, "über")])
    asked = ["Rank  FUSION", "rank", "rank fusion now", "STRAßE", "u\u0308ber", ""]
    assert [index.exact(text) for text in asked] == [True, False, False, True, True, False]


@given(entries, st.sets(st.integers(1, 5)), entries)
def test_a_phrase_is_known_while_any_memory_has_it(
    before: list[tuple[int, str]], outdated: set[int], put: list[tuple[int, str]]
) -> None:
    put = [entry for entry in put if entry[0] in outdated]
    old = TriggerIndex(before)
    new = old.replaced(outdated, put)
    kept = [entry for entry in before if entry[0] not in outdated]
    assert {phrase for phrase in PHRASES if new.exact(phrase)} == {phrase for _, phrase in kept + put}
    assert {phrase for phrase in PHRASES if old.exact(phrase)} == {phrase for _, phrase in before}
