"""What the shipped flags do to the shipped pipelines: each alone gives a pipeline, and none does anything while off."""

from __future__ import annotations

import pytest

from speckit_memory.config.flags.flags import load_flags
from speckit_memory.engine.components import registry
from speckit_memory.pipeline.configuration.builder import assemble, check_pipeline, examine
from speckit_memory.pipeline.configuration.loading import load
from speckit_memory.pipeline.configuration.variants import waiting_flags, with_flag

HASHES = {"default": "0afcbff8e169", "catalogue": "9a7262b6919c", "quality": "d3d142bdb625"}
"""What the presets were before any of their steps waited for a flag that is off."""


def flags_of(preset: str) -> list[str]:
    return waiting_flags(load(preset, {}))


@pytest.mark.requirement("P11.structure")
@pytest.mark.parametrize("preset", HASHES)
def test_flags_that_are_off_change_nothing_of_a_shipped_pipeline(preset: str) -> None:
    assert examine(preset, registry(), {}).hash == HASHES[preset]


@pytest.mark.requirement("P11.structure")
@pytest.mark.parametrize(("preset", "flag"), [(preset, flag) for preset in HASHES for flag in flags_of(preset)])
def test_each_flag_alone_gives_another_pipeline_that_can_be_built(preset: str, flag: str) -> None:
    opened = check_pipeline(with_flag(load(preset, {}), flag), registry())
    assert opened.problems == ()
    assert assemble(opened).hash != HASHES[preset]


@pytest.mark.requirement("P11.structure")
def test_the_default_waits_for_flags_and_every_shipped_flag_has_a_pipeline() -> None:
    assert load_flags({}).keys() == {flag for preset in HASHES for flag in flags_of(preset)}
    wanted = {"RSF_FUSION", "COMPLEXITY_ROUTER", "CHANNEL_MIN_REP", "CONFIDENCE_TRUNCATION", "MMR", "NOVELTY_BOOST"}
    assert {f"SPECKIT_{name}" for name in wanted} < set(flags_of("default"))


@pytest.mark.requirement("P11.declared")
def test_every_shipped_flag_is_off_with_a_criterion_and_none_is_permanent_unmeasured() -> None:
    assert {(flag.state, bool(flag.criterion)) for flag in load_flags({}).values()} == {("off", True)}


def test_a_step_with_several_flags_takes_part_while_one_is_on() -> None:
    def fuser(*flags: str) -> list[str]:
        return [step.id for step in load("default", dict.fromkeys(flags, "true")).slots["fusion"]]

    assert fuser() == ["z_score"]
    assert fuser("SPECKIT_NOVELTY_BOOST") == ["trial_z_score", "trial_novelty"]
    assert fuser("SPECKIT_NOVELTY_BOOST", "SPECKIT_SESSION_BOOST") == [
        "trial_z_score",
        "trial_novelty",
        "trial_session",
    ]
