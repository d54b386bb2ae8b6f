"""Properties of whole pipelines of real components on a real store: what holds whatever is asked and whatever fails."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from components.flags import OPEN
from frame.reckoning import check_explanation
from hypothesis import given, settings
from hypothesis import strategies as st
from storing.project import NOTES, QUESTIONS, Asked, Project, live, project, write
from tiers import examples

from speckit_memory.engine.answers.answer import answer
from speckit_memory.engine.answers.request import SearchRequest
from speckit_memory.engine.components import registry
from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.configuration.builder import build
from speckit_memory.pipeline.model.columns import Pool
from speckit_memory.pipeline.ports import Unavailable
from speckit_memory.pipeline.roles.composition import BoundStep, CandidateStage, Pipeline
from speckit_memory.pipeline.running.explain import explain
from speckit_memory.pipeline.running.runner import Outcome, Runner

PIPELINES = {name: build(name, registry(), OPEN) for name in ("default", "catalogue")}
WORDS = sorted({word for note in NOTES.values() for word in f"{note.title} {note.body[:200]}".split()})
NOW = 1_800_000_000.0


def indexed(root: Path, keys: Sequence[str]) -> Project:
    """The project, its files saved one after the other in this order."""
    write(root, NOW)
    opened = project(root, OPEN)
    for key in keys:
        opened.documents.save(root / key, force=True)  # one of them is a copy
    opened.index([root])  # counts near duplicates
    opened.session.opened.usage.write()  # later it would be among what is compared
    live(opened, NOW)
    return opened


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with indexed(tmp_path_factory.mktemp("project"), list(NOTES)) as opened:
        yield opened


def run(pipeline: Pipeline, asked: Asked, memory: Project, *, strict: bool = True) -> Outcome:
    store = memory.session.view()
    query = SearchRequest(text=asked.text, **asked.arguments).query(store, NOW, None)
    return Runner(pipeline, strict=strict).run(query, store)


def rows(outcome: Outcome) -> list[tuple[int, float]]:
    return list(zip(outcome.pool.candidates.parents.tolist(), outcome.pool.score.tolist(), strict=True))


def by_content(outcome: Outcome, memory: Project) -> tuple[dict[str, float], dict[str, list[int]]]:
    """The score of each text and its rank in each search.

    Of two copies that score the same, the answer shows the one with the lower id.
    """
    pool = outcome.pool
    texts = memory.session.view().attributes.label("content_hash", pool.candidates.parents).tolist()
    scores, ranks = pool.score.tolist(), pool.candidates.rank.tolist()
    return dict(zip(texts, scores, strict=True)), dict(zip(texts, ranks, strict=True))


@pytest.mark.requirement("F1")
@pytest.mark.usefixtures("exhaustive")
def test_results_do_not_depend_on_the_order_in_which_files_were_indexed(memory: Project, tmp_path: Path) -> None:
    # Scores agree to 1e-9 and not to the last bit: sums over vectors and rows run in the order of their ids.
    keys = random.Random(1).sample(list(NOTES), len(NOTES))
    titles = [Asked(note.title, {}) for note in NOTES.values()]
    everything = [Asked(asked.text, {**asked.arguments, "limit": 100}) for asked in (*QUESTIONS, *titles)]

    with indexed(tmp_path, keys) as shuffled:
        assert shuffled.get("docs/code/mpab.md").id != memory.get("docs/code/mpab.md").id
        for name, pipeline in PIPELINES.items():
            for asked in everything:
                one, other = (by_content(run(pipeline, asked, m), m) for m in (memory, shuffled))
                assert one[0] == pytest.approx(other[0], abs=1e-9), (name, asked.text)
                assert one[1] == other[1], (name, asked.text)


class Broken:
    """Stands in the place of a component and fails at whatever it is asked, in one of three ways."""

    def __init__(self, way: str) -> None:
        self._way = way

    def fail(self, *_: Any) -> Any:
        match self._way:
            case "raises":
                raise RuntimeError("out of order")
            case "says so":
                return Unavailable("out of order")
        return "nonsense"

    understand = search = recover = evidence = rerank = annotate = fail


Change = Callable[[tuple[BoundStep[Any], ...]], tuple[BoundStep[Any], ...]]


def changed(pipeline: Pipeline, change: Change) -> Pipeline:
    stage = pipeline.candidates
    return replace(
        pipeline,
        candidates=CandidateStage(change(stage.understand), change(stage.channels), change(stage.recover)),
        fusion=replace(pipeline.fusion, signals=change(pipeline.fusion.signals)),
        rerank=change(pipeline.rerank),
        annotate=change(pipeline.annotate),
    )


def dispensable(pipeline: Pipeline) -> list[str]:
    """Steps that may fail: all but the fuser and the signals and rerankers that are not marked optional."""
    stage = pipeline.candidates
    free = (*stage.understand, *stage.channels, *stage.recover, *pipeline.annotate)
    marked = [step for step in (*pipeline.fusion.signals, *pipeline.rerank) if step.optional]
    return [step.id for step in (*free, *marked)]


def routed(pipeline: Pipeline, failing: set[str]) -> Pipeline:
    """The pipeline, without its router where the rest would be refused: each tier keeps two channels (feature P7)."""
    left = {step.id for step in pipeline.candidates.channels} - failing

    def refused(step: BoundStep[Any]) -> bool:
        params: Any = step.params
        tiers = (params.simple, params.moderate, params.complex) if step.use == "router" else ()
        return step.id not in failing and any(len(left & set(tier.channels)) < 2 for tier in tiers)

    return changed(pipeline, lambda steps: tuple(step for step in steps if not refused(step)))


def told(outcome: Outcome) -> dict[str, object]:
    return {step: (notes.by_id, notes.overall, notes.warnings) for step, notes in outcome.notes.items()}


@pytest.mark.requirement("P9.skipped")
@pytest.mark.parametrize("name", PIPELINES)
@settings(max_examples=examples(0.2))
@given(data=st.data())
def test_whatever_fails_the_answer_is_that_of_the_pipeline_without_it(
    name: str, memory: Project, data: st.DataObject
) -> None:
    ways = st.sampled_from(["raises", "says so", "is wrong"])
    failing = data.draw(st.dictionaries(st.sampled_from(dispensable(PIPELINES[name])), ways))
    asked = data.draw(st.sampled_from(QUESTIONS))
    pipeline = routed(PIPELINES[name], set(failing))
    broken = changed(
        pipeline,
        lambda steps: tuple(replace(s, component=Broken(failing[s.id])) if s.id in failing else s for s in steps),
    )
    without = changed(pipeline, lambda steps: tuple(step for step in steps if step.id not in failing))

    if failing.keys() >= {step.id for step in pipeline.candidates.channels}:
        for left in (broken, without):
            with pytest.raises(SpeckitError, match="no channel could answer"):
                run(left, asked, memory, strict=False)
        return
    degraded, smaller = run(broken, asked, memory, strict=False), run(without, asked, memory, strict=False)

    assert rows(degraded) == rows(smaller)
    assert told(degraded) == told(smaller)
    assert degraded.query.plan == smaller.query.plan
    assert smaller.trace.degraded == ()
    named = {part.part for part in degraded.trace.degraded}
    asked_for = degraded.query.plan.channels
    unasked = {s.id for s in pipeline.candidates.channels if asked_for is not None and s.id not in asked_for}
    assert named <= failing.keys()
    assert failing.keys() - named <= {"fallback", "router", *unasked}  # the first is asked only when nothing was found


questions = st.builds(
    lambda words, mode: Asked(" ".join(words), {"mode": mode, "limit": 100}),
    st.lists(st.sampled_from(WORDS) | st.text(min_size=1, max_size=8), min_size=1, max_size=12).filter(
        lambda words: any(character.isalnum() for word in words for character in word)
    ),
    st.sampled_from(["auto", "quick", "deep"]),
)


@pytest.mark.requirement("P8")
@pytest.mark.parametrize("name", PIPELINES)
@settings(max_examples=examples(0.2))
@given(asked=questions)
def test_explanations_recombine_to_the_score_to_the_last_bit(name: str, memory: Project, asked: Asked) -> None:
    pool = run(PIPELINES[name], asked, memory).pool

    for row, score in enumerate(pool.score.tolist()):
        check_explanation({"steps": [asdict(step) for step in explain(pool, row)]}, score)


@pytest.mark.parametrize("name", PIPELINES)
@settings(max_examples=examples(0.1))
@given(asked=questions)
def test_answers_are_in_total_order_and_hold_every_memory_once(name: str, memory: Project, asked: Asked) -> None:
    outcome = run(PIPELINES[name], asked, memory)

    shown = rows(outcome)
    assert shown == sorted(shown, key=lambda row: (-row[1], row[0]))
    assert len({memory_id for memory_id, _ in shown}) == len(shown)
    result = answer(outcome, memory.session.view(), (), 0)
    assert [row.steps[-1][1] for row in result.results] == [score for _, score in shown]


def evidence(pool: Pool) -> dict[int, tuple[object, ...]]:
    """What channels found about each row and what each step made of it, so far."""
    c = pool.candidates
    return {
        row_id: (c.raw[row].tobytes(), c.rank[row].tobytes(), *(step.after[row] for step in pool.steps))
        for row, row_id in enumerate(pool.ids.tolist())
    }


@pytest.mark.requirement("P1", "P3")
@pytest.mark.parametrize("name", PIPELINES)
@settings(max_examples=examples(0.02))
@given(asked=questions)
@pytest.mark.usefixtures("exhaustive")
def test_no_step_changes_what_it_is_not_entitled_to(name: str, memory: Project, asked: Asked) -> None:
    whole = PIPELINES[name]
    signals, rerank, annotate = whole.fusion.signals, whole.rerank, whole.annotate

    def after(n_signals: int, n_rerank: int, n_annotate: int) -> Outcome:
        fusion = replace(whole.fusion, signals=signals[:n_signals])
        prefix = replace(whole, fusion=fusion, rerank=rerank[:n_rerank], annotate=annotate[:n_annotate])
        return run(prefix, asked, memory)

    first = after(0, 0, 0)
    question = SearchRequest(text=asked.text, **asked.arguments).query(memory.session.view(), NOW, None)
    assert question.planned(first.query.plan) == first.query  # understanding makes a plan and leaves the question
    before = first.pool
    for place, signal in enumerate(signals, start=1):
        pool = after(place, 0, 0).pool
        known = evidence(before)
        assert {row: told[:-1] for row, told in evidence(pool).items()} == known, signal.id
        before = pool
    for place, step in enumerate(rerank, start=1):
        pool = after(len(signals), place, 0).pool
        assert set(pool.candidates.parents.tolist()) <= set(before.candidates.parents.tolist())
        if not step.about.groups:  # a group is a new row, made of the evidence of its passages
            known, depth = evidence(before), 2 + len(before.steps)
            kept = {row: facts[:depth] for row, facts in evidence(pool).items()}
            assert kept == {row: known[row] for row in kept}, step.id
        before = pool
    ranked = rows(after(len(signals), len(rerank), 0))
    for place in range(1, len(annotate) + 1):
        left = rows(after(len(signals), len(rerank), place))
        remaining = iter(ranked)
        assert all(row in remaining for row in left), annotate[place - 1].id
        ranked = left


@pytest.mark.requirement("C13.across")
@pytest.mark.parametrize(
    "text",
    [
        "quokka cache and importer crash",  # docs/cache and docs/journal
        "login token and the payment gateway",  # specs/auth and docs/gateway
        "reranking with models or fusing channels by rank",  # docs/research and docs/decisions
        "token rotation",  # titles in specs/auth/tokens alone, the text of specs/auth
    ],
)
def test_questions_across_folders_are_answered_as_without_the_prefilter(text: str, memory: Project) -> None:
    whole = PIPELINES["catalogue"]
    without = changed(whole, lambda steps: tuple(step for step in steps if step.use != "folder_prefilter"))

    one, other = (run(pipeline, Asked(text, {}), memory) for pipeline in (whole, without))

    folders = memory.session.view().attributes.label("folder", one.pool.candidates.parents)
    assert len(set(folders)) > 1
    assert rows(one) == rows(other)
    assert run(whole, Asked("quokka cache", {}), memory).query.plan.folders == ("docs/cache",)
