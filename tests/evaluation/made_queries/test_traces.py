from __future__ import annotations

from tests.evaluation.made_queries.made import collection, made

MESSAGE = "copper kettles were always useful"


def test_the_message_of_a_trace_is_a_phrase_of_the_relevant_document() -> None:
    queries = made("traces", collection(MESSAGE, "the session store forgot every token"))

    assert set(queries.values()) == {(0,), (1,)}
    assert any(MESSAGE in query for query in queries)
    assert all(len(query.splitlines()) > 4 for query in queries)
