"""Explanations give the score: for every pipeline that comes with the product, over a real store, through its doors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from components.flags import EXCLUSIVE, OPEN, opened
from frame.reckoning import check_explanation
from storing.project import QUESTIONS, Project, live, project, write

from speckit_memory.config.pipelines.sources import presets
from speckit_memory.engine import Memory
from speckit_memory.engine.components import COMPONENTS
from speckit_memory.pipeline.roles.contracts import Role

NOW = 1_800_000_000.0
SELECTS = {"confidence_cut", "relevance_floor"}
"""Rerankers that take rows out and leave the scores alone."""
FLAGS: dict[str, dict[str, str]] = {"closed": {}, "open": OPEN} | {name: opened(name) for name in EXCLUSIVE}


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    root = tmp_path_factory.mktemp("project")
    write(root, NOW)
    with project(root, OPEN) as made:
        made.index([root])
        live(made, NOW)
        yield made


def check(memory: Memory, every: int) -> set[str]:
    """Checks every `every`-th question; returns the components that explained a score by a formula."""
    explained = set()
    uses = {step.id: step.use for step in memory.pipelines.current.rerank}
    for asked in QUESTIONS[::every]:
        result = memory.search(asked.text, now=NOW, deadline_ms=None, **asked.arguments)
        for row in result.results:
            explanation = memory.explain.row(result, row.id).as_json()
            check_explanation(explanation, row.score)
            explained |= {uses[step["step"]] for step in explanation["steps"] if step["kind"] == "formula"}
    return explained


@pytest.mark.requirement("P8.exact")
@pytest.mark.parametrize("name", presets())
def test_whoever_works_an_explanation_out_gets_the_score_of_every_shipped_pipeline(name: str, memory: Project) -> None:
    explained = check(memory.using(name), 2)

    assert explained == {step.use for step in memory.using(name).pipelines.current.rerank} - SELECTS


@pytest.mark.requirement("P8.exact", "P8.steps")
def test_every_reranker_says_by_what_arithmetic_it_made_the_score(memory: Project) -> None:
    explained = set()
    for place, environ in enumerate(FLAGS.values()):
        with project(memory.session.settings.root, environ) as other:
            explained |= check(other, 3 if place else 1)
    for aggregate in ("max", "mean_top3"):
        explained |= check(memory.using("catalogue", {"collapse.aggregate": aggregate}), 4)

    rerankers = {component.__module__.rpartition(".")[2] for role, component in COMPONENTS if role is Role.RERANKER}
    assert explained == rerankers - SELECTS


def test_a_number_that_is_not_the_one_behind_the_score_would_be_noticed(memory: Project) -> None:
    with (
        project(memory.session.settings.root, FLAGS["closed"]) as opened_again,
        opened_again.using("default") as closed,
    ):
        result = closed.search("payment gateway retries", now=NOW)
        for row in result.results:
            explanation = closed.explain.row(result, row.id).as_json()
            told = {step["step"]: step["parts"] for step in explanation["steps"]}
            if 0.0 < row.score < 1.0 and "better" in told["maxsim"] and told["z_score"]["bm25"]:
                break
    check_explanation(explanation, row.score)

    for step, part in (("z_score", "bm25"), ("regularise", "weight"), ("maxsim", "better"), ("min_max", "low")):
        right = told[step][part]
        told[step][part] = right + 0.001
        with pytest.raises(AssertionError):
            check_explanation(explanation, row.score)
        told[step][part] = right
