"""Which pipelines run beside a control: those of flags in dark_run and shadow, and those that its file names."""

from __future__ import annotations

from pathlib import Path

import pytest
from files import write_file

from speckit_memory.config.pipelines.document import read_text
from speckit_memory.config.pipelines.shadow_entries import MOST_BESIDE
from speckit_memory.engine import components
from speckit_memory.engine.pipelines import pipelines
from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.configuration.builder import examine
from speckit_memory.pipeline.configuration.checked_variants import checked_variants
from speckit_memory.pipeline.configuration.loading import load
from speckit_memory.pipeline.configuration.variants import Variant, variants_of, with_flag

RSF = "SPECKIT_RSF_FUSION"


def variants(text: str, file: Path, **environ: str) -> tuple[Variant, ...]:
    return variants_of(load(read_text(text, str(file)), environ), environ)


def problems(text: str, file: Path, **environ: str) -> list[str]:
    file.write_text(text, encoding="utf-8")
    return [str(problem).removeprefix(f"{file}:") for problem in pipelines.check(str(file), environ)]


@pytest.mark.parametrize("state", ["dark_run", "shadow"])
def test_a_flag_makes_a_variant_that_is_the_control_with_the_flag_open(state: str) -> None:
    control = load("catalogue", {RSF: state})
    (variant,) = variants_of(control, {RSF: state})
    assert (variant.name, variant.mode, variant.flag) == ("rsf_fusion", state, RSF)
    assert variant.sample == {"shadow": 1.0, "dark_run": 0.05}[state]
    assert variant.effective == with_flag(control, RSF)
    assert control.slots["fusion"][0].id == "rrf"
    assert variant.effective.slots["fusion"][0].id == "rsf"
    assert examine(control, components.registry(), {}).hash == examine("catalogue", components.registry(), {}).hash


@pytest.mark.parametrize("state", ["off", "enabled"])
def test_other_states_and_flags_that_no_step_waits_for_make_no_variant(state: str) -> None:
    assert variants_of(load("catalogue", {RSF: state}), {}) == ()
    assert variants_of(load("bm25", {RSF: "shadow"}), {}) == ()


def test_a_file_names_whole_pipelines_relative_to_itself(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("pipeline: other\nextends: rrf\nshadows: [vector]\n", encoding="utf-8")
    text = """\
shadows:
  - rsf
  - {use: other.yaml, sample: 0.2, interleave: true, name: mine}
dark_runs: [{use: bm25, sample: 0.5}]
"""
    found = variants(text, tmp_path / "here.yaml")
    assert [(one.name, one.mode, one.flag, one.sample, one.interleave) for one in found] == [
        ("rsf", "shadow", "", 1.0, False),
        ("mine", "shadow", "", 0.2, True),
        ("bm25", "dark_run", "", 0.5, False),
    ]
    assert found[1].effective.file == str(tmp_path / "other.yaml")
    assert str(found[2].where) == f"{tmp_path / 'here.yaml'}:4:13"


def test_what_runs_beside_is_inherited_key_by_key_and_no_part_of_the_hash(tmp_path: Path) -> None:
    below = tmp_path / "below" / "base.yaml"
    write_file(below.parent / "other.yaml", "pipeline: other\n")
    below.write_text("pipeline: base\nshadows: [other.yaml]\ndark_runs: [rsf]\n", encoding="utf-8")
    heir = tmp_path / "heir.yaml"
    assert [one.name for one in variants("extends: below/base.yaml\n", heir)] == ["other", "rsf"]
    own = "extends: below/base.yaml\ndark_runs: []\n"
    assert [one.name for one in variants(own, heir)] == ["other"]
    registry = components.registry()
    hashes = {examine(source, registry, {}).hash for source in ("default", str(below), read_text(own, str(heir)))}
    assert len(hashes) == 1


def test_a_variant_that_does_the_same_as_the_control_stays(tmp_path: Path) -> None:
    control = examine(read_text("shadows: [default]\n", str(tmp_path / "here.yaml")), components.registry(), {})
    (found,), _, wrong = checked_variants(control, components.registry(), {})
    assert (found.checked.hash, wrong) == (control.hash, [])
    assert found.built().name == "default"


def test_every_wrong_entry_is_told_at_its_place(tmp_path: Path) -> None:
    text = """\
pipeline: here
shadow: [rrf]
shadows:
  - {use: rsf, sampl: 0.2}
  - {use: rrf, name: 3, sample: 2}
  - [3]
dark_runs: [{use: vector, interleave: true}, {sample: 1}]
"""
    assert problems(text, tmp_path / "here.yaml") == [
        "2:1: E115 a pipeline file has no key 'shadow'; did you mean 'shadows'?",
        "4:16: E115 an entry of 'shadows' has no key 'sampl'; did you mean 'sample'?",
        "5:22: E114 'name' must be a text of 1 to 60 characters; found 3",
        "5:33: E114 'sample' must be a share of queries above 0 and at most 1; found 2",
        "6:5: E114 an entry of 'shadows' must be a preset, a file, or a mapping with 'use'; found [3]",
        "7:27: E115 an entry of 'dark_runs' has no key 'interleave'; accepted: name, sample, use",
        "7:46: E114 an entry of 'dark_runs' needs the key 'use', a preset or a file",
    ]
    assert problems("shadows: rrf\n", tmp_path / "here.yaml")[0].startswith("1:10: E114 'shadows' must be a list")


def test_a_variant_that_cannot_be_is_a_problem_of_its_control(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("pipeline: broken\nfusion: [{use: z_scor}]\n", encoding="utf-8")
    text = "shadows: [here.yaml, gone.yaml, rsf, {use: rsf}]\n"
    assert problems(text, tmp_path / "here.yaml") == [
        "1:11: E114 'here.yaml' is the pipeline itself; name another file or preset",
        "1:22: E121 'gone.yaml' is neither a file nor a preset; accepted: bm25, catalogue, default, fts5, quality, "
        "resume, rrf, rsf, vector",
        f"1:38: E114 two variants are called 'rsf': shadow listed at {tmp_path}/here.yaml:1:33 and shadow listed at "
        f"{tmp_path}/here.yaml:1:38; give one of them a 'name'",
    ]
    (told,) = problems("shadows: [broken.yaml]\n", tmp_path / "here.yaml")
    assert told.startswith(f"{tmp_path}/broken.yaml:2:")
    assert told.endswith(f"(in the variant 'broken': shadow listed at {tmp_path}/here.yaml:1:11)")
    with pytest.raises(SpeckitError, match="in the variant 'broken'"):
        pipelines.show(str(tmp_path / "here.yaml"), {})


def test_a_variant_of_a_flag_that_cannot_be_names_the_flag(tmp_path: Path) -> None:
    text = "fusion: {add: [{use: rrf, id: again, flag: SPECKIT_RSF_FUSION}]}\n"
    assert problems(text, tmp_path / "here.yaml") == []
    told = problems(text, tmp_path / "here.yaml", SPECKIT_RSF_FUSION="shadow")
    assert told and all(
        "in the variant 'rsf_fusion': SPECKIT_RSF_FUSION in shadow (environment)" in one for one in told
    )


def test_so_many_variants_and_no_more(tmp_path: Path) -> None:
    names = [f"{{use: rrf, name: v{number}}}" for number in range(MOST_BESIDE + 1)]
    (told,) = problems(f"shadows: [{', '.join(names)}]\n", tmp_path / "here.yaml")
    assert f"'shadows' lists {MOST_BESIDE + 1} pipelines; at most {MOST_BESIDE} are accepted" in told
    half = ", ".join(names[: MOST_BESIDE // 2]), ", ".join(names[MOST_BESIDE // 2 :])
    (told,) = problems(f"shadows: [{half[0]}]\ndark_runs: [{half[1]}]\n", tmp_path / "here.yaml")
    assert "'v8' is one variant too many; at most 8 run in addition to a pipeline" in told


def test_what_is_shown_names_the_variants_and_can_be_read_from_anywhere(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("pipeline: other\nextends: rrf\n", encoding="utf-8")
    file = write_file(tmp_path / "here.yaml", "pipeline: here\nshadows: [{use: other.yaml, sample: 0.25}]\n")
    shown = pipelines.show(str(file), {})
    rrf = examine("rrf", components.registry(), {}).hash
    assert f"\n# variant other ({rrf}): shadow listed at {file}:2:11\n" in shown
    again = variants(shown, tmp_path / "deep" / "below" / "again.yaml")
    assert [(one.name, one.sample, one.effective.file) for one in again] == [
        ("other", 0.25, str(tmp_path / "other.yaml"))
    ]
