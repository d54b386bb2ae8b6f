"""A reader of the Python interface may do with an answer what he likes: the next answer is as it would have been."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from frame.observed import ASKED, CLEAN, NOW, observed, plain, through
from frame.vandal import vandalise
from storing.project import QUESTIONS, living
from tally import Tally

from speckit_memory.engine import Memory
from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.engine.answers.search_options import SearchOptions

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with living(tmp_path_factory.mktemp("project"), NOW) as opened:
        yield opened


def asked(memory: Memory, place: int) -> SearchResult:
    question = QUESTIONS[place]
    return memory.search(question.text, now=NOW, deadline_ms=None, content=True, **question.arguments)


def parts(found: SearchResult) -> list[Any]:
    """An answer and all that it leads to."""
    outcome = found.outcome
    return [found.as_json(), found.plan, found.notes, found.results, *found.results, outcome.pool.candidates,
            outcome.pool.steps, outcome.pool, outcome.notes, outcome.query.plan, outcome.query.wanted, outcome.query,
            outcome.trace, outcome, found]  # fmt: skip


@pytest.mark.parametrize("place", ASKED[:4])
def test_what_is_done_to_an_answer_is_done_to_that_answer(tally: Tally, memory: Memory, place: int) -> None:
    behind = through(memory, CLEAN["catalogue"])
    known = observed(asked(behind, place))
    for part in parts(asked(behind, place)):
        tally.tried(vandalise(part))

    assert observed(asked(behind, place)) == known


def test_what_a_search_wanted_is_out_of_reach_of_its_answer(tally: Tally, memory: Memory) -> None:
    """Pipelines that were wanted are kept for the next who wants the same."""
    with memory.using("default") as behind:
        for wish in (SearchOptions(), SearchOptions(rerank=False)):

            def wanted(wish: SearchOptions = wish) -> SearchResult:
                return behind.search(QUESTIONS[3].text, now=NOW, deadline_ms=None, adjust=wish)

            known = observed(wanted())
            tally.tried(sum(map(vandalise, parts(wanted()))))

            assert observed(wanted()) == known


def test_explanations_plans_and_reports_belong_to_who_asked(tally: Tally, memory: Memory) -> None:
    behind = through(memory, CLEAN["default"])

    def said() -> list[Any]:
        found = asked(behind, 3)
        [row, *_] = found.results
        plan = behind.explain.plan(QUESTIONS[1].text).as_json()
        return [
            behind.explain.row(found, row.id),
            plan,
            behind.explain.why_not(found, "docs/cjk/design.md"),
            behind.list(),
        ]

    known = [plain(each) for each in said()]
    for each in said():
        tally.tried(1 + vandalise(each))
    assert [plain(each) for each in said()] == known
