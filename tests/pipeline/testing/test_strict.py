"""The strict guard finds what a component changes beside its answer, and names it."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from speckit_memory.engine import Memory
from speckit_memory.engine.components import registry
from speckit_memory.pipeline.configuration.builder import build
from speckit_memory.pipeline.model.columns import Respelling
from speckit_memory.pipeline.model.errors import ContractError
from speckit_memory.pipeline.roles.hooks import ABOUT_CONCEPT, STATES
from speckit_memory.pipeline.testing import FakeStore, ask, pool_of
from speckit_memory.pipeline.testing import Memory as Remembered
from speckit_memory.pipeline.testing.strict import guarded, guarded_pipeline

pytestmark = pytest.mark.requirement("P9")
STORE = FakeStore(Remembered(1, "fusion of ranks"), Remembered(2, "ranks of channels"))


class Reranker:
    """Does something to what it is given, and answers its scores."""

    def __init__(self, deed: Callable[[Any, Any], object]) -> None:
        self.deed = deed

    def rerank(self, query: Any, pool: Any, store: Any) -> Any:
        self.deed(query, pool)
        return pool.score


def reranked(deed: Callable[[Any, Any], object]) -> Any:
    query = ask("ranks", plan_limits={"bm25": 5}, plan_respelt=(Respelling("a", "a", {"b": 1.0}, "b"),))
    return guarded(Reranker(deed), "step").rerank(query, pool_of(STORE, {1: 0.9, 2: 0.5}), STORE)


CHANGES: dict[str, tuple[str, Callable[[Any, Any], object]]] = {
    "a column": ("the rows that it was given", lambda query, pool: pool.candidates.raw.__imul__(0)),
    "a score": ("the rows that it was given", lambda query, pool: pool.score.sort()),
    "a limit": ("the query that it was given", lambda query, pool: query.plan.limits.update(bm25=1)),
    "a spelling": ("the query that it was given", lambda query, pool: query.plan.respelt[0].instead.clear()),
    "two of them": (
        "the query that it was given and the rows that it was given",
        lambda query, pool: (query.plan.limits.clear(), pool.score.sort()),
    ),
    "the output": ("the standard output of the process", lambda query, pool: setattr(sys, "stdout", sys.stderr)),
    "recursion": ("the recursion limit of the process", lambda query, pool: sys.setrecursionlimit(5000)),
    "collection": ("the garbage collection of the process", lambda query, pool: gc.disable()),
    "the folder": ("the working directory of the process", lambda query, pool: os.chdir("/")),
    "a variable": ("the environment of the process", lambda query, pool: os.environ.update(SPECKIT_X="1")),
    "errors of numpy": ("numpy's error handling", lambda query, pool: np.seterr(all="raise")),
    "the random source": ("numpy's random state", lambda query, pool: np.random.seed(1)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_a_breach_of_the_contract_and_is_undone(name: str) -> None:
    said, deed = CHANGES[name]
    before = (sys.stdout, sys.getrecursionlimit(), gc.isenabled(), Path.cwd(), dict(os.environ), np.geterr())

    with pytest.raises(ContractError) as caught:
        reranked(deed)

    assert caught.value.violation == f"changed {said}"
    assert before == (sys.stdout, sys.getrecursionlimit(), gc.isenabled(), Path.cwd(), dict(os.environ), np.geterr())


def test_a_component_that_changes_nothing_answers_as_without_the_guard() -> None:
    assert reranked(lambda query, pool: None).tolist() == [0.9, 0.5]


def test_a_guarded_pipeline_offers_the_same_hooks_and_has_the_same_hash() -> None:
    plain = build("catalogue", registry(), {})
    strict = guarded_pipeline(plain)

    assert strict.hash == plain.hash
    for hook, steps in ((ABOUT_CONCEPT, "channels"), (STATES, "annotate")):
        of = [getattr(one.candidates if steps == "channels" else one, steps) for one in (plain, strict)]
        assert [bool(hook.of(step.component)) for step in of[0]] == [bool(hook.of(step.component)) for step in of[1]]
    assert [step.component.combine for step in strict.fusion.signals] == [
        step.component.combine for step in plain.fusion.signals
    ]


def test_a_memory_that_is_opened_strictly_runs_every_component_under_the_guard(tmp_path: Any) -> None:
    with Memory.open(tmp_path / "m.db", root=tmp_path, environ={}, strict=True) as memory:
        [first, *_] = memory.session.searcher.runner.pipeline.candidates.channels

    assert type(first.component).__bases__ == (object,)
    assert "_call" in repr(vars(type(first.component))["search"])
