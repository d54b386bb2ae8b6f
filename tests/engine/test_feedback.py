"""Relevance feedback of BM25, switched on for a call as a user would, over a real store."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from storing.project import Project, project, write

from speckit_memory.engine.answers.answer import answer
from speckit_memory.engine.answers.request import SearchRequest
from speckit_memory.engine.components import registry
from speckit_memory.pipeline.configuration.builder import build
from speckit_memory.pipeline.running.runner import Runner

SIMPLE = "payment gateway retries"
LONGER = "how does the payment gateway retry failing requests of orders before it gives up"


def found(memory: Project, text: str, now: float, feedback: str) -> list[tuple[str, float]]:
    store = memory.session.view()
    pipeline = build("default", registry(), {}, {"bm25.feedback": feedback})
    outcome = Runner(pipeline, strict=True).run(SearchRequest(text=text).query(store, now, None), store)
    return [(row.key, row.score) for row in answer(outcome, store, (), 0).results]


@pytest.mark.requirement("C12")
@pytest.mark.parametrize("model", ["rm3", "bo1"])
def test_feedback_changes_the_answers_to_all_but_simple_questions(tmp_path: Path, model: str) -> None:
    now = time.time()
    write(tmp_path, now)
    with project(tmp_path, {}) as memory:
        memory.index([tmp_path])
        plain = {text: found(memory, text, now, "{model: none}") for text in (SIMPLE, LONGER)}
        told = {text: found(memory, text, now, f"{{model: {model}, min_lead: 0}}") for text in (SIMPLE, LONGER)}

    assert told[SIMPLE] == plain[SIMPLE] != []
    assert told[LONGER] != plain[LONGER] != []
