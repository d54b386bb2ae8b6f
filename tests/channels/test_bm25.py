from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest
from components.asking import query, scores
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.channels.bm25 import Bm25, Bm25Params
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Filter
from speckit_memory.pipeline.roles.contracts import PipelineContext
from speckit_memory.pipeline.testing import FakeStore, Memory, words

FIELDS = {"title": 0.0, "triggers": 0.0, "path": 0.0, "body": 0.0}
HERE = PipelineContext(channels=("bm25",), scales=(Scale.BM25,), steps=("bm25",), uses=("bm25",))


def bm25(**params: Any) -> Bm25:
    return Bm25(Bm25Params.model_validate(params))


@pytest.mark.requirement("C3.formula")
def test_scores_follow_the_formula_over_combined_fields() -> None:
    # Bags: {alpha 2, beta 1} and {gamma 1, beta 2}, both of length 3, the mean, so that the denominator is tf + 1.2.
    # beta: idf = log((2 - 2 + .5)/(2 + .5) + 1) = log 1.2; alpha: idf = log((2 - 1 + .5)/(1 + .5) + 1) = log 2.
    store = FakeStore(Memory(1, "alpha", ("alpha beta",)), Memory(2, "gamma", ("beta beta",)))
    channel = bm25(fields={**FIELDS, "title": 1.0, "body": 1.0})

    found = channel.search(query("alpha beta"), 10, store)

    assert scores(found) == {
        1: round(log(2) * 2 * 2.2 / (2 + 1.2) + log(1.2) * 1 * 2.2 / (1 + 1.2), 6),
        2: round(log(1.2) * 2 * 2.2 / (2 + 1.2), 6),
    }
    assert found.scale is Scale.BM25


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(("k3", "weight"), [(0.0, 1.0), (2.0, 3 * 3 / 5), (8.0, 9 * 3 / 11), (1000.0, 1001 * 3 / 1003)])
def test_a_word_that_the_query_repeats_counts_more_up_to_k3(k3: float, weight: float) -> None:
    # One word each: idf = log 2, and tf · 2.2 / (tf + 1.2) = 1.
    store = FakeStore(Memory(1, "", ("alpha",)), Memory(2, "", ("beta",)))
    channel = bm25(fields={**FIELDS, "body": 1.0}, k3=k3)

    found = channel.search(query("beta alpha alpha gamma alpha"), 10, store)

    assert scores(found) == {1: round(weight * log(2), 6), 2: round(log(2), 6)}


def test_of_a_long_query_the_words_that_tell_most_are_searched_repeated_ones_first() -> None:
    # alpha and gamma stand in two of four memories, beta in one.
    texts = ("alpha", "alpha gamma", "beta", "gamma")
    store = FakeStore(*(Memory(number, "", (text,)) for number, text in enumerate(texts, 1)))

    def found(k3: float) -> list[int]:
        channel = bm25(fields={**FIELDS, "body": 1.0}, max_terms=1, k3=k3)
        return sorted(channel.search(query("alpha alpha alpha beta gamma unknown"), 10, store).ids.tolist())

    assert found(k3=0.0) == [3]
    assert found(k3=8.0) == [1, 2]


# Bags of two words each, so that the denominator is tf + 1.2. alpha: idf = log 1.2, beta: log 2.
@pytest.mark.parametrize(("words_more", "power"), [(0, 3.0), (1, 3.0 / 4), (2, 3.0 / 9)])
def test_a_memory_that_lacks_words_of_a_short_query_loses_by_what_it_lacks(words_more: int, power: float) -> None:
    store = FakeStore(Memory(1, "", ("alpha beta",)), Memory(2, "", ("alpha alpha",)))
    channel = bm25(fields={**FIELDS, "body": 1.0}, coordination=3.0)
    more = ["unknown", "strange"][:words_more]

    found = channel.search(query(" ".join(["alpha", "beta", *more])), 10, store)

    whole = log(1.2) + log(2) + words_more * log(6)  # nothing holds the others: (2 + .5)/.5 + 1
    assert scores(found) == {
        1: round((log(1.2) + log(2)) * ((log(1.2) + log(2)) / whole) ** power, 6),
        2: round(log(1.2) * 2 * 2.2 / 3.2 * (log(1.2) / whole) ** power, 6),
    }


def test_a_long_question_loses_nothing_for_words_that_a_memory_lacks() -> None:
    store = FakeStore(Memory(1, "alpha", ("alpha beta", "gamma")), Memory(2, "", ("alpha alpha",)))
    asked = query("alpha beta " + " ".join(f"word{number}" for number in range(20)))

    plain, coordinated = (bm25(passage=1.0, coordination=c).search(asked, 10, store) for c in (0.0, 6.0))

    assert scores(coordinated) == scores(plain)


def test_coordination_counts_for_passages_as_well() -> None:
    store = FakeStore(Memory(1, "", ("alpha", "beta")), Memory(2, "", ("alpha alpha", "alpha alpha")))

    plain = bm25(passage=1.0, fields={**FIELDS, "body": 1.0}).search(query("alpha beta"), 10, store)
    coordinated = bm25(passage=1.0, fields={**FIELDS, "body": 1.0}, coordination=2.0).search(
        query("alpha beta"), 10, store
    )

    share = log(1.2) / (log(1.2) + log(2))
    assert scores(coordinated) == pytest.approx({1: scores(plain)[1], 2: scores(plain)[2] * share**2}, abs=1e-5)


def test_coordination_needs_combined_fields() -> None:
    params = Bm25Params.model_validate({"fields": FIELDS, "passage": 1.0, "coordination": 1.0})

    assert [path for path, _ in Bm25.check(params, HERE)] == [("coordination",)]


@pytest.mark.requirement("C3.fields")
def test_a_word_of_the_title_counts_as_often_as_its_weight_says() -> None:
    title = FakeStore(Memory(1, "alpha", ("beta",)), Memory(2, "", ("gamma",)))
    repeated = FakeStore(Memory(1, "", ("alpha " * 10 + "beta",)), Memory(2, "", ("gamma",)))

    by_weight = bm25(fields={**FIELDS, "title": 10.0, "body": 1.0}).search(query("alpha"), 10, title)
    by_repetition = bm25(fields={**FIELDS, "body": 1.0}).search(query("alpha"), 10, repeated)

    assert scores(by_weight) == scores(by_repetition)


def test_a_single_field_has_its_own_statistics() -> None:
    # Titles: N 2, df 1, lengths 1 and 3, mean 2. idf = log 2; norm = 1.2 · (.25 + .75 · 1/2) = .75.
    store = FakeStore(Memory(1, "alpha", ("beta",)), Memory(2, "beta gamma delta", ("alpha alpha",)))

    found = bm25(fields=FIELDS, single={"title": 0.5}).search(query("alpha"), 10, store)

    assert scores(found) == {1: round(0.5 * log(2) * 2.2 / 1.75, 6)}


def test_the_best_passage_counts_and_is_named() -> None:
    # Passages 101 {beta}, 102 {alpha beta}, 2 {alpha}; lengths 1, 2, 1, mean 4/3; N 3.
    # alpha: df 2, idf = log(1.5/2.5 + 1); beta: the same. Passage 102: norm = 1.2 · (.25 + .75 · 1.5) = 1.65.
    store = FakeStore(Memory(1, "", ("beta", "alpha beta")), Memory(2, "", ("alpha",)))

    found = bm25(fields=FIELDS, passage=1.0).search(query("alpha beta"), 10, store)

    idf = log(1.6)
    assert scores(found) == {
        1: round(2 * idf * 2.2 / (1 + 1.65), 6),
        2: round(idf * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 0.75)), 6),
    }
    assert found.passages is not None
    assert found.passages.tolist() == [102, 2]


def test_the_title_counts_in_each_passage_of_its_memory() -> None:
    store = FakeStore(Memory(1, "alpha", ("beta", "gamma")), Memory(2, "", ("delta epsilon",)))
    spelled = FakeStore(Memory(1, "", ("alpha beta", "alpha gamma")), Memory(2, "", ("delta epsilon",)))

    by_title = bm25(fields=FIELDS, passage=1.0).search(query("alpha gamma"), 10, store)
    in_text = bm25(fields=FIELDS, passage=1.0, passage_title=0.0).search(query("alpha gamma"), 10, spelled)

    assert scores(by_title) == scores(in_text)
    assert by_title.passages is not None
    assert by_title.passages.tolist() == [102]


def test_at_level_chunk_every_passage_also_has_what_its_memory_has() -> None:
    store = FakeStore(Memory(1, "alpha", ("beta", "alpha")), Memory(2, "", ("beta",)))
    whole = scores(bm25().search(query("alpha beta"), 10, store))
    parts = scores(bm25(fields=FIELDS, passage=1.0, level="chunk").search(query("alpha beta"), 10, store))

    both = bm25(passage=1.0, level="chunk").search(query("alpha beta"), 10, store)

    expected = {101: whole[1] + parts[101], 102: whole[1] + parts[102], 2: whole[2] + parts[2]}
    assert scores(both) == pytest.approx(expected, abs=2e-6)
    assert both.level == "chunk"


def test_the_filter_applies_before_the_limit() -> None:
    store = FakeStore(*(Memory(i, "", ("alpha",), folder="in" if i > 5 else "out") for i in range(1, 9)))

    found = bm25().search(query("alpha", wanted=Filter(folder="in")), 2, store)

    assert found.ids.tolist() == [6, 7]


def test_ties_at_the_cut_are_decided_by_id() -> None:
    store = FakeStore(*(Memory(i, "", ("alpha",)) for i in (9, 3, 7, 1, 5)))

    assert bm25().search(query("alpha"), 3, store).ids.tolist() == [1, 3, 5]


def test_repeated_words_of_the_query_count_once() -> None:
    store = FakeStore(Memory(1, "", ("alpha beta",)), Memory(2, "", ("beta",)))

    once, often = (bm25().search(query(text), 10, store) for text in ("alpha beta", "alpha beta alpha"))

    assert scores(once) == scores(often)


def test_of_a_long_query_only_the_rarest_words_are_searched() -> None:
    store = FakeStore(Memory(1, "", ("alpha beta",)), Memory(2, "", ("alpha gamma",)), Memory(3, "", ("alpha",)))

    found = bm25(max_terms=2).search(query("alpha gamma beta"), 10, store)

    assert scores(found) == scores(bm25().search(query("gamma beta"), 10, store))


def test_unknown_words_of_a_long_query_take_no_place_of_known_ones() -> None:
    store = FakeStore(Memory(1, "", ("alpha beta",)), Memory(2, "", ("alpha gamma",)), Memory(3, "", ("alpha",)))
    unknown = " ".join(f"unknown{number}" for number in range(26))

    found = bm25(max_terms=24).search(query(f"{unknown} alpha gamma beta"), 10, store)

    assert scores(found) == scores(bm25().search(query("alpha gamma beta"), 10, store))
    assert found.ids.tolist() == [1, 2, 3]


def test_a_word_is_as_frequent_as_in_the_field_that_holds_it_most_often() -> None:
    # "alpha" is in every title and no text; "beta" is in two texts, "gamma" in one.
    store = FakeStore(*(Memory(i, "alpha", (text,)) for i, text in enumerate(("beta", "beta gamma", "delta"), 1)))
    asked = query("alpha beta gamma")

    with_titles = bm25(max_terms=2).search(asked, 10, store)
    assert scores(with_titles) == scores(bm25().search(query("beta gamma"), 10, store))

    in_passages = bm25(fields=FIELDS, passage=1.0, max_terms=2)
    assert in_passages.search(asked, 10, store).ids.tolist() == [2, 1]

    texts = {"fields": {**FIELDS, "body": 1.0}}
    assert scores(bm25(**texts, max_terms=1).search(asked, 10, store)) == scores(
        bm25(**texts).search(query("gamma"), 10, store)
    )


def test_another_state_of_the_store_is_scored_anew() -> None:
    channel = bm25()
    channel.search(query("alpha"), 10, FakeStore(Memory(1, "", ("alpha",))))

    assert channel.search(query("alpha"), 10, FakeStore(Memory(2, "", ("alpha",)))).ids.tolist() == [2]


@pytest.mark.requirement("P7")
def test_nothing_to_score_with_is_reported() -> None:
    no_field = Bm25Params.model_validate({"fields": FIELDS})
    no_passage = Bm25Params.model_validate({"level": "chunk"})

    assert [path for path, _ in Bm25.check(no_field, HERE)] == [("fields",)]
    assert [path for path, _ in Bm25.check(no_passage, HERE)] == [("level",)]
    assert list(Bm25.check(Bm25Params(), HERE)) == []


TEXTS = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=6).map(" ".join)


@st.composite
def stores(draw: st.DrawFn) -> FakeStore:
    count = draw(st.integers(1, 6))
    order = draw(st.permutations(range(1, count + 1)))
    chunks = st.lists(TEXTS, min_size=1, max_size=3).map(tuple)
    holes = draw(st.integers(0, 2))
    return FakeStore(*(Memory(i, draw(TEXTS), draw(chunks), path=draw(TEXTS)) for i in order), holes=holes)


def plainly(store: FakeStore, text: str, title: float, single: float, passage: float) -> dict[int, float]:
    """The definition, memory by memory."""
    memories = list(store.memories.values())

    def bm25_of(bags: list[dict[str, float]]) -> list[float]:
        lengths = [sum(bag.values()) for bag in bags]
        mean = sum(lengths) / len(bags)
        total = [0.0] * len(bags)
        for term in set(words(text)):
            df = sum(term in bag for bag in bags)
            idf = log((len(bags) - df + 0.5) / (df + 0.5) + 1)
            for row, bag in enumerate(bags):
                if tf := bag.get(term, 0.0):
                    norm = 1.2 * (0.25 + 0.75 * lengths[row] / mean)
                    total[row] += idf * tf * 2.2 / (tf + norm)
        return total

    def bag(**weighted: tuple[str, float]) -> dict[str, float]:
        counted: dict[str, float] = {}
        for words_of, weight in weighted.values():
            for word in words(words_of):
                counted[word] = counted.get(word, 0.0) + weight
        return counted

    whole = bm25_of([bag(title=(m.title, title), body=(" ".join(m.chunks), 1.0)) for m in memories])
    titles = bm25_of([bag(title=(m.title, 1.0)) for m in memories])
    chunks = iter(bm25_of([bag(title=(m.title, 1.0), body=(c, 1.0)) for m in memories for c in m.chunks]))
    best = [max(next(chunks) for _ in m.chunks) for m in memories]
    rows = zip(memories, whole, titles, best, strict=True)
    return {m.id: score for m, w, t, b in rows if (score := w + single * t + passage * b) > 0}


@pytest.mark.requirement("C3.formula")
@given(stores(), TEXTS)
def test_the_columns_compute_what_the_definition_says(store: FakeStore, text: str) -> None:
    channel = bm25(fields={**FIELDS, "title": 3.0, "body": 1.0}, single={"title": 0.3}, passage=0.5)

    found = channel.search(query(text), 10, store)

    expected = plainly(store, text, 3.0, 0.3, 0.5)
    assert dict(zip(found.ids.tolist(), found.scores.tolist(), strict=True)) == pytest.approx(expected)
    assert np.all(np.diff(found.scores) <= 0)


def turns(*texts: str) -> list[Memory]:
    """Short notes of one folder, 1, 2, …"""
    return [
        Memory(number, "", (text,), folder="talk", numbers={"characters": 10.0}) for number, text in enumerate(texts, 1)
    ]


@pytest.mark.requirement("C3")
def test_a_note_adds_its_share_of_the_better_neighbours_own_score() -> None:
    # Every note has one word: tf/(tf + norm) = 1/2.2, so that a word found scores its idf.
    # alpha: df 2 of 5, idf = log(3.5/2.5 + 1). Neighbours: 1-2-3-4 of "talk"; 5 lies elsewhere.
    notes = [*turns("beta", "alpha", "alpha", "gamma"), Memory(5, "", ("delta",), numbers={"characters": 10.0})]
    store = FakeStore(*notes)

    found = bm25(fields={**FIELDS, "body": 1.0}, context=0.2).search(query("alpha"), 10, store)

    idf = log(2.4)
    assert scores(found) == {
        1: round(0.2 * idf, 6), 2: round(1.2 * idf, 6), 3: round(1.2 * idf, 6), 4: round(0.2 * idf, 6),
    }  # fmt: skip


@pytest.mark.parametrize("passage", [0.0, 1.0])
def test_a_neighbour_that_the_query_may_not_see_adds_nothing(passage: float) -> None:
    texts = ("beta", "alpha", "alpha", "gamma", "alpha", "delta")
    notes = turns(*texts)
    notes[1].tier = "deprecated"
    notes[4].numbers["expires_at"] = -1.0
    seen = turns(*texts)
    for note in (seen[1], seen[4]):
        note.tier = "important"
    channel = bm25(fields={**FIELDS, "body": 1.0}, passage=passage, context=0.2)
    asked, without = query("alpha"), bm25(fields={**FIELDS, "body": 1.0}, passage=passage)

    own = scores(without.search(asked, 10, FakeStore(*notes)))[3]
    assert scores(channel.search(asked, 10, FakeStore(*notes))) == pytest.approx({3: own, 4: 0.2 * own}, abs=2e-6)

    normal = channel.search(query("alpha", wanted=Filter(tier="normal")), 10, FakeStore(*seen))
    assert scores(normal) == pytest.approx({3: own, 4: 0.2 * own}, abs=2e-6)


def test_a_note_found_through_its_neighbour_alone_names_no_passage() -> None:
    found = bm25(fields=FIELDS, passage=1.0, context=0.2).search(query("alpha"), 10, FakeStore(*turns("beta", "alpha")))

    assert found.ids.tolist() == [2, 1]
    assert found.passages is not None
    assert found.passages.tolist() == [2, -1]


def test_a_limit_is_filled_past_the_best_rows_when_the_scope_leaves_these_out() -> None:
    hidden = [Memory(number, "", ("alpha",), tier="deprecated") for number in range(1, 6)]
    store = FakeStore(*hidden, Memory(6, "", ("alpha beta beta",)))

    assert bm25().search(query("alpha"), 1, store).ids.tolist() == [6]


def test_context_is_refused_at_level_chunk() -> None:
    problems = list(Bm25.check(Bm25Params.model_validate({"level": "chunk", "passage": 1.0, "context": 0.2}), HERE))

    assert problems == [(("context",), "passages have no neighbours; use level memory or context 0")]
