"""Every component is reached from the MCP tools and matters there: leaving it out changes an answer.

All flags of the catalogue preset are open, except those of components that stand in for another one: such a component
is asked with its own flag open as well. `single` stands in pipelines of one channel only, `handover` in that of the
mode "resume" (tests/server/test_resume.py asks for it through the tools). Nothing else is excepted: each component runs
for `memory_search` with its default arguments, and matters there too, unless it waits for one.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from components.flags import EXCLUSIVE, OPEN, opened
from mcp import Client
from storing.project import LEARNED, QUESTIONS, Asked, Project, live, project, write

from speckit_memory.engine.answers.answer import answer
from speckit_memory.engine.answers.request import SearchRequest
from speckit_memory.engine.components import COMPONENTS, registry
from speckit_memory.pipeline.configuration.builder import build
from speckit_memory.pipeline.roles.composition import BoundStep, Pipeline
from speckit_memory.pipeline.running.runner import Outcome, Runner
from speckit_memory.server.mcp_server.app import build as build_server
from speckit_memory.server.replies.worker_calls import ThreadLimits
from speckit_memory.server.workspace.workspace import Workspace

NAMES = [component.__module__.rpartition(".")[2] for _, component in COMPONENTS]
BASELINE = """\
pipeline: one channel
candidates:
  understand: []
  channels: [{use: bm25}]
  recover: []
fusion: [{use: single, scale: bm25}]
rerank: []
annotate: []
extends: none
"""
PLAIN = [asked for asked in QUESTIONS if not asked.arguments]
ARGUMENTS = {
    "expansion": "mode", "pressure": "token_usage", "session": "session", "session_dedup": "session",
    "anchor_filter": "anchors", "token_budget": "limit", "quick_look": "mode",
}  # fmt: skip
"""Components that wait for an argument: without it they change nothing."""
ALONE = {"single": "bm25", "handover": "resume"}
"""Components that a pipeline of their own has, and the catalogue has not."""
PLAN_ALONE = {"coverage"}
BUILD_ON: dict[str, tuple[str, ...]] = {
    "min_max": ("channel_floor", "mmr"), "standardise": ("maxsim",), "token_budget": ("confidence_cut",),
    "channel_floor": ("pin", "composite"),
}  # fmt: skip
"""What needs the scale that a step gives, or leaves it nothing to do: left out on both sides when that step is."""
NOTES_ALONE = {
    "attribution", "constitutional_guarantee", "encoder_notice", "evidence_gap", "session_dedup", "superseded",
}  # fmt: skip
"""Components whose whole purpose is a remark, in the plan or in the notes."""


@pytest.fixture(scope="module")
def now() -> float:
    return time.time()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, now: float) -> Path:
    """A workspace whose files are indexed, with traces of use."""
    root = tmp_path_factory.mktemp("project")
    write(root, now)
    with project(root, OPEN) as indexed:
        report = indexed.index([root])
        assert (report.failures, report.problems) == ([], [])
        live(indexed, now)
    return root


@pytest.fixture
def served(root: Path, tmp_path: Path) -> Path:
    """A copy of the workspace for answers that reach a reader: those leave traces of use."""
    return Path(shutil.copytree(root, tmp_path / "served"))


@pytest.fixture(scope="module")
def memory(root: Path) -> Iterator[Project]:
    with project(root, OPEN) as opened:
        yield opened


def call(asked: Asked) -> tuple[str, dict[str, Any]]:
    """The tool call of a question: `memory_search`, but the state of the context and the mode quick are for
    `memory_context` alone."""
    names = {"session": "sessionId", "token_usage": "tokenUsage"}
    arguments = {names.get(name, name): value for name, value in asked.arguments.items()}
    if "tokenUsage" in arguments or arguments.get("mode") == "quick":
        return "memory_context", {"input": asked.text, **arguments}
    return "memory_search", {"query": asked.text, **arguments}


def through_mcp(project: Project, questions: Sequence[Asked] = QUESTIONS) -> list[dict[str, Any]]:
    """The structured content of every answer, through the server and the SDK's client."""

    async def work() -> list[dict[str, Any]]:
        server = build_server(
            Workspace(lambda create: project, project.session.settings), warm_up=False, limits=ThreadLimits()
        )
        async with Client(server) as client:
            return [(await client.call_tool(*call(asked))).structured_content or {} for asked in questions]

    return anyio.run(work)


def ran(project: Project) -> set[str]:
    """The steps that ran in at least one of the answers."""
    return {step.step for result in project.answers for step in result.outcome.trace.steps if step.state == "ran"}


@pytest.mark.requirement("T2", "P1.tools")
@pytest.mark.usefixtures("exhaustive")
def test_every_component_runs_behind_the_tools_of_the_server(served: Path) -> None:
    reached = set()
    for name in ("all", *EXCLUSIVE, *ALONE):
        with project(served, opened(name) if name in EXCLUSIVE else OPEN) as asked:
            if name in ALONE:
                asked.session.searcher.runner = Runner(build(ALONE[name], registry(), {}), strict=True)
            contents = through_mcp(asked, PLAIN)
            assert [content for content in contents if "error" in content] == []
            uses = {step.id: step.use for step in steps(asked.pipelines.current)}
            reached |= {uses[step] for step in ran(asked)}

    assert set(NAMES) - reached == set()


@pytest.mark.requirement("A7", "C17")
def test_sections_and_the_state_of_the_context_reach_the_pipeline(served: Path) -> None:
    with project(served, OPEN) as asked:
        answers = dict(zip([question.text for question in QUESTIONS], through_mcp(asked), strict=True))
        reasons = [result.plan.reasons for result in asked.answers]

    rules, *sections = answers["how is the quokka cache measured"]["data"]["results"]
    assert (rules["tier"], "sections" in rules.get("notes", {})) == ("constitutional", False)
    assert [row["notes"]["sections"] for row in sections] == [["summary", "next-steps"]] * len(sections)
    assert sections[0]["memory_text"] == (
        "[summary]\nIn short, the quokka cache is a cache.\n\n[next-steps]\nMeasure the quokka cache again."
    )
    modes = [reason for told in reasons for reason in told if reason.startswith("pressure")]
    assert [reason.rpartition(" ")[2] for reason in modes] == ["quick", "focused"]


def steps(pipeline: Pipeline) -> list[BoundStep[Any]]:
    candidates = pipeline.candidates
    return [
        *candidates.understand, *candidates.channels, *candidates.recover,
        pipeline.fusion.fuser, *pipeline.fusion.signals, *pipeline.rerank, *pipeline.annotate,
    ]  # fmt: skip


def without(pipeline: Pipeline, *uses: str) -> Pipeline:
    """The pipeline without the steps of these components, all else as it is."""

    def left(of: tuple[BoundStep[Any], ...]) -> tuple[BoundStep[Any], ...]:
        return tuple(step for step in of if step.use not in uses)

    candidates = pipeline.candidates
    return replace(
        pipeline,
        candidates=replace(
            candidates,
            understand=left(candidates.understand),
            channels=left(candidates.channels),
            recover=left(candidates.recover),
        ),
        fusion=replace(pipeline.fusion, signals=left(pipeline.fusion.signals)),
        rerank=left(pipeline.rerank),
        annotate=left(pipeline.annotate),
    )


def pair(name: str, tmp_path: Path) -> tuple[Pipeline, Pipeline]:
    """A pipeline with the component, and the same without it; a fuser, which every pipeline needs, is replaced."""
    if name == "single":
        one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
        one.write_text(BASELINE, encoding="utf-8")
        other.write_text(BASELINE.replace("single, scale: bm25", "z_score"), encoding="utf-8")
        return build(str(one), registry(), {}), build(str(other), registry(), {})
    if name == "handover":
        other = tmp_path / "other.yaml"
        other.write_text(BASELINE.replace("annotate: []", "annotate: [{use: anchor_filter}]"), encoding="utf-8")
        return build("resume", registry(), {}), build(str(other), registry(), {})
    whole = build("catalogue", registry(), opened(name) if name in EXCLUSIVE else OPEN)
    if name in ("rrf", "rsf", "z_score"):
        return whole, build("catalogue", registry(), opened("rsf") if name == "rrf" else OPEN)
    whole = without(whole, *BUILD_ON.get(name, ()))
    return whole, without(whole, name)


def run(pipeline: Pipeline, asked: Asked, memory: Project, now: float) -> Outcome:
    store = memory.session.view()
    return Runner(pipeline, strict=True).run(
        SearchRequest(text=asked.text, **asked.arguments).query(store, now, None), store
    )


def observed(name: str, outcome: Outcome, memory: Project) -> object:
    """What must change: the rows and their scores; of what only remarks, its remarks."""
    result = answer(outcome, memory.session.view(), (), snippet_characters=200)
    if name in PLAN_ALONE:
        return result.plan.reasons
    if name in NOTES_ALONE:
        return [(row.notes, row.repeated) for row in result.results], result.notes
    return [(row.key, round(row.score, 9)) for row in result.results]  # not what adding in another order leaves over


@pytest.mark.requirement("P2", "P8")
@pytest.mark.parametrize("name", NAMES)
def test_leaving_a_component_out_changes_an_answer(name: str, memory: Project, now: float, tmp_path: Path) -> None:
    whole, lacking = pair(name, tmp_path)

    def changed(asked: Asked) -> bool:
        one, other = (observed(name, run(pipeline, asked, memory, now), memory) for pipeline in (whole, lacking))
        return one != other

    awaited = ARGUMENTS.get(name)
    assert any(map(changed, PLAIN)) is (awaited is None)
    assert awaited is None or any(changed(asked) for asked in QUESTIONS if awaited in asked.arguments)


@pytest.mark.requirement("C7.learned")
def test_a_phrase_that_use_has_taught_finds_its_memory(memory: Project, now: float) -> None:
    outcome = run(build("catalogue", registry(), opened("learned_trigger")), Asked(LEARNED, {}), memory, now)

    [row] = [row for row in answer(outcome, memory.session.view(), (), 0).results if row.key == "docs/code/mpab.md"]
    # 0.7 for the learned phrase and 0.1 of an importance of 0.5: 0.75 / 1.75
    assert row.channels["learned_trigger"].score == pytest.approx(0.75 / 1.75)


def test_leaving_nothing_out_changes_nothing(memory: Project, now: float) -> None:
    whole = build("catalogue", registry(), OPEN)

    assert [
        asked.text
        for asked in QUESTIONS
        if observed("attribution", run(whole, asked, memory, now), memory)
        != observed("attribution", run(without(whole, "none"), asked, memory, now), memory)
    ] == []
