"""Channels that follow what was declared about a memory: its tier, its trigger phrases."""

from __future__ import annotations

import pytest
from components.asking import query, scores

from speckit_memory.channels.constitutional import Constitutional, ConstitutionalParams
from speckit_memory.channels.learned_trigger import LearnedTrigger
from speckit_memory.channels.trigger import Trigger
from speckit_memory.pipeline.model.columns import Plan
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.ports import Filter
from speckit_memory.pipeline.roles.contracts import ChannelParams
from speckit_memory.pipeline.testing import FakeStore, Memory

RULES = FakeStore(
    Memory(3, "second rule", tier="constitutional"),
    Memory(1, "first rule", tier="constitutional", folder="a"),
    Memory(2, "note"),
)


@pytest.mark.requirement("C6.first")
def test_constitutional_memories_are_found_whatever_the_question() -> None:
    found = Constitutional(ConstitutionalParams()).search(query("anything"), 10, RULES)

    assert scores(found) == {1: 1.0, 3: 1.0}
    assert found.scale is Scale.UNIT


@pytest.mark.requirement("C6")
def test_of_the_filter_the_tier_alone_holds_for_them_and_so_does_the_limit() -> None:
    channel = Constitutional(ConstitutionalParams())

    elsewhere = Filter(folder="b", context_type="decision", folders=("c",), memories=())
    assert channel.search(query("", wanted=elsewhere), 10, RULES).ids.tolist() == [1, 3]
    assert channel.search(query("", wanted=Filter(tier="normal")), 10, RULES).ids.tolist() == []
    assert channel.search(query(""), 1, RULES).ids.tolist() == [1]


@pytest.mark.requirement("C6")
def test_folders_that_a_plan_narrows_the_search_to_hide_no_constitutional_memory() -> None:
    narrowed = query("").planned(Plan(folders=("elsewhere",)))

    assert Constitutional(ConstitutionalParams()).search(narrowed, 10, RULES).ids.tolist() == [1, 3]


TRIGGERS = FakeStore(
    Memory(1, triggers=("deploy", "release day"), numbers={"importance_weight": 0.5}),
    Memory(2, triggers=("deploy",), numbers={"importance_weight": 0.9}),
    Memory(3, learned=("deploy",), numbers={"importance_weight": 0.5}),
    Memory(4, triggers=("deployment",)),
    Memory(5, triggers=("deploy",), tier="deprecated"),
)


@pytest.mark.requirement("C7.learned")
def test_more_phrases_count_more_learned_ones_less_and_importance_decides_between_equals() -> None:
    found = LearnedTrigger(ChannelParams()).search(query("Deploy on release day"), 10, TRIGGERS)

    # s/(1 + s): 1: 2 + .05; 2: 1 + .09; 3: .7 + .05. A phrase must be whole: "deployment" is another word.
    assert scores(found) == {1: round(2.05 / 3.05, 6), 2: round(1.09 / 2.09, 6), 3: round(0.75 / 1.75, 6)}
    assert found.scale is Scale.UNIT


@pytest.mark.requirement("C7", "M12.apart")
def test_what_was_learned_counts_for_the_channel_of_learned_phrases_alone() -> None:
    declared = Trigger(ChannelParams()).search(query("Deploy on release day"), 10, TRIGGERS)

    assert scores(declared) == {1: round(2.05 / 3.05, 6), 2: round(1.09 / 2.09, 6)}


@pytest.mark.requirement("C16.most")
def test_a_correction_raises_the_importance_of_matches_up_to_one() -> None:
    asked = query("deploy", plan=Plan(variants=("deploy",), importance_boost=0.3))

    found = LearnedTrigger(ChannelParams()).search(asked, 10, TRIGGERS)

    # 1: 1 + .1 · .8; 2: 1 + .1 · min(1.2, 1); 3: .7 + .1 · .8.
    assert scores(found) == {2: round(1.1 / 2.1, 6), 1: round(1.08 / 2.08, 6), 3: round(0.78 / 1.78, 6)}


def test_no_phrase_finds_nothing() -> None:
    assert len(Trigger(ChannelParams()).search(query("nothing of the kind"), 10, TRIGGERS)) == 0
