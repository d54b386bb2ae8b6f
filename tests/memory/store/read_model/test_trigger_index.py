from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.memory.store.read_model.facts.trigger_index import Entry, TriggerIndex

PHRASES = ("rank fusion", "straße".casefold(), "über", "x")
entries = st.lists(st.tuples(st.integers(1, 5), st.sampled_from(PHRASES)), unique=True, max_size=12)


def authored(*pairs: tuple[int, str]) -> list[Entry]:
    return [(memory, phrase, 1.0, None) for memory, phrase in pairs]


def found(index: TriggerIndex, text: str, now: float = 0.0) -> list[tuple[int, float]]:
    memories, weights = index.matches(text, now)
    return list(zip(memories.tolist(), weights.tolist(), strict=True))


def test_a_text_is_a_trigger_when_it_is_a_whole_phrase_whatever_its_case_or_composition() -> None:
    index = TriggerIndex(authored((1, "rank fusion"), (2, "strasse"), (2, "über")))
    asked = ["Rank  FUSION", "rank", "rank fusion now", "STRAßE", "u\u0308ber", ""]
    assert [index.exact(text) for text in asked] == [True, False, False, True, True, False]


@given(entries, st.sets(st.integers(1, 5)), entries)
def test_a_phrase_is_known_while_any_memory_has_it(
    before: list[tuple[int, str]], outdated: set[int], put: list[tuple[int, str]]
) -> None:
    put = [entry for entry in put if entry[0] in outdated]
    old = TriggerIndex(authored(*before))
    new = old.replaced(outdated, authored(*put))
    kept = [entry for entry in before if entry[0] not in outdated]
    assert {phrase for phrase in PHRASES if new.exact(phrase)} == {phrase for _, phrase in kept + put}
    text = " ".join(PHRASES)
    assert found(new, text) == [(memory, 1.0) for memory in sorted(memory for memory, _ in kept + put)]
    assert found(old, text) == [(memory, 1.0) for memory in sorted(memory for memory, _ in before)]
    assert {phrase for phrase in PHRASES if old.exact(phrase)} == {phrase for _, phrase in before}


@pytest.mark.requirement("C7.whole")
@pytest.mark.parametrize(
    ("phrase", "text", "stands"),
    [
        ("rank fusion", "Explain RANK  fusion, please", True),
        ("rank fusion", "rank fusions", False),
        ("rank fusion", "frank fusion", False),
        ("c++", "c++ templates", True),
        ("c++", "c+", False),
        ("user_id", "the user_id column", True),
        ("user", "the user_id column", False),
        ("記憶", "長期記憶について", True),
        ("über", "u\u0308ber alles", True),
        ("हिन", "हिन्दी", False),
        ("\u0301x", "\u0301x", True),
        ("हिन्दी", "हिन्दी में", True),
        ("na\u00efve", "NAI\u0308VE", True),
    ],
)
def test_a_phrase_stands_in_a_text_between_word_borders(phrase: str, text: str, stands: bool) -> None:
    assert found(TriggerIndex(authored((4, phrase))), text) == ([(4, 1.0)] if stands else [])


@pytest.mark.requirement("C7")
def test_learned_phrases_weigh_less_expire_and_count_once_per_memory() -> None:
    index = TriggerIndex(
        [
            (9, "fusion", 0.7, 50.0),
            (2, "fusion", 1.0, None),
            (2, "fusion", 0.7, 50.0),
            (2, "rank", 1.0, None),
        ]
    )
    assert found(index, "fusion of fusion, rank", now=50.0) == [(2, 1.0), (2, 1.0), (9, 0.7)]
    assert found(index, "fusion", now=51.0) == [(2, 1.0)]
    assert found(index, "") == []
