"""From a file to a pipeline: layers, flags, binding, rules; all problems at once (features P2, P7)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from files import write_file

import speckit_memory.config.workspace.settings
from speckit_memory.config.flags.flags import load_flags, unknown_variables
from speckit_memory.config.pipelines.sources import presets
from speckit_memory.engine import components
from speckit_memory.engine.pipelines import pipelines
from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.configuration.builder import build, examine
from speckit_memory.server.commands import cli

BASE = """\
pipeline: mine
candidates:
  understand: []
  channels:
    - {use: bm25}
    - {use: vector}
  recover: []
fusion:
  - {use: rrf, id: fuse}
rerank: []
annotate: []
extends: none
"""


def problems(tmp_path: Path, text: str) -> list[tuple[int, int, str]]:
    file = write_file(tmp_path / "p.yaml", text)
    found = pipelines.check(str(file), {})
    return [(p.where.line, p.where.column, p.code) for p in found if p.where]


def steps(tmp_path: Path, text: str, **environ: str) -> list[str]:
    file = write_file(tmp_path / "p.yaml", text)
    checked = examine(str(file), components.registry(), environ)
    assert checked.problems == ()
    return [step.id for step in checked.effective.steps()]


@pytest.mark.requirement("P7.places")
def test_six_mistakes_in_one_file_are_six_problems_at_their_places(tmp_path: Path) -> None:
    text = """\
pipeline: mistaken
candidates:
  understand:
    - {use: complexity}
    - {use: router, simple: {channels: [vector], limit: 5}}
  channels:
    - {use: bm25}
    - {use: vektor}
    - {use: vector, limit: 0}
  recover: []
fusion:
  - {use: rrf}
  - {use: rsf}
rerank: []
rerank: []
annotate:
  - {use: mmr}
"""

    assert problems(tmp_path, text) == [
        (5, 29, "E119"),  # the router leaves one channel
        (8, 13, "E116"),  # misspelt
        (9, 28, "E118"),  # out of range
        (13, 5, "E119"),  # a second fuser
        (15, 1, "E112"),  # a duplicate key
        (17, 5, "E117"),  # a step that scores under annotate
    ]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        # a misspelt channel that other steps speak of; a second fuser on another scale
        ({"{use: trigger}": "{use: triger}"}, ["E116"]),
        ({"fusion:": "fusion:\n  - {use: rrf}"}, ["E119"]),
        ({"{use: z_score,": "{use: z_score, flag: nope,"}, ["E120"]),
        ({"optional: true": "optional: yes"}, ["E113"]),
        ({"extends: none": "extends: nope", "annotate:": "anotate:"}, ["E115", "E121"]),
    ],
)
@pytest.mark.requirement("P7")
def test_one_mistake_is_one_problem(tmp_path: Path, change: dict[str, str], expected: list[str]) -> None:
    text = pipelines.show("default", {})
    for old, new in change.items():
        assert old in text, old
        text = text.replace(old, new, 1)

    found = pipelines.check(str(_written(tmp_path, text)), {})

    assert sorted(problem.code for problem in found) == expected, [str(problem) for problem in found]
    assert all(problem.where and problem.where.file == str(tmp_path / "p.yaml") for problem in found)


@pytest.mark.requirement("P7")
def test_a_clash_with_an_inherited_step_is_shown_in_the_users_own_file(tmp_path: Path) -> None:
    file = str(_written(tmp_path, "pipeline: mine\nfusion: [{use: rrf}]\n"))

    found = pipelines.check(file, {})

    assert {(p.where.file, p.where.line) for p in found if p.where} == {(file, 2)}
    assert all("inherited from (shipped) config/pipeline.yaml" in p.message for p in found)


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("pipeline: mine", "pipline: mine", (1, 1, "E115")),
        ("- {use: rrf, id: fuse}", "- {use: rrf, id: bm25}", (9, 5, "E119")),
        ("- {use: rrf, id: fuse}", "[]", (8, 1, "E119")),
        ("- {use: rrf, id: fuse}", "- {use: causal}\n  - {use: rrf}", (9, 5, "E119")),
        ("- {use: rrf, id: fuse}", "- {use: rrf, k: sixty}", (9, 19, "E118")),
        ("- {use: rrf, id: fuse}", "- {use: rrf, kk: 60}", (9, 16, "E118")),
        ("- {use: rrf, id: fuse}", "- {use: rrf, flag: SPECKIT_NO_SUCH}", (9, 22, "E120")),
        ("- {use: rrf, id: fuse}", "- {use: rrf, replaces: nothing}", (9, 26, "E119")),
        ("- {use: rrf, id: fuse}", "- {k: 60}", (9, 5, "E114")),
        ("- {use: rrf, id: fuse}", "- [rrf]", (9, 5, "E114")),
        ("rerank: []", "rerank: {use: mmr}", (10, 9, "E114")),
        ("rerank: []", "rerank: [{use: mmr}]", (10, 10, "E119")),
        ("{use: vector}", "{use: vector, level: chunk}", (6, 7, "E119")),
        ("annotate: []", "annotate: [{use: attribution, optional: 1}]", (11, 41, "E114")),
        ("annotate: []", "annotate: [{use: state_filter}, {use: state_filter}]", (11, 33, "E119")),
        ("pipeline: mine", "budgets_ms: {simple: -1}", (1, 22, "E114")),
    ],
)  # fmt: skip
@pytest.mark.requirement("P7")
def test_a_mistake_is_reported_at_its_place(tmp_path: Path, old: str, new: str, place: tuple[int, int, str]) -> None:
    assert old in BASE

    assert place in problems(tmp_path, BASE.replace(old, new, 1))


@pytest.mark.requirement("P6.channels")
def test_channels_are_weighed_by_intent_once(tmp_path: Path) -> None:
    text = BASE.replace("understand: []", "understand: [intent]").replace(
        "- {use: rrf, id: fuse}",
        "- {use: rrf, id: fuse, weights: by_intent, normalise: min_max}\n"
        "  - {use: composite, id: one, model: by_intent}\n  - {use: composite, id: two, model: by_intent}",
    )

    found = pipelines.check(str(_written(tmp_path, text)), {})

    assert [(p.where.line, p.code) for p in found if p.where] == [(11, "E119")]
    assert "'one'" in found[0].message


def _written(tmp_path: Path, text: str) -> Path:
    return write_file(tmp_path / "p.yaml", text)


@pytest.mark.requirement("P2.steps")
def test_steps_are_added_removed_and_reordered_by_the_file_alone(tmp_path: Path) -> None:
    assert steps(tmp_path, BASE) == ["bm25", "vector", "fuse"]
    swapped = BASE.replace("    - {use: bm25}\n", "").replace("{use: vector}", "{use: vector}\n    - {use: bm25}")
    assert steps(tmp_path, swapped) == ["vector", "bm25", "fuse"]
    assert steps(tmp_path, BASE.replace("annotate: []", "annotate: [attribution]"))[-1] == "attribution"


@pytest.mark.requirement("P2")
def test_what_a_file_leaves_out_comes_from_the_pipeline_it_extends(tmp_path: Path) -> None:
    inherited = steps(tmp_path, "fusion: [{use: z_score, id: mine}]\n")
    default = [step.id for step in examine("default", components.registry(), {}).effective.steps()]

    assert "mine" in inherited
    assert set(default) - set(inherited) == {"z_score"}
    assert set(inherited) - set(default) == {"mine"}


def test_a_file_may_extend_another_file(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(BASE, encoding="utf-8")

    assert steps(tmp_path, f"extends: {tmp_path}/base.yaml\nannotate: [attribution]\n") == [
        "bm25", "vector", "fuse", "attribution",
    ]  # fmt: skip


def test_files_that_extend_one_another_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(f"extends: {file}\n", encoding="utf-8")

    assert "E114" in {problem.code for problem in pipelines.check(str(file), {})}


@pytest.mark.requirement("P2.parameters")
def test_a_call_overrides_a_parameter_and_the_hash_tells(tmp_path: Path) -> None:
    file = str(_written(tmp_path, BASE))
    plain = build(file, components.registry(), {})
    changed = build(file, components.registry(), {}, {"fuse.k": "20"})

    assert changed.fusion.fuser.params.model_dump()["k"] == 20
    assert changed.hash != plain.hash


def test_an_override_of_an_unknown_step_offers_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(SpeckitError, match="did you mean 'fuse'"):
        build(str(_written(tmp_path, BASE)), components.registry(), {}, {"fusse.k": "20"})


def test_the_hash_does_not_depend_on_comments_or_layout(tmp_path: Path) -> None:
    one = build(str(_written(tmp_path, BASE)), components.registry(), {}).hash
    other = build(str(_written(tmp_path, "# a remark\n" + BASE.replace("[]", "[ ]"))), components.registry(), {}).hash

    assert one == other


@pytest.mark.requirement("E4.baseline")
def test_the_baseline_is_bm25_alone() -> None:
    steps = [step.id for step in examine("bm25", components.registry(), {}).effective.steps()]

    assert steps == ["bm25", "single"]


@pytest.mark.parametrize("preset", presets())
def test_every_preset_is_without_problems(preset: str) -> None:
    assert pipelines.check(preset, {}) == []


@pytest.mark.parametrize("preset", presets())
@pytest.mark.parametrize("origin", [False, True])
def test_what_is_shown_is_a_pipeline_that_does_the_same(preset: str, origin: bool, tmp_path: Path) -> None:
    shown = pipelines.show(preset, {}, effective=True, origin=origin)
    again = pipelines.show(str(_written(tmp_path, shown)), {}, effective=True)

    comments = re.compile(r"^#.*\n", re.MULTILINE)  # the hash, and the steps whose flag is closed
    assert comments.sub("", again) == comments.sub("", pipelines.show(preset, {}, effective=True))


def test_a_flag_decides_whether_a_step_takes_part() -> None:
    assert not load_flags({})["SPECKIT_MMR"].on
    assert load_flags({"SPECKIT_MMR": "true"})["SPECKIT_MMR"].on
    with pytest.raises(SpeckitError, match="SPECKIT_MMR is 'maybe'"):
        load_flags({"SPECKIT_MMR": "maybe"})


@pytest.mark.requirement("P7")
def test_a_flag_without_a_usable_value_is_the_only_problem() -> None:
    [problem] = pipelines.check("catalogue", {"SPECKIT_MMR": "maybe"})

    accepted = "dark_run, enabled, false, off, permanent, shadow, true"
    assert str(problem) == f"E030 the environment variable SPECKIT_MMR is 'maybe'; accepted: {accepted}"


@pytest.mark.requirement("P7")
def test_a_variable_that_is_neither_flag_nor_setting_is_remarked_on() -> None:
    environ = {"SPECKIT_MRM": "1", "SPECKIT_NOVELTY": "1", "SPECKIT_QQQQ": "", "SPECKIT_DB": "x", "SPECKIT_MMR": "true"}

    assert unknown_variables(environ, ["SPECKIT_OTHER"]) == [
        "the environment variable SPECKIT_MRM has no effect; did you mean 'SPECKIT_MMR'?",
        "the environment variable SPECKIT_NOVELTY has no effect; did you mean 'SPECKIT_NOVELTY_BOOST'?",
        "the environment variable SPECKIT_QQQQ has no effect: no flag or setting has this name",
    ]
    assert unknown_variables({"SPECKIT_OTHER": "1"}, ["SPECKIT_OTHER"]) == []
    assert pipelines.check("catalogue", environ) == []


@pytest.mark.requirement("P7")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("pipeline check bm25", "bm25: no problems"),
        ("flags list", "SPECKIT_MMR"),
        ("doctor", "nothing failed, 2 warnings"),
    ],
)
def test_a_misspelt_flag_is_remarked_on_by_commands_that_look_at_the_configuration(
    words: str,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in {"SPECKIT_MRM": "1", "SPECKIT_DEBUG": "", "SPECKIT_DB": str(tmp_path / "none.db")}.items():
        monkeypatch.setenv(name, value)

    status = cli.run(words.split())
    out, err = capsys.readouterr()

    assert status == 0
    assert told in out
    [remark] = [line for line in (out + err).splitlines() if " has no effect" in line]
    assert remark.endswith("the environment variable SPECKIT_MRM has no effect; did you mean 'SPECKIT_MMR'?")


@pytest.mark.requirement("P2")
@pytest.mark.parametrize(
    ("environ", "path", "message"),
    [
        (
            {"SPECKIT_TEMPORAL_DECAY": "true"}, "composite.weight",
            "'composite.weight' has no effect: 'temporal' (flag SPECKIT_TEMPORAL_DECAY) replaces 'composite'; "
            "set it on 'temporal'",
        ),
        (
            {}, "novelty.weight",
            "'novelty.weight' has no effect: the step 'novelty' waits for the flag SPECKIT_NOVELTY_BOOST",
        ),
    ],
)  # fmt: skip
def test_an_override_of_a_step_that_takes_no_part_says_why(environ: dict[str, str], path: str, message: str) -> None:
    [problem] = pipelines.check("catalogue", environ, {path: "1"})

    assert problem.message == message


def test_no_flag_has_the_name_of_a_setting() -> None:
    variables = {
        value for name, value in vars(speckit_memory.config.workspace.settings).items() if name.endswith("_VARIABLE")
    }

    assert variables == set(speckit_memory.config.workspace.settings.VARIABLES)
    assert variables.isdisjoint(load_flags({}))


@pytest.mark.requirement("P2", "P7")
def test_only_one_step_can_take_the_place_of_another() -> None:
    opened = {"SPECKIT_RSF_FUSION": "true", "SPECKIT_Z_SCORE_FUSION": "true"}

    [problem] = pipelines.check("catalogue", opened)

    assert (problem.code, problem.message) == (
        "E119",
        "'z_score' replaces 'rrf', and so does 'rsf'; keep one "
        "(close one of the flags SPECKIT_Z_SCORE_FUSION, SPECKIT_RSF_FUSION)",
    )


def test_the_hash_does_not_change_when_a_default_is_written_out(tmp_path: Path) -> None:
    plain = build(str(_written(tmp_path, BASE)), components.registry(), {}).hash
    spelled = build(str(_written(tmp_path, BASE)), components.registry(), {}, {"bm25.limit": "50"}).hash

    assert spelled == plain


def test_budgets_are_inherited_like_everything_else(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("budgets_ms: {simple: 7}\n" + BASE, encoding="utf-8")
    file = _written(tmp_path, f"extends: {tmp_path}/base.yaml\nannotate: []\n")

    assert build(str(file), components.registry(), {}).budgets_ms["simple"] == 7


def test_an_unknown_source_offers_the_nearest_preset() -> None:
    with pytest.raises(SpeckitError, match="did you mean 'catalogue'") as caught:
        build("catalog", components.registry(), {})

    assert caught.value.exit_status == 2
