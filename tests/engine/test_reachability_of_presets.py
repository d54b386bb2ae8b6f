"""Every step of the shipped pipelines matters to an agent: without it, an answer of a tool is another one.

The store is written by the product alone: files are indexed, and readers judge and read through the tools. Answers are
compared as clients get them, where scores are rounded: another order, another score, note, hint or plan counts, the
last digits of a float do not. Time stands still, so that nothing else tells two answers apart.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from components.flags import OPEN, opened
from mcp import Client
from storing.project import GATEWAYS, NOTES, QUESTIONS, write

from speckit_memory.engine import Memory
from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.engine.api.feedback import FeedbackService
from speckit_memory.engine.components import registry
from speckit_memory.engine.recording import session_events
from speckit_memory.memory.graph.ranking import of_edges
from speckit_memory.memory.store.tables.graph import ranks
from speckit_memory.pipeline.configuration.builder import build
from speckit_memory.pipeline.roles.composition import Pipeline
from speckit_memory.pipeline.running.runner import Runner
from speckit_memory.server.mcp_server.app import build as build_server
from speckit_memory.server.replies.worker_calls import ThreadLimits
from speckit_memory.server.workspace.workspace import Workspace
from tests.engine.test_reachability import BUILD_ON, call, steps, without

NOW = time.time()
Answer = dict[str, Any]
Shown = tuple[Answer, list[tuple[str, ...]]]
"""What a client gets, and the reasons of the plans, which no tool shows."""
Call = tuple[str, dict[str, Any]]

ENVIRONMENTS = {"default": {}, "catalogue": OPEN}
OTHER_FUSER = {"default": build("rrf", registry(), {}), "catalogue": build("catalogue", registry(), opened("rsf"))}
APART = {
    **BUILD_ON,
    "token_budget": ("confidence_cut", "state_filter"),
    "channel_floor": ("community", "centrality"),
}
"""Steps left out on both sides: they need what the step gives, or leave it nothing to do in a store so small."""
UNHEARD = {
    "attribution": "the rows of the tools name the channels that found them by themselves",
    "constitutional_guarantee": "the channel and the pin beside it bring the memories in, so that none is missing",
    "encoder": "no encoder is named",
}
UNREACHED = {
    "catalogue": UNHEARD,
    "default": {
        **UNHEARD,
        "state_filter": "the rows tell their state by themselves, and without limits nothing is hidden",
        "encoder_notice": "no encoder is named",
        "fallback": "the vectors of a store that is embedded find something for every question",
    },
}  # fmt: skip
"""Steps that no answer can show, and why."""


class Still(Memory):
    """The product at one moment."""

    reasons: list[tuple[str, ...]]

    def search(self, text: str, **arguments: Any) -> SearchResult:
        result = super().search(text, **{**arguments, "now": NOW, "deadline_ms": None})
        self.reasons.append(result.plan.reasons)
        return result


class SessionFeedback(FeedbackService):
    """Feedback of which only sessions take note, as uses would change later answers."""

    def delivered(self, result: SearchResult, count: int | None = None) -> str:
        session_events.record_served(
            self.session.database, result, len(result.results) if count is None else count, remembered=True
        )
        return ""


def opened_memory(root: Path, preset: str) -> Still:
    memory = Still.open(root / "m.db", preset, root=root, environ=ENVIRONMENTS[preset], strict=True)
    memory.feedback = SessionFeedback(memory.session)
    return memory


def calls(session: str) -> list[Call]:
    """What an agent asks: every question, and the first of a conversation once more."""
    asked = [call(question) for question in QUESTIONS]
    asked = [(tool, said | ({"sessionId": session} if "sessionId" in said else {})) for tool, said in asked]
    return [*asked, *[each for each in asked if "sessionId" in each[1]][:1]]


def answers(
    memory: Memory, asked: Sequence[Call], is_enough: Callable[[Answer], bool] = lambda answer: False
) -> list[Answer]:
    """What clients get, up to the first answer that is enough."""

    async def work() -> list[Answer]:
        got = []
        server = build_server(
            Workspace(lambda create: memory, memory.session.settings), warm_up=False, limits=ThreadLimits()
        )
        async with Client(server) as client:
            for call in asked:
                got.append((await client.call_tool(*call)).structured_content or {})
                if is_enough(got[-1]):
                    break
        return got

    found = anyio.run(work)
    assert [answer for answer in found if "error" in answer] == []
    return found


@pytest.fixture(scope="module", autouse=True)
def _no_latency() -> Iterator[None]:
    """The length of an answer, and so where it is cut, hangs on the digits of its latency."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("speckit_memory.server.calls.tool.time", SimpleNamespace(perf_counter=lambda: 0.0))
        yield


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace that was indexed, judged and read through the tools."""
    root = tmp_path_factory.mktemp("lived-in")
    write(root, NOW)
    with Memory.open(root / "m.db", "bm25", root=root, environ={}) as memory:
        assert memory.index([root]).failures == []
        ids = {key: memory.get(key).id for key in NOTES}
        gateways = [ids[f"docs/gateway/{name}.md"] for name in GATEWAYS]
        judged = [(gateways[2], True)] * 6 + [(gateways[5], False)] * 3 + [(ids["specs/auth/spec.md"], True)] * 2
        answers(memory, [("memory_validate", {"id": id_, "wasUseful": useful}) for id_, useful in judged])
        answers(memory, [("memory_search", {"query": "gateway of payouts", "limit": 2})] * 8)
        with memory.session.database.write() as txn:  # as in a store with an edge per memory: these notes have fewer
            ranks.replace(txn, of_edges(txn.connection), ranks.state(txn.connection).version)
    return root


@pytest.fixture(scope="module", params=list(ENVIRONMENTS))
def asked(request: pytest.FixtureRequest, lived_in: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A preset, a memory in it, and the answers of the whole pipeline."""
    root = Path(shutil.copytree(lived_in, tmp_path_factory.mktemp("asked") / "root"))
    with opened_memory(root, request.param) as memory:
        yield request.param, memory


def run(memory: Still, pipeline: Pipeline, session: str, before: Sequence[Shown] = ()) -> list[Shown]:
    """What clients get, up to the first answer that differs from the one before, if there are any."""
    whole, memory.session.searcher.runner = memory.session.searcher.runner, Runner(pipeline, strict=True)
    memory.reasons, shown = [], list[Shown]()

    def differs(answer: Answer) -> bool:
        shown.append((answer, memory.reasons))
        memory.reasons = []
        return bool(before) and shown[-1] != before[len(shown) - 1]

    try:
        answers(memory, calls(session), differs)
    finally:
        memory.session.searcher.runner = whole
    return shown


@pytest.mark.usefixtures("exhaustive")
def test_nothing_but_the_pipeline_tells_two_answers_apart(asked: tuple[str, Still]) -> None:
    _, memory = asked

    assert run(memory, memory.pipelines.current, "one") == run(memory, memory.pipelines.current, "two")


@pytest.mark.timeout(1200)  # every step of a preset, one after the other
@pytest.mark.requirement("P2", "P8", "T2")
@pytest.mark.usefixtures("exhaustive")
def test_without_a_step_some_answer_is_another_one(asked: tuple[str, Still]) -> None:
    preset, memory = asked
    pipeline, idle = memory.pipelines.current, []
    before: dict[tuple[str, ...], list[Shown]] = {}
    for use in dict.fromkeys(step.use for step in steps(pipeline)):
        apart = APART.get(use, ()) if preset == "catalogue" else ()
        whole = without(pipeline, *apart)
        if use == pipeline.fusion.fuser.use:
            lacking = replace(whole, fusion=replace(whole.fusion, fuser=OTHER_FUSER[preset].fusion.fuser))
        else:
            lacking = without(whole, use)
        if apart not in before:
            before[apart] = run(memory, whole, f"with {apart}")
        if run(memory, lacking, f"without {use}", before[apart]) == before[apart]:
            idle.append(use)

    assert sorted(idle) == sorted(UNREACHED[preset])
