"""Pipelines are derived from pipelines, as values (features E6, P2)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from speckit_memory.config.yaml.reader import plain
from speckit_memory.engine import components
from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.configuration.builder import build, check_pipeline
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.loading import load
from speckit_memory.pipeline.configuration.variants import with_flag, with_values, without

CONTROL = {
    "pipeline": "control",
    "extends": "none",
    "candidates": {
        "channels": [
            {"use": "fts5"},
            {"use": "vector"},
            {"use": "identifier", "flag": "SPECKIT_IDENTIFIER_CHANNEL"},
        ],
    },
    "fusion": [
        {"use": "z_score", "id": "fuse", "weights": {"fts5": 0.7, "vector": 0.3}},
        {"use": "rsf", "replaces": "fuse", "flag": "SPECKIT_RSF_FUSION"},
    ],
}
CLOSED = {"SPECKIT_RSF_FUSION": "false", "SPECKIT_IDENTIFIER_CHANNEL": "false"}


@pytest.fixture
def control() -> Effective:
    return load(CONTROL, CLOSED)


def ids(whole: Effective) -> list[str]:
    return [step.id for step in whole.steps()]


def hash_of(whole: Effective) -> str:
    checked = check_pipeline(whole, components.registry())
    assert checked.problems == ()
    return checked.hash


@pytest.mark.requirement("P2.flags")
@pytest.mark.parametrize("flag", ["SPECKIT_RSF_FUSION", "SPECKIT_IDENTIFIER_CHANNEL"])
def test_a_flag_opened_by_a_call_does_what_the_environment_would(control: Effective, flag: str) -> None:
    opened = with_flag(control, flag)
    assert ids(opened) == ids(load(CONTROL, CLOSED | {flag: "true"})) != ids(control)
    assert hash_of(opened) == hash_of(load(CONTROL, CLOSED | {flag: "true"}))
    assert opened.flags[flag].origin == "this call"
    assert with_flag(opened, flag, on=False).slots == control.slots


def test_deriving_leaves_the_control_as_it_was_and_reads_nothing_again(control: Effective, tmp_path: Path) -> None:
    before = hash_of(control)
    with_values(without(with_flag(control, "SPECKIT_RSF_FUSION"), "vector"), {"rsf.variant_bonus": "0.1"})
    assert hash_of(control) == before
    file = tmp_path / "gone.yaml"
    file.write_text("pipeline: gone\n", encoding="utf-8")
    whole = load(file, {})
    file.unlink()
    assert hash_of(with_values(whole, {"bm25.k1": "1.7"})) != hash_of(whole)
    assert whole.name == "gone"


def test_what_a_call_changed_stays_changed_when_a_flag_is_opened_after_it(control: Effective) -> None:
    first = with_flag(with_values(control, {"fts5.limit": "7"}), "SPECKIT_IDENTIFIER_CHANNEL")
    second = with_values(with_flag(control, "SPECKIT_IDENTIFIER_CHANNEL"), {"fts5.limit": "7"})
    assert hash_of(first) == hash_of(second)
    assert first.slots["channels"][0].params.get("limit") is not None


@pytest.mark.requirement("E6")
def test_a_variant_without_a_step_lacks_it_and_nothing_else(control: Effective) -> None:
    variant = without(control, "fts5")
    assert ids(variant) == ["vector", "fuse"]
    (problem,) = check_pipeline(variant, components.registry()).problems
    assert "'fts5'" in problem.message  # its weight is left
    forgotten = without(control, "fts5", forgotten=True)
    assert check_pipeline(forgotten, components.registry()).problems == ()
    assert plain(forgotten.slots["fusion"][0].params) == {"weights": {"vector": 0.3}}


def test_what_stands_in_the_place_of_another_takes_the_place_with_it_when_left_out(control: Effective) -> None:
    assert ids(without(with_flag(control, "SPECKIT_RSF_FUSION"), "rsf")) == ["fts5", "vector"]


def test_what_cannot_be_changed_joins_the_problems(control: Effective) -> None:
    variant = without(without(with_flag(control, "SPECKIT_RSF_FUSON"), "fts"), "identifier")
    settled = {**variant.flags, "SPECKIT_MMR": replace(variant.flags["SPECKIT_MMR"], state="permanent")}
    variant = replace(with_values(variant, {"vektor.limit": "3"}), flags=settled)
    variant = with_flag(variant, "SPECKIT_MMR", on=False)
    assert {(problem.code, problem.message) for problem in variant.problems} == {
        ("E120", "the flag 'SPECKIT_RSF_FUSON' is not declared; did you mean 'SPECKIT_RSF_FUSION'?"),
        ("E030", "no step 'fts' to leave out; did you mean 'fts5'?"),
        ("E030", "no step 'identifier' to leave out; it is already inactive"),
        ("E030", "no step 'vektor' to set 'vektor.limit' on; did you mean 'vector'?"),
        ("E030", "SPECKIT_MMR is permanent and cannot be switched off"),
    }
    with pytest.raises(SpeckitError, match="no step 'fts' to leave out"):
        build(variant, components.registry(), {})
