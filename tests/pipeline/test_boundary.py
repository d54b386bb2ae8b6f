"""Hostile components in pipelines of real ones, on a real store: nothing that they answer is taken on trust."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frame.hostile import PLAIN, attacked, component, without

from speckit_memory.engine import Memory
from speckit_memory.engine.answers.request import SearchRequest
from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.model.columns import Grouped, Hits, Plan, Pool, Query, Rescored, Selected
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.model.workings import Workings
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.roles.contracts import Role
from speckit_memory.pipeline.running.explain import explain
from speckit_memory.pipeline.running.runner import Outcome, Runner

pytestmark = pytest.mark.requirement("P9")
NOW = 1_800_000_000.0
TEXT = "how does the payment gateway retry"
PASSAGES = PLAIN.replace("{use: bm25}", "{use: bm25, level: chunk, passage: 1.0}").replace(
    "rerank:\n", "rerank:\n  - {use: collapse}\n"
)


def run(pipeline: Pipeline, memory: Memory, text: str = TEXT, *, strict: bool = False, **arguments: Any) -> Outcome:
    store = memory.session.view()
    return Runner(pipeline, strict=strict).run(SearchRequest(text=text, **arguments).query(store, NOW, None), store)


def rows(outcome: Outcome) -> list[tuple[int, float]]:
    return list(zip(outcome.pool.ids.tolist(), outcome.pool.score.tolist(), strict=True))


def refused(pipeline: Pipeline, memory: Memory, text: str = TEXT, **arguments: Any) -> str:
    """Why the frame refused the hostile step. The answer is that of the pipeline without it, to the last bit."""
    outcome = run(pipeline, memory, text, **arguments)
    plain = run(without(pipeline), memory, text, **arguments)
    assert rows(outcome) == rows(plain)
    assert outcome.query.plan == plain.query.plan
    assert "hostile" not in outcome.notes
    [part] = outcome.trace.degraded
    assert part.part == "hostile"
    assert [record.state for record in outcome.trace.steps if record.step == "hostile"] == ["failed"]
    return part.reason


ACCEPTED = {
    Role.UNDERSTANDER: "Plan or Unavailable",
    Role.CHANNEL: "Hits or Unavailable",
    Role.RECOVERER: "Plan or Unavailable",
    Role.FUSER: "Fused or Unavailable",
    Role.SIGNAL: "float64[",
    Role.RERANKER: "Rescored, Selected, Grouped or Unavailable",
    Role.ANNOTATOR: "Notes or Unavailable",
}
OTHERS = [role for role in Role if role is not Role.FUSER]
WRONG = [None, "text", 7, [0.5], {}, object(), Rescored]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda answer: type(answer).__name__)
@pytest.mark.parametrize("role", OTHERS)
def test_an_answer_of_a_wrong_type_is_refused_and_named(role: Role, wrong: Any, memory: Memory, tmp_path: Path) -> None:
    pipeline = attacked(tmp_path, role, component(role, lambda *_: wrong))
    text = "zebra" if role is Role.RECOVERER else TEXT

    reason = refused(pipeline, memory, text)

    name = "None" if wrong is None else type(wrong).__name__
    assert reason.startswith(f"it returned {name}")
    assert ACCEPTED[role] in reason


@pytest.mark.parametrize("wrong", WRONG, ids=lambda answer: type(answer).__name__)
@pytest.mark.parametrize("role", [Role.FUSER, Role.SIGNAL, Role.RERANKER])
def test_a_required_step_of_a_wrong_type_is_an_error(role: Role, wrong: Any, memory: Memory, tmp_path: Path) -> None:
    pipeline = attacked(tmp_path, role, component(role, lambda *_: wrong), optional=False)

    with pytest.raises(SpeckitError, match="the step 'hostile' failed: it returned") as caught:
        run(pipeline, memory)

    assert caught.value.code == "E040"
    assert ACCEPTED[role] in str(caught.value)
    with pytest.raises(SpeckitError, match="the step 'hostile' returned") as caught:
        run(pipeline, memory, strict=True)
    assert caught.value.code == "E131"


PLANS: dict[str, Callable[[Query, Plan, Store], Plan]] = {
    "must keep the query": lambda _, plan, __: replace(plan, variants=("something else",)),
    "planned to use no channel; accepted: at least one of bm25": lambda _, plan, __: replace(plan, channels=()),
    "planned to use nowhere; accepted: at least one of bm25": lambda _, plan, __: replace(plan, channels=("nowhere",)),
    "planned the complexity 'easy'; accepted: simple": lambda _, plan, __: replace(plan, complexity="easy"),  # type: ignore[arg-type]
    "planned the mode 'fast'; accepted: auto": lambda _, plan, __: replace(plan, mode="fast"),  # type: ignore[arg-type]
    "0 as the limit of 'bm25'": lambda _, plan, __: replace(plan, limits={"bm25": 0}),
    "the factor 0": lambda _, plan, __: replace(plan, limit_factor=0),
    "the factor nan": lambda _, plan, __: replace(plan, limit_factor=float("nan")),
}


@pytest.mark.parametrize("reason", PLANS)
@pytest.mark.parametrize("role", [Role.UNDERSTANDER, Role.RECOVERER])
def test_a_plan_that_cannot_be_followed_is_refused(role: Role, reason: str, memory: Memory, tmp_path: Path) -> None:
    pipeline = attacked(tmp_path, role, component(role, PLANS[reason]))
    text = "zebra" if role is Role.RECOVERER else TEXT

    assert reason in refused(pipeline, memory, text)


def found(query: Query, store: Store) -> Hits:
    """Memories below the folder docs, best first."""
    ids = store.attributes.in_folder("docs/gateway")[:3]
    return Hits(ids, np.array([0.9, 0.5, 0.1]), Scale.UNIT)


def foreign(query: Query, store: Store) -> int:
    """A memory that does not lie under docs."""
    return int(store.attributes.in_folder("specs/auth")[0])


def chunk(store: Store) -> int:
    """A passage that is no memory."""
    memories = np.concatenate([store.attributes.in_folder(f) for f in ("docs/decisions", "docs/cache", "docs")])
    every = [passage.id for memory in memories.tolist() for passage in store.passages.of_memory(memory)]
    return next(i for i in every if i not in memories.tolist())


HITS: dict[str, Callable[[Query, int, Store], Hits]] = {
    "its limit is 50": lambda q, limit, s: Hits(np.arange(60), np.linspace(1, 0, 60), Scale.UNIT),
    "on the scale bm25; it declares memory on the scale unit": lambda q, _, s: replace(found(q, s), scale=Scale.BM25),
    "of level chunk": lambda q, _, s: replace(found(q, s), level="chunk"),
    "scores from 0.1 to 7; accepted on the scale unit: 0 to 1": lambda q, _, s: replace(
        found(q, s), scores=np.array([7.0, 0.5, 0.1])
    ),
    "that the query's filter does not admit": lambda q, _, s: Hits(
        np.array([foreign(q, s)]), np.array([0.9]), Scale.UNIT
    ),
    "1 hits that the query's filter does not admit (987654321)": lambda q, _, s: Hits(
        np.array([987654321]), np.array([0.9]), Scale.UNIT
    ),
    "as memories": lambda q, _, s: Hits(np.array([chunk(s)]), np.array([0.9]), Scale.UNIT),
    "passages of memories that are not the hits": lambda q, _, s: replace(
        found(q, s), passages=np.full(3, foreign(q, s))
    ),
    "passages must be int64[3]; found float64[3]": lambda q, _, s: replace(found(q, s), passages=np.zeros(3)),  # type: ignore[arg-type]
    "ids must be unique": lambda q, _, s: replace(found(q, s), ids=found(q, s).ids[[0, 0, 0]]),
    "must be ordered": lambda q, _, s: replace(found(q, s), scores=np.array([0.1, 0.5, 0.9])),
}


@pytest.mark.parametrize("reason", HITS)
def test_hits_that_break_the_contract_of_a_channel_are_refused(reason: str, memory: Memory, tmp_path: Path) -> None:
    pipeline = attacked(tmp_path, Role.CHANNEL, component(Role.CHANNEL, HITS[reason]))

    assert reason in refused(pipeline, memory, folder="docs")


def test_no_channel_can_bring_in_what_the_filter_shuts_out(memory: Memory, tmp_path: Path) -> None:
    def everything(query: Query, limit: int, store: Store) -> Hits:
        ids = np.sort(
            np.concatenate([store.attributes.of_tier(tier) for tier in ("normal", "deprecated", "important")])
        )
        return Hits(ids[:limit], np.ones(min(len(ids), limit)), Scale.UNIT)

    pipeline = attacked(tmp_path, Role.CHANNEL, component(Role.CHANNEL, everything))

    for arguments in ({}, {"folder": "docs/gateway"}, {"tier": "critical"}, {"context_type": "decision"}):
        assert "does not admit" in refused(pipeline, memory, limit=100, **arguments)


def rescored(score: Callable[[Pool], Any]) -> Callable[[Query, Pool, Store], Rescored]:
    return lambda _, pool, __: Rescored(score(pool))


def explained(formula: str, **parts: Any) -> Callable[[Query, Pool, Store], Rescored]:
    """Scores as they are, with workings that may be of others."""
    return lambda _, pool, __: Rescored(pool.score, Workings.of(len(pool), [formula], parts))


RERANKINGS: dict[str, Callable[[Query, Pool, Store], Any]] = {
    "returned None as finite scores": rescored(lambda pool: None),
    "as finite scores; accepted: float64[": rescored(lambda pool: pool.score[:-1]),
    "returned object[": rescored(lambda pool: pool.score.astype(object)),
    "returned bool[": rescored(lambda pool: pool.score > 0),
    "returned NaN or infinity": rescored(lambda pool: np.full(len(pool), np.nan)),
    "returned scores from 0 to 5": rescored(lambda pool: pool.score * 5),
    "returned int64[": lambda _, pool, __: Selected(np.arange(len(pool))),  # type: ignore[arg-type]
    "returned list as mask": lambda _, pool, __: Selected([True]),  # type: ignore[arg-type]
    "workings with numbers of more than 1e+30": explained("before", lift=np.inf),
    "returned dict as workings": lambda _, pool, __: Rescored(pool.score, {}),  # type: ignore[arg-type]
    "as parts of workings; accepted: float64[": lambda _, pool, __: Rescored(
        pool.score, Workings(("before",), ("lift",), np.ones(1))
    ),
    "two parts of the same name": lambda _, pool, __: Rescored(
        pool.score, Workings(("before",), ("a", "a"), np.ones((len(pool), 2)))
    ),
}


@pytest.mark.parametrize("reason", RERANKINGS)
def test_rerankings_that_do_not_fit_the_pool_are_refused(reason: str, memory: Memory, tmp_path: Path) -> None:
    pipeline = attacked(tmp_path, Role.RERANKER, component(Role.RERANKER, RERANKINGS[reason]))

    assert reason in refused(pipeline, memory)


def first_alone(pool: Pool) -> np.ndarray:
    scores = pool.score.copy()
    scores[0] += 1.0
    return scores


GROUPS: dict[str, Callable[[Query, Pool, Store], Any]] = {
    "unequal scores within a group": lambda _, pool, __: Grouped(pool.candidates.parents, first_alone(pool)),
    "into groups (987654321, 987654321, 987654321 and 10 more) that are not their memories": lambda _, pool, __: (
        Grouped(np.full(len(pool), 987654321), np.ones(len(pool)))
    ),
    "that are not their memories": lambda _, pool, __: Grouped(
        pool.candidates.parents[::-1].copy(), np.ones(len(pool))
    ),
    "as groups; accepted: int64[": lambda _, pool, __: Grouped(pool.candidates.parents.astype(float), pool.score),
}


@pytest.mark.requirement("R4.one")
@pytest.mark.parametrize("reason", GROUPS)
def test_groups_are_the_memories_and_have_one_score(reason: str, memory: Memory, tmp_path: Path) -> None:
    hostile = component(Role.RERANKER, GROUPS[reason], groups=True, widens=True)
    pipeline = attacked(tmp_path, Role.RERANKER, hostile, PASSAGES, first=True)

    assert reason in refused(pipeline, memory, "how is the quokka cache measured")


TOLD = {
    "gives other scores than its own": explained("before + lift", lift=-1e-9),
    "names no part": explained("before + lift"),
    "cannot be read": explained("before.real"),
}


@pytest.mark.parametrize("name", TOLD)
def test_a_formula_that_does_not_give_the_score_is_not_shown_as_its_derivation(
    name: str, memory: Memory, tmp_path: Path
) -> None:
    pool = run(attacked(tmp_path, Role.RERANKER, component(Role.RERANKER, TOLD[name])), memory).pool

    told = next(step for step in explain(pool, 0) if step.step == "hostile")

    assert (told.kind, told.formula, told.parts) == ("replace", "", {"hostile": told.after})
