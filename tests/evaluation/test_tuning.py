from __future__ import annotations

import math
import time
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from multiprocessing import active_children
from pathlib import Path

import numpy as np
import pytest
from files import write_file
from hypothesis import given
from hypothesis import strategies as st
from judged_sets import PIPELINE, titles

from speckit_memory.engine import components
from speckit_memory.engine.answers.request import SearchRequest
from speckit_memory.engine.api.memory import Memory
from speckit_memory.engine.pipelines import pipelines
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.ground_truth.judged_queries import StepCache
from speckit_memory.evaluation.running.run import Evaluation
from speckit_memory.evaluation.running.trials import (
    START,
    Trials,
    asking,
    open_sets,
    work,
)
from speckit_memory.evaluation.running.tunable import Parameter, overrides, tunable
from speckit_memory.evaluation.statistics.folds import folds
from speckit_memory.evaluation.tuning.tuning import tune
from speckit_memory.memory.indexing import Source
from speckit_memory.pipeline.configuration.binding import BoundParameters
from speckit_memory.pipeline.configuration.builder import examine

NOW = 1_790_000_000.0
RATIO = Parameter("fuse", ("k",), 10.0, 100.0, 60.0, integer=False)
LIMIT = Parameter("bm25", ("limit",), 20, 200, 50, integer=True)
SHARE = Parameter("mmr", ("lambda",), 0.5, 1.0, 0.7, integer=False)


def bound(source: str) -> tuple[BoundParameters, ...]:
    return examine(source, components.registry(), {}).bound


@given(
    parameter=st.sampled_from([RATIO, LIMIT, SHARE]),
    share=st.sampled_from([1.0, 0.5, 0.25]),
    place=st.floats(0, 1),
    seed=st.integers(0, 2**32 - 1),
)
def test_proposals_lie_in_the_range_around_the_present_value(
    parameter: Parameter, share: float, place: float, seed: int
) -> None:
    current = parameter.low + place * (parameter.high - parameter.low)
    values = parameter.proposals(current, share, np.random.default_rng(seed))
    assert 1 <= len(values) <= 4
    assert len(set(values)) == len(values)
    assert current not in values
    assert all(parameter.low <= value <= parameter.high for value in values)
    assert all(isinstance(value, int) for value in values) == parameter.integer
    assert values == parameter.proposals(current, share, np.random.default_rng(seed))
    if parameter is SHARE:
        assert max(values) - min(values) <= share * 0.5 + 0.01
        distances = [abs(value - current) for value in values]
        assert all(a >= b - 0.01 for a, b in pairwise(distances))


def test_a_wide_range_above_zero_is_searched_by_ratio() -> None:
    values = sorted(RATIO.proposals(60.0, 1.0, np.random.default_rng(1)))
    parts = [math.floor(4 * math.log(value / 10) / math.log(10)) for value in values]
    assert parts == [0, 1, 2, 3]


def test_the_search_space_is_what_the_steps_declare(tmp_path: Path) -> None:
    file = write_file(
        tmp_path / "p.yaml",
        PIPELINE.replace("- {use: single, scale: bm25}", "- {use: z_score, id: fuse, weights: {bm25: 0.7}}")
        .replace("annotate: []", "annotate: [{use: evidence_gap}]")
        .replace("rerank: []", "rerank: [{use: min_max}, {use: mmr, lambda: by_intent}]"),
    )
    space = tunable(bound(str(file)))
    assert {p.step for p in space} == {"bm25", "fuse"}
    assert {(p.name, p.low, p.high, p.start, p.integer) for p in space} >= {
        ("bm25.limit", 20, 200, 50, True),
        ("bm25.k1", 0.6, 2.4, 1.2, False),
        ("bm25.single.title", 0.0, 2.0, 0.0, False),
        ("fuse.weights.bm25", 0.0, 2.0, 0.7, False),
    }
    assert [p.name for p in tunable(bound(str(file)), ["fuse.weights", "bm25.b"])] == ["bm25.b", "fuse.weights.bm25"]


def test_a_pipeline_without_tunable_parameters_is_refused(tmp_path: Path) -> None:
    file = write_file(tmp_path / "p.yaml", PIPELINE)
    with pytest.raises(SpeckitError, match="no step of this pipeline has a parameter that is declared tunable"):
        tunable([entry for entry in bound(str(file)) if entry.step.slot == "fusion"])


def test_a_setting_changes_its_own_values_alone() -> None:
    setting = {"z_score.weights.bm25": 0.5, "z_score.weights.vector": 0.25, "bm25.k1": 0.9, "bm25.limit": 30}
    steps = bound("default")
    before = {entry.step.id: entry.params for entry in steps}
    after = {entry.step.id: entry.params for entry in examine(
        "default", components.registry(), {}, overrides(setting)).bound}  # fmt: skip
    changed = {step for step, params in after.items() if params != before[step]}
    assert changed == {"z_score", "bm25"}
    old, new = ({name: params.model_dump() for name, params in state.items() if params} for state in (before, after))
    assert new["z_score"]["weights"] == {**old["z_score"]["weights"], "bm25": 0.5, "vector": 0.25}
    assert new["bm25"] == {**old["bm25"], "k1": 0.9, "limit": 30}
    assert overrides(START) == {}


@given(queries=st.integers(2, 60), count=st.integers(2, 8), seed=st.integers(0, 2**32 - 1))
def test_folds_are_equal_parts(queries: int, count: int, seed: int) -> None:
    sizes = np.bincount(folds(queries, count, np.random.default_rng(seed)), minlength=count)
    assert sizes.sum() == queries
    assert sizes.max() - sizes.min() <= 1


def test_a_setting_that_cannot_be_built_is_known_and_each_is_measured_once(tmp_path: Path) -> None:
    file = write_file(tmp_path / "p.yaml", PIPELINE)
    (ground,) = Evaluation(titles(tmp_path / "mixed", by_title=3, by_text=3), environ={}).grounds
    asked = [(ground, Evaluation(queries=4).sample(ground, 1))]
    with ExitStack() as stack:
        sets = stack.enter_context(open_sets(asked, str(file), environ={}, progress=lambda _: None))
        ask = stack.enter_context(asking(work(sets, str(file), {}, NOW), 1))
        table = Trials(sets, ask, str(file), {}, overrides, now=NOW, seed=1)
        assert table.possible({"bm25.single.title": 1.0})
        assert not table.possible({"bm25.fields.body": 0.0})
        first = table.values(0, {"bm25.single.title": 1.2})
        assert table.values(0, {"bm25.single.title": 1.2}) is first
        assert first["nDCG@10"].tolist() == [1.0] * 4
        assert table.measured == 1


HIDING = """\
pipeline: hiding
candidates:
  understand: [{use: intent}]
  channels: [{use: bm25, limit: 20}, {use: fts5, limit: 20}]
  recover: []
fusion: [{use: z_score, weights: {bm25: 0.5, fts5: 0.5}}]
rerank: [{use: min_max}]
annotate: [{use: state_filter, limits: {HOT: 1}}, {use: attribution}]
extends: none
"""
SETTINGS: list[dict[str, float]] = [{}, {"z_score.weights.fts5": 0.0}, {"bm25.single.title": 1.5}, {"bm25.limit": 21}]


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.usefixtures("exhaustive")
def test_the_search_sees_what_production_would_answer_also_when_rows_are_hidden(jobs: int, tmp_path: Path) -> None:
    file = write_file(tmp_path / "p.yaml", HIDING)
    folder = titles(tmp_path / "mixed", by_title=40, by_text=40, by_mention=40, created_at=time.time())
    asked, moment = [(one, Evaluation().sample(one, 1)) for one in Evaluation(folder, environ={}).grounds], time.time()
    with ExitStack() as stack:
        opened = stack.enter_context(open_sets(asked, str(file), environ={}, progress=lambda _: None))
        ask = stack.enter_context(asking(work(opened, str(file), {}, moment), jobs))
        table = Trials(opened, ask, str(file), {}, overrides, now=moment, seed=1)
        seen = []
        for setting in SETTINGS:
            begun = np.isnan(table.begun(0, setting)["MRR@5"])
            assert begun.sum() == 80
            fast, real = table.values(0, setting), table.judged(0, setting, np.arange(120))
            assert [column.tolist() for column in fast.values()] == [column.tolist() for column in real.values()]
            seen.append(fast["Recall@20"].mean())
        assert seen[0] < 1.0  # one row of each answer is shown
        assert len(set(seen)) > 1


def test_what_a_step_answered_is_looked_up_while_its_parameters_stay(tmp_path: Path) -> None:
    file = write_file(tmp_path / "p.yaml", HIDING)
    known = StepCache()
    with Memory.open(tmp_path / "m.db", str(file), root=tmp_path, environ={}) as memory:
        memory.index_documents([Source(key="a", text="kumquat pie", title="Pies")])
        store = memory.session.view()
        query = SearchRequest(text="kumquat").query(store, NOW, None)

        def hits(**overridden: str) -> list[object]:
            built = memory.using(str(file), {f"{k}.limit": v for k, v in overridden.items()}).pipelines.current
            channels = known.caching(built).candidates.channels
            return [step.component.search(query, 20, store) for step in channels]

        words, full = hits()
        again = hits(bm25="19")
        assert again[0] is not words
        assert again[1] is full
        assert hits()[0] is words
        for other in "12345":
            hits(bm25=other)
        assert hits()[0] is not words
        assert hits()[1] is full


def test_a_tuning_without_a_gain_keeps_the_start(tmp_path: Path) -> None:
    file = write_file(tmp_path / "p.yaml", PIPELINE.replace("single: {title: 0}", "single: {title: 1.2}"))
    dataset = titles(tmp_path / "mixed", by_title=4, by_text=4)
    seen: list[tuple[str, int, int]] = []
    report = tune(
        str(file), [dataset], folds=2, trials=10, environ={}, now=NOW,
        progress=lambda now: seen.append((now.phase, now.done, now.total)),
    )  # fmt: skip
    assert report.refusal == "no other value of any parameter gains more than its standard error"
    assert (report.used, report.remarks()) == ({}, {})
    assert report.overall.main.verdict == "undecided"
    assert report.overall.start["nDCG@10"] == 1.0
    assert seen[-1] == ("search", 30, 30)
    assert [done for phase, done, _ in seen if phase == "search"] == sorted(d for p, d, _ in seen if p == "search")
    text = pipelines.pipeline_text_with(
        str(file), {}, report.used, file=Path("kept.yaml"), heading=report.heading(), remarks=report.remarks()
    )
    assert f"# Verdict: {report.verdict}." in text.splitlines()


def test_what_goes_wrong_in_another_process_is_said_here(tmp_path: Path) -> None:
    file = write_file(tmp_path / "p.yaml", PIPELINE)
    asked = [
        (one, one.dataset.judged()) for one in Evaluation(titles(tmp_path / "mixed", by_title=4), environ={}).grounds
    ]
    with ExitStack() as stack:
        sets = stack.enter_context(open_sets(asked, str(file), environ={}, progress=lambda _: None))
        ask = stack.enter_context(asking(work(sets, str(file), {}, NOW), 2))
        with pytest.raises(SpeckitError, match="no step 'bm52'"):
            ask(0, {"bm52.k1": "1.0"}, np.arange(4))
        for process in active_children():
            process.kill()
            process.join()
        with pytest.raises(SpeckitError, match="a process that shared the work has ended"):
            ask(0, {}, np.arange(4))
        absent = stack.enter_context(asking(work(sets, "absent.yaml", {}, NOW), 2))
        with pytest.raises(SpeckitError, match="neither a file nor a preset"):
            absent(0, {}, np.arange(4))


@pytest.mark.parametrize("trials", [0, -1])
def test_a_search_needs_a_trial(trials: int, tmp_path: Path) -> None:
    with pytest.raises(SpeckitError, match=f"the number of trials is {trials}; accepted: 1 and above"):
        tune("default", [titles(tmp_path / "mixed", by_title=4)], trials=trials, environ={})


def test_harm_on_a_dataset_refuses_a_setting_and_harm_on_an_unseen_one_is_said(tmp_path: Path) -> None:
    file = write_file(tmp_path / "p.yaml", PIPELINE)
    sets = [titles(tmp_path / name, by_title=5, by_text=5) for name in ("one", "two")]
    report = tune(str(file), sets, parameters=["bm25.single"], folds=2, trials=4, environ={}, now=NOW)
    assert report.refusal == ""
    assert [(figures.dataset, figures.tuned["nDCG@10"]) for figures in report.left_out] == [("one", 1.0), ("two", 1.0)]
    assert report.verdict.startswith("took the tuned setting: tuned is better than start on nDCG@10: +0.5000 ")
    harmed = tuple(replace(f, comparisons=(replace(f.main, verdict="worse"),)) for f in report.held_out)
    refused = replace(report, held_out=harmed)
    assert refused.verdict == "kept the start: the tuned setting is significantly worse on one, two"
    assert (refused.used, refused.remarks(), refused.accepted) == ({}, {}, False)
    warned = replace(report, left_out=harmed[1:])
    assert warned.used == report.overrides
    assert warned.verdict == (f"{report.verdict}; a setting found without two is worse there: other data may not gain")
    backward = replace(report.overall, comparisons=(replace(report.overall.main, delta=0.0),))
    assert replace(report, overall=backward).refusal == (
        "on held-out queries the tuned setting gains no more than its standard error"
    )
