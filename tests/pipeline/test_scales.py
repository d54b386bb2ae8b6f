"""Two scales are never combined without a normaliser: refused when the file is read, or right by type (feature P7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from files import write_file
from frame.hostile import attacked, component, registered
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.engine import Memory
from speckit_memory.engine.answers.request import SearchRequest
from speckit_memory.engine.pipelines import pipelines
from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.configuration.builder import build, examine
from speckit_memory.pipeline.model.columns import Fused
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.roles.composition import BoundStep, Pipeline
from speckit_memory.pipeline.roles.contracts import Role
from speckit_memory.pipeline.running.runner import Outcome, Runner

pytestmark = pytest.mark.requirement("P7")
NOW = 1_800_000_000.0
TEXTS = ("payment gateway retries", "how is the quokka cache measured", "importer crash", "zebra")


def text(channels: Sequence[str], fusion: Sequence[str], rerank: Sequence[str] = ()) -> str:
    """A pipeline file with these steps, a line each from line 5 on."""
    lines = ["pipeline: scales", "candidates:", "  understand: [intent]", "  channels:"]
    lines += [f"    - {step}" for step in channels]
    lines += ["  recover: []", "fusion:", *(f"  - {step}" for step in fusion)]
    lines += ["rerank:", *(f"  - {step}" for step in rerank)] if rerank else ["rerank: []"]
    return "\n".join([*lines, "annotate: []", "extends: none", ""])


def problems(tmp_path: Path, content: str) -> list[tuple[int, int, str]]:
    file = write_file(tmp_path / "p.yaml", content)
    return [(p.where.line, p.where.column, p.message) for p in pipelines.check(str(file), {}) if p.where]


def run(tmp_path: Path, content: str, memory: Memory, query: str = TEXTS[0]) -> Outcome:
    file = write_file(tmp_path / "p.yaml", content)
    pipeline = build(str(file), registered(), {})
    store = memory.session.view()
    return Runner(pipeline, strict=True).run(SearchRequest(text=query, limit=100).query(store, NOW, None), store)


Z, UNIT = "{use: z_score}", "{use: z_score, normalise: min_max}"
REFUSED = {
    "a boost on ranks": (["{use: rrf}", "{use: novelty}"], [], (9, "novelty", "scores on the scale rank_term")),
    "a boost on z scores": ([Z, "{use: session}"], [], (9, "session", "scores on the scale z_score")),
    "a factor on z scores": ([Z, "{use: importance}"], [], (9, "importance", "here they are on the scale z_score")),
    "the composite on ranks": (["{use: rrf}", "{use: composite}"], [], (9, "composite", "on the scale rank_term")),
    "maxsim after min_max": ([Z], ["min_max", "maxsim"], (11, "maxsim", "here they are on the scale unit")),
    "maxsim on normalised scores": ([UNIT], ["maxsim"], (10, "maxsim", "here they are on the scale unit")),
    "mmr on z scores": ([Z], ["mmr"], (10, "mmr", "here they are on the scale z_score")),
    "mmr after mmr": ([UNIT], ["mmr", "{use: mmr, id: again}"], (11, "again", "on the scale marginal")),
    "mmr after a lift": ([UNIT], ["pin", "mmr"], (11, "mmr", "here they are on the scale boost")),
    "mmr behind boosts": ([UNIT, "recency"], ["mmr"], (11, "mmr", "here they are on the scale boost")),
    "the floor behind mmr": ([UNIT], ["mmr", "channel_floor"], (11, "channel_floor", "on the scale marginal")),
    "the regions on z scores": ([Z], ["context_diversity"], (10, "context_diversity", "on the scale z_score")),
    "mmr behind a normaliser that may be skipped": (
        [Z], ["{use: min_max, optional: true}", "mmr"],
        (11, "mmr", "here they are on the scale z_score when 'min_max' is skipped"),
    ),
    "mmr behind two steps of which one may be skipped": (
        [Z], ["{use: min_max, optional: true}", "regularise", "mmr"],
        (12, "mmr", "here they are on the scale z_score when 'min_max' is skipped"),
    ),
    "maxsim behind a standardiser that may be skipped": (
        [UNIT], ["{use: standardise, optional: true}", "maxsim"],
        (11, "maxsim", "here they are on the scale unit when 'standardise' is skipped"),
    ),
    "a boost with a cap that others do not share": (
        [UNIT, "{use: causal, cap_group: g, cap: 0.2}", "{use: session, cap_group: g, cap: 0.3}"], [],
        (10, "session", "caps the group 'g' at 0.3, and 'causal' (line 9) at 0.2; keep one"),
    ),
    "a group without a cap": ([UNIT, "{use: novelty, cap_group: g}"], [], (9, "novelty", "sets no 'cap'")),
    "a factor with a ceiling": (
        [UNIT, "{use: importance, ceiling: 0.9}"], [], (9, "importance", "'ceiling' bounds additions"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_scores_are_not_combined_across_scales(case: str, tmp_path: Path) -> None:
    fusion, rerank, (line, step, message) = REFUSED[case]

    [(found_line, _, found)] = problems(tmp_path, text(["bm25"], fusion, rerank))

    assert (found_line, found.partition(" ")[0]) == (line, f"'{step}'")
    assert message in found


ACCEPTED = {
    "what is normalised may be boosted": ([UNIT, "novelty", "importance"], ["{use: min_max}", "mmr", "pin"]),
    "optional steps that keep the scale": ([Z], ["{use: regularise, optional: true}", "maxsim", "min_max", "mmr"]),
    "what is needed follows a step that may be skipped": (
        [Z], ["{use: maxsim, optional: true}", "{use: min_max}", "{use: mmr, optional: true}", "{use: pin}"],
    ),
    "ranks may be multiplied": (["{use: rrf}", "importance", "validation"], ["min_max"]),
    "z scores again after mmr": ([UNIT], ["mmr", "standardise", "maxsim"]),
}  # fmt: skip


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_fits_is_accepted_and_runs(case: str, tmp_path: Path, memory: Memory) -> None:
    fusion, rerank = ACCEPTED[case]
    content = text(["bm25", "vector"], fusion, rerank)

    assert problems(tmp_path, content) == []
    assert len(run(tmp_path, content, memory).pool)


def test_only_one_channel_passes_without_a_fuser(tmp_path: Path) -> None:
    two = problems(tmp_path, text(["bm25", "vector"], ["{use: single, scale: bm25}"]))
    other = problems(tmp_path, text(["vector"], ["{use: single, scale: bm25}"]))

    assert two == [
        (9, 5, "'single': passes one channel through, but the pipeline has 2 (bm25, vector); use rrf or z_score")
    ]
    assert other == [(8, 26, "'single': 'vector' scores on the scale cosine, not bm25")]


def test_a_factor_that_says_nothing_about_scales_is_refused_on_signed_ones(tmp_path: Path) -> None:
    louder = type("Louder", (component(Role.SIGNAL, lambda *_: None),), {"combine": "multiply"})
    file = tmp_path / "p.yaml"
    for fuser, scale in ((Z, "z_score"), ("{use: single, scale: cosine}", "cosine")):
        file.write_text(text(["vector"], [fuser, "hostile"]), encoding="utf-8")

        [problem] = examine(str(file), registered((Role.SIGNAL, louder, "hostile")), {}).problems

        assert str(problem).startswith(f"{file}:9:5: E119 'hostile' multiplies scores, which may be negative")
        assert scale in problem.message


def test_scores_outside_the_declared_scale_are_an_error(memory: Memory, tmp_path: Path) -> None:
    def loud(_: Any, candidates: Any) -> Fused:
        return Fused(("a", "b"), np.full((len(candidates), 2), 0.8))

    for scale, fails in ((Scale.UNIT, True), (Scale.BOOST, False)):
        pipeline = attacked(tmp_path, Role.FUSER, component(Role.FUSER, loud, gives=scale))
        store = memory.session.view()
        query = SearchRequest(text=TEXTS[0]).query(store, NOW, None)
        if fails:
            with pytest.raises(SpeckitError, match=r"scores from 1\.6 to 1\.6; accepted on the scale unit: 0 to 1"):
                Runner(pipeline).run(query, store)
        else:
            assert len(Runner(pipeline).run(query, store).pool)


@pytest.mark.parametrize("role", [Role.CHANNEL, Role.FUSER])
def test_whatever_makes_scores_declares_their_scale(role: Role) -> None:
    with pytest.raises(SpeckitError, match="must declare the scale of its scores"):
        registered((role, component(role, lambda *_: None, gives=None), "hostile"))


CHANNELS = ("bm25", "vector", "fts5", "graph", "trigger", "constitutional", "degree")
FUSERS = (
    "{use: rrf}", "{use: rrf, normalise: min_max}", "{use: rsf}", Z, UNIT, "{use: z_score, normalise: logistic}",
    "{use: single, scale: bm25}", "{use: single, scale: cosine}", "{use: single, scale: unit}",
    "{use: single, scale: bm25, normalise: min_max}",
)  # fmt: skip
SIGNALS = registered().names(Role.SIGNAL)
RERANKERS = [name for name in registered().names(Role.RERANKER) if name != "cross_encoder"]
RESCALING = ("min_max", "standardise", "mmr", "maxsim", "channel_floor")


@st.composite
def steps(draw: st.DrawFn, names: Sequence[str], most: int) -> list[str]:
    chosen = draw(st.lists(st.sampled_from(names), max_size=most, unique=True))
    return [f"{{use: {name}, optional: {str(draw(st.booleans())).lower()}}}" for name in chosen]


@st.composite
def files(draw: st.DrawFn) -> str:
    channels = draw(st.lists(st.sampled_from(CHANNELS), min_size=1, max_size=3, unique=True))
    rerankers = draw(st.sampled_from([RERANKERS, RESCALING]))
    if draw(st.booleans()):
        channels = [f"{{use: {name}, level: chunk}}" if name == "vector" else name for name in channels]
    return text(channels, [draw(st.sampled_from(FUSERS)), *draw(steps(SIGNALS, 2))], draw(steps(rerankers, 4)))


def lacking(pipeline: Pipeline, skipped: Sequence[str]) -> Pipeline:
    def left(steps: tuple[BoundStep[Any], ...]) -> tuple[BoundStep[Any], ...]:
        return tuple(step for step in steps if step.id not in skipped)

    fusion = replace(pipeline.fusion, signals=left(pipeline.fusion.signals))
    return replace(pipeline, fusion=fusion, rerank=left(pipeline.rerank))


@given(content=files(), query=st.sampled_from(TEXTS), data=st.data())
def test_what_is_accepted_runs_on_its_scales_and_what_is_refused_has_a_place(
    content: str, query: str, data: st.DataObject, memory: Memory, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = write_file(tmp_path_factory.getbasetemp() / "generated.yaml", content)
    checked = examine(str(file), registered(), {})
    if checked.problems:
        lines = content.splitlines()
        for problem in checked.problems:
            assert problem.where is not None, problem
            assert problem.where.file == str(file)
            assert lines[problem.where.line - 1][problem.where.column - 1 :], problem
        return
    pipeline = build(str(file), registered(), {})
    optional = [step.id for step in (*pipeline.fusion.signals, *pipeline.rerank) if step.optional]
    some = st.lists(st.sampled_from(optional), unique=True) if optional else st.just([])
    pipeline = lacking(pipeline, data.draw(st.sampled_from([[], optional]) | some))
    store = memory.session.view()

    outcome = Runner(pipeline, strict=True).run(SearchRequest(text=query, limit=100).query(store, NOW, None), store)

    for step in outcome.pool.steps:
        low, high = step.scale.bounds
        assert np.isfinite(step.after).all()
        if step.scale is Scale.UNIT:
            assert ((step.after >= low) & (step.after <= high)).all(), step.step
    scored = {step.id: step for step in (*pipeline.fusion.signals, *pipeline.rerank)}
    for before, after in zip(outcome.pool.steps, outcome.pool.steps[1:], strict=False):
        needs = scored[after.step].about.needs
        assert not needs or before.scale in needs, (before, after.step)
        assert after.kind != "add" or before.scale.additive
        assert after.kind != "multiply" or (before.after >= 0).all() or before.scale.multipliable
