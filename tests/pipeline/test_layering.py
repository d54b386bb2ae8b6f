"""What a file does not name keeps the value it inherits, key by key (features P1, P2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from files import write_file

from speckit_memory.engine import components
from speckit_memory.engine.pipelines import pipelines
from speckit_memory.pipeline.configuration.builder import CheckedPipeline, build, examine
from speckit_memory.pipeline.roles.contracts import Role


def checked(
    tmp_path: Path, text: str, overrides: dict[str, str] | None = None, name: str = "p.yaml"
) -> CheckedPipeline:
    file = write_file(tmp_path / name, text)
    found = examine(str(file), components.registry(), {}, overrides)
    assert [str(problem) for problem in found.problems] == []
    return found


def params(whole: CheckedPipeline, step: str) -> dict[str, Any]:
    (found,) = (entry.params for entry in whole.bound if entry.step.id == step)
    assert found is not None
    return found.model_dump(by_alias=True)


SHIPPED = examine("default", components.registry(), {})
WEIGHTS = params(SHIPPED, "z_score")["weights"]


@pytest.mark.requirement("P2")
def test_weights_that_a_file_does_not_name_stay_what_they_are(tmp_path: Path) -> None:
    shipped = ", ".join(f"{channel}: {WEIGHTS[channel]}" for channel in ("bm25", "vector"))
    same = checked(tmp_path, f"fusion:\n  - {{use: z_score, weights: {{{shipped}}}}}\n")
    assert same.hash == SHIPPED.hash
    other = checked(tmp_path, "fusion:\n  - {use: z_score, weights: {bm25: 0.5}}\n")
    assert params(other, "z_score") == params(SHIPPED, "z_score") | {"weights": WEIGHTS | {"bm25": 0.5}}


@pytest.mark.requirement("P2")
def test_a_step_that_is_listed_again_says_only_what_differs(tmp_path: Path) -> None:
    text = """\
candidates:
  channels: [{use: bm25, single: {body: 0.1}}, vector, graph, trigger, identifier, constitutional]
rerank: [{use: regularise, neighbours: 5}, {use: maxsim, optional: false}, {use: pin, id: named}, min_max, pin]
"""
    whole = checked(tmp_path, text)
    before = params(SHIPPED, "bm25")
    assert params(whole, "bm25") == before | {"single": before["single"] | {"body": 0.1}}
    assert params(whole, "vector") == params(SHIPPED, "vector")
    assert params(whole, "regularise") == params(SHIPPED, "regularise") | {"neighbours": 5}
    assert params(whole, "named") == params(SHIPPED, "named")
    assert {step.id: step.optional for step in whole.effective.slots["rerank"]} == {
        "regularise": True, "maxsim": False, "named": False, "min_max": False, "pin": False,
    }  # fmt: skip


@pytest.mark.requirement("P2")
def test_another_id_or_component_or_no_pipeline_below_starts_from_the_components_own_values(tmp_path: Path) -> None:
    of_one = dict.fromkeys(WEIGHTS, 1.0) | {"bm25": 0.5}
    named = checked(tmp_path, "fusion: [{use: z_score, id: mine, weights: {bm25: 0.5}}]\n")
    assert params(named, "mine")["weights"] == of_one
    ranks = checked(tmp_path, "fusion: [{use: rrf, id: z_score, weights: {bm25: 0.5}}]\nrerank: []\n")
    assert params(ranks, "z_score")["weights"] == of_one | {"graph": 1.5}
    alone = "extends: none\ncandidates: {channels: [bm25, vector]}\nfusion: [{use: z_score, weights: {bm25: 0.5}}]\n"
    assert params(checked(tmp_path, alone), "z_score")["weights"] == {"bm25": 0.5, "vector": 1.0}


WEIGHING = [
    entry.name for entry in components.registry() if entry.role is Role.FUSER and "weights" in entry.params.model_fields
]


@pytest.mark.parametrize("fuser", WEIGHING)
def test_every_fuser_that_weighs_channels_says_the_weight_of_each(fuser: str, tmp_path: Path) -> None:
    channels = "extends: none\ncandidates: {channels: [bm25, vector, graph]}\n"
    whole = checked(tmp_path, channels + f"fusion: [{{use: {fuser}, weights: {{vector: 0.5}}}}]\n")
    weights = params(whole, fuser)["weights"]
    assert (list(weights), weights["vector"], weights["bm25"]) == (["bm25", "vector", "graph"], 0.5, 1.0)


def test_what_a_file_that_extends_nothing_does_not_mention_is_empty(tmp_path: Path) -> None:
    whole = checked(tmp_path, "extends: none\ncandidates: {channels: [bm25]}\nfusion: [{use: single, scale: bm25}]\n")
    assert [step.id for step in whole.effective.steps()] == ["bm25", "single"]


@pytest.mark.requirement("P2")
def test_values_come_through_several_files_and_each_says_from_which(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(
        "budgets_ms: {simple: 7}\nfusion: [{use: z_score, weights: {graph: 0.9}, missing: mean}]\n"
    )
    text = f"extends: {tmp_path}/base.yaml\nfusion:\n  - use: z_score\n    weights:\n      bm25: 0.5\n"
    whole = checked(tmp_path, text)
    assert params(whole, "z_score")["weights"] == WEIGHTS | {"graph": 0.9, "bm25": 0.5}
    assert whole.effective.budgets_ms == SHIPPED.effective.budgets_ms | {"simple": 7.0}
    shown = pipelines.show(str(tmp_path / "p.yaml"), {}, {"z_score.weights.trigger": "2"}, effective=True, origin=True)
    lines = [line.strip() for line in shown.splitlines()]
    assert f"bm25: 0.5  # {tmp_path}/p.yaml:5:13" in lines
    assert f"graph: 0.9  # {tmp_path}/base.yaml:2:42" in lines
    assert "trigger: 2.0  # this call" in lines
    assert f"missing: mean  # {tmp_path}/base.yaml:2:57" in lines
    assert "normalise: none  # default of z_score" in lines
    assert f"simple: 7.0  # {tmp_path}/base.yaml:1:22" in lines
    assert any(line.startswith("vector: ") and "# (shipped) config/pipeline.yaml:" in line for line in lines)
    assert any(line.startswith("complex: ") and "# (shipped) config/pipeline.yaml:" in line for line in lines)


@pytest.mark.requirement("P2")
def test_an_inherited_weight_goes_with_its_channel(tmp_path: Path) -> None:
    channels = "candidates: {channels: [bm25, vector, identifier]}\n"
    inherited = checked(tmp_path, channels)
    assert params(inherited, "z_score")["weights"] == {k: WEIGHTS[k] for k in ("bm25", "vector", "identifier")}
    assert [params(inherited, step)["channels"] for step in ("typed", "named")] == [[], ["identifier"]]
    listed = checked(tmp_path, channels + "fusion: [{use: z_score, weights: {bm25: 0.5}}]\n")
    assert params(listed, "z_score")["weights"] == params(inherited, "z_score")["weights"] | {"bm25": 0.5}
    file = write_file(tmp_path / "own.yaml", channels + "fusion: [{use: z_score, weights: {graph: 0.5}}]\n")
    [problem] = pipelines.check(str(file), {})
    assert problem.message.startswith("'z_score': there is no channel 'graph'; declared channels: bm25, ")


def test_a_weight_of_a_channel_that_waits_for_a_flag_waits_with_it(tmp_path: Path) -> None:
    text = """\
extends: none
candidates: {channels: [bm25, vector, {use: degree, flag: SPECKIT_DEGREE_BOOST}]}
fusion: [{use: z_score, weights: {bm25: 0.5, degree: 0.2}}]
"""
    assert params(checked(tmp_path, text), "z_score")["weights"] == {"bm25": 0.5, "vector": 1.0}
    opened = build(str(tmp_path / "p.yaml"), components.registry(), {"SPECKIT_DEGREE_BOOST": "true"})
    assert opened.fusion.fuser.params.model_dump()["weights"] == {"bm25": 0.5, "vector": 1.0, "degree": 0.2}


def test_the_list_says_which_steps_take_part_also_below_a_flag(tmp_path: Path) -> None:
    whole = checked(tmp_path, "extends: catalogue\nfusion: [z_score]\n")
    fusion = whole.effective.slots["fusion"]
    assert [(step.id, step.flags, step.replaces) for step in fusion] == [("z_score", (), "")]
    assert params(whole, "z_score")["normalise"] == "min_max"


def test_an_inherited_value_that_does_not_fit_is_told_at_the_step_that_inherits_it(tmp_path: Path) -> None:
    file = write_file(
        tmp_path / "p.yaml",
        "candidates:\n  channels: [bm25, graph, trigger, identifier, constitutional,\n"
        "    {use: vector, level: chunk}]\nrerank: [collapse, min_max]\n",
    )
    [problem] = pipelines.check(str(file), {})
    assert str(problem).startswith(f"{file}:3:5: E119 'vector': passages have no neighbours; ")
    assert "That value is inherited from (shipped) config/pipeline.yaml:" in problem.message


@pytest.mark.requirement("P2")
@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("z_score.weights.bm25", "0.9", ("z_score", "weights", "bm25")),
        ("bm25.fields.title", "2", ("bm25", "fields", "title")),
        ("bm25.single.title", "1", ("bm25", "single", "title")),
        ("bm25.feedback.model", "rm3", ("bm25", "feedback", "model")),
    ],
)
def test_a_call_sets_one_key_of_a_mapping_and_leaves_the_others(
    path: str, value: str, place: tuple[str, str, str]
) -> None:
    step, parameter, key = place
    before = params(SHIPPED, step)
    changed = examine("default", components.registry(), {}, {path: value})
    assert changed.problems == ()
    wanted: object = value if value.isalnum() and not value.isdigit() else float(value)
    assert params(changed, step) == before | {parameter: before[parameter] | {key: wanted}}
    assert changed.hash != SHIPPED.hash


@pytest.mark.requirement("P7")
@pytest.mark.parametrize(
    ("source", "path", "message"),
    [
        ("default", "z_score.weights.bm52", "there is no channel 'bm52'; did you mean 'bm25'? declared "),
        ("default", "bm25.fields.titel", "bm25 has no parameter 'fields.titel'; did you mean 'title'?"),
        ("default", "bm25.k1.title", "'bm25.k1' is 1.2 and has no key 'title'; set 'bm25.k1' as a whole"),
        ("catalogue", "rrf.weights.bm25", "'rrf.weights' is 'by_intent' and has no key 'bm25'; set 'rrf."),
    ],
)  # fmt: skip
def test_a_key_that_is_none_is_refused_where_the_call_sets_it(source: str, path: str, message: str) -> None:
    [problem] = pipelines.check(source, {}, {path: "1"})
    assert message in problem.message
    assert problem.where is not None
    assert problem.where.file == f"--set {path}"


@pytest.mark.requirement("P2")
@pytest.mark.parametrize(
    ("path", "value", "rest"),
    [
        ("mmr.by_intent.understand", "0.9", ("mmr", "by_intent", "understand", 0.9)),
        ("router.simple", "{limit: 7}", ("router", "simple", "limit", 7)),
    ],
)
def test_a_mapping_is_laid_upon_the_components_own_values_too(
    path: str, value: str, rest: tuple[str, str, str, float]
) -> None:
    step, parameter, key, wanted = rest
    environ = {"SPECKIT_COMPLEXITY_ROUTER": "true"}
    below = {
        entry.step.id: entry.registered.params().model_dump(by_alias=True)[parameter]
        for entry in examine("catalogue", components.registry(), environ).bound
        if entry.step.id == step and entry.registered
    }[step]
    changed = examine("catalogue", components.registry(), environ, {path: value})
    assert changed.problems == ()
    assert params(changed, step)[parameter] == below | {key: wanted}


def test_the_hash_follows_the_values_that_will_be_used_alone(tmp_path: Path) -> None:
    text = "extends: none\ncandidates: {channels: [bm25, vector]}\nfusion: [{use: rrf, weights: {}}]\n"
    implied = checked(tmp_path, text).hash
    assert checked(tmp_path, text.replace("{}", "{vector: 1, bm25: 1.0}")).hash == implied
    assert checked(tmp_path, text.replace("{}", "{vector: 1, bm25: 0.5}")).hash != implied
    assert pipelines.diff(str(tmp_path / "p.yaml"), "default", {}) != ""
