from __future__ import annotations

import pytest

from speckit_memory.memory.intake.contradictions import PATTERNS, contradiction

OLD = "The cache of answers lives in Redis. Tokens expire after one hour."


@pytest.mark.requirement("M6.patterns")
def test_the_eight_patterns_have_the_confidences_of_the_catalogue() -> None:
    assert {pattern.name: pattern.confidence for pattern in PATTERNS} == {
        "clarification": 0.45, "replacement": 0.55, "negation": 0.60, "prohibition": 0.65,
        "correction": 0.70, "deprecation": 0.75, "obsolescence": 0.80, "explicit": 0.85,
    }  # fmt: skip


@pytest.mark.requirement("M6.patterns")
@pytest.mark.parametrize(
    ("pattern", "positive", "near_miss"),
    [
        ("explicit", "This contradicts what the cache of answers did.", "The contract of the cache of answers stays."),
        ("obsolescence", "The cache of answers is obsolete.", "The cache of answers holds absolute times."),
        ("deprecation", "The cache of answers is deprecated.", "The cache of answers depreciates nothing."),
        ("correction", "The cache of answers was wrong.", "The cache of answers corrects nothing by itself."),
        ("prohibition", "You must not fill the cache of answers.", "You must fill the cache of answers."),
        ("negation", "The cache of answers does not live there.", "The cache of answers does live there."),
        ("replacement", "The cache of answers replaced it.", "The cache of answers has its place."),
        ("clarification", "More precisely, the cache of answers lives.", "Now precisely the cache of answers lives."),
    ],
)
def test_each_pattern_is_found_and_its_near_miss_is_not(pattern: str, positive: str, near_miss: str) -> None:
    found = contradiction(positive, OLD)

    assert found is not None
    assert (found.pattern, found.sentence) == (pattern, positive)
    assert contradiction(near_miss, OLD) is None


@pytest.mark.requirement("M6.patterns")
def test_only_a_clarification_takes_nothing_back() -> None:
    sure = [pattern.name for pattern in PATTERNS if pattern.confidence >= 0.5]

    assert sure == [pattern.name for pattern in PATTERNS if pattern.name != "clarification"]
    found = contradiction("More precisely, the cache of answers lives.", OLD)
    assert found is not None
    assert not found.counts


@pytest.mark.requirement("M6.patterns")
@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("The moon is not made of cheese.", OLD),  # of something else
        ("The cache of answers does not live long.", "The cache of answers does not live there."),  # nor did it before
        (f"{OLD} They must never be logged.", f"{OLD} They must never be logged."),  # nothing new
        ("", OLD),
        ("The cache of answers is obsolete.", ""),
    ],
)
def test_words_of_contradiction_prove_nothing_by_themselves(new: str, old: str) -> None:
    assert contradiction(new, old) is None


@pytest.mark.requirement("M6.patterns")
def test_the_surest_sign_is_told() -> None:
    found = contradiction("The cache of answers is not used. The cache of answers is obsolete.", OLD)

    assert found is not None
    assert (found.pattern, found.confidence) == ("obsolescence", 0.80)
