from __future__ import annotations

import pytest

from tests.evaluation.made_queries.made import collection, made


def test_five_words_are_quoted_as_they_are_written() -> None:
    assert made("phrases", collection("Then the Copper  kettle was old.", "Nothing.")).keys() <= {
        "Then the Copper kettle was", "the Copper kettle was old"
    }  # fmt: skip
    assert len(made("phrases", collection("Then the Copper  kettle was old."))) == 1


@pytest.mark.parametrize("other", ["the copper kettle was old", "THE COPPER:\nKettle - was... old!"])
def test_a_phrase_that_another_document_holds_is_left_out(other: str) -> None:
    assert made("phrases", collection("the copper kettle was old", other)) == {}


@pytest.mark.parametrize(
    "text",
    ["the copper kettle, was old", "the copper `kettle` was old", "it is in the kettle", "the copper\nkettle was old"],
)
def test_a_phrase_runs_in_one_line_without_punctuation_and_says_something(text: str) -> None:
    assert made("phrases", collection(text)) == {}


def test_phrases_of_stop_words_for_the_most_part_are_a_kind_of_their_own() -> None:
    of = collection("so it is in the kettle", "copper kettles were always useful", "the old kettle is in use")

    assert made("stop_phrases", of).keys() <= {"so it is in the", "it is in the kettle", "old kettle is in use"} | {
        "the old kettle is in"
    }
    assert set(made("stop_phrases", of).values()) == {(0,), (2,)}


MESSAGE = "copper kettles were always useful"


def test_the_message_of_a_trace_is_a_phrase_of_the_relevant_document() -> None:
    queries = made("traces", collection(MESSAGE, "the session store forgot every token"))

    assert set(queries.values()) == {(0,), (1,)}
    assert any(MESSAGE in query for query in queries)
    assert all(len(query.splitlines()) > 4 for query in queries)
