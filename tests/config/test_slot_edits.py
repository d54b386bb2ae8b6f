"""What a file adds to, changes in and removes from the steps that it inherits (feature P2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.engine.pipelines import pipelines
from speckit_memory.pipeline.configuration.builder import CheckedPipeline
from tests.pipeline.test_layering import SHIPPED, WEIGHTS, checked, params

CHANNELS = [step.id for step in SHIPPED.effective.slots["channels"]]


def channels(tmp_path: Path, edits: str) -> list[str]:
    whole = checked(tmp_path, f"candidates:\n  channels: {edits}\n")
    return [step.id for step in whole.effective.slots["channels"]]


def problems(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "p.yaml"
    file.write_text(text, encoding="utf-8")
    return [str(problem).removeprefix(f"{file}:") for problem in pipelines.check(str(file), {})]


def elsewhere(whole: CheckedPipeline, slot: str) -> dict[str, list[str]]:
    return {name: [step.id for step in steps] for name, steps in whole.effective.slots.items() if name != slot}


@pytest.mark.requirement("P2")
def test_one_channel_is_added_and_all_else_stays_as_it_is(tmp_path: Path) -> None:
    whole = checked(tmp_path, "candidates: {channels: {add: [degree]}}\n")
    assert [step.id for step in whole.effective.slots["channels"]] == [*CHANNELS, "degree"]
    assert elsewhere(whole, "channels") == elsewhere(SHIPPED, "channels")
    assert params(whole, "z_score") == params(SHIPPED, "z_score") | {"weights": WEIGHTS | {"degree": 1.0}}
    for channel in CHANNELS:
        assert params(whole, channel) == params(SHIPPED, channel)
    shown = pipelines.show(str(tmp_path / "p.yaml"), {}, effective=True, origin=True)
    assert "      degree: 1.0  # default of z_score\n" in shown


@pytest.mark.parametrize(
    ("edits", "order"),
    [
        ("{add: [{use: degree, before: bm25}]}",
         "degree bm25 vector graph trigger identifier phrase surface dated constitutional"),
        ("{add: [{use: degree, after: bm25}, {use: fts5, after: bm25}]}",
         "bm25 degree fts5 vector graph trigger identifier phrase surface dated constitutional"),
        ("{add: [{use: degree, after: fts5}, {use: fts5, before: vector}]}",
         "bm25 fts5 degree vector graph trigger identifier phrase surface dated constitutional"),
        ("{add: [{use: degree, before: phrase}], remove: [phrase]}",
         "bm25 vector graph trigger identifier degree surface dated constitutional"),
        ("{change: [{id: constitutional, before: bm25}]}",
         "constitutional bm25 vector graph trigger identifier phrase surface dated"),
        ("{remove: [graph], change: [{id: vector, after: trigger}, {id: bm25, after: vector}]}",
         "trigger vector bm25 identifier phrase surface dated constitutional"),
        ("{}", "bm25 vector graph trigger identifier phrase surface dated constitutional"),
        ("{add: , change: [], remove: }", "bm25 vector graph trigger identifier phrase surface dated constitutional"),
    ],
)  # fmt: skip
@pytest.mark.requirement("P2")
def test_steps_go_where_they_say(tmp_path: Path, edits: str, order: str) -> None:
    assert channels(tmp_path, edits) == order.split()


@pytest.mark.requirement("P2")
def test_a_change_says_only_what_differs(tmp_path: Path) -> None:
    text = """\
candidates: {channels: {change: [{id: bm25, k1: 1.5, single: {body: 0.1}}]}}
fusion: {change: [{id: z_score, weights: {bm25: 0.6}}]}
rerank: {change: [{id: maxsim, optional: false}]}
"""
    whole = checked(tmp_path, text)
    before = params(SHIPPED, "bm25")
    assert params(whole, "bm25") == before | {"k1": 1.5, "single": before["single"] | {"body": 0.1}}
    assert params(whole, "z_score")["weights"] == WEIGHTS | {"bm25": 0.6}
    optional = {step.id: step.optional for step in whole.effective.slots["rerank"]}
    assert optional == {
        "regularise": True, "maxsim": False, "encoder": True, "typed": False, "named": False, "min_max": False,
        "pin": False,
    }  # fmt: skip
    shown = pipelines.show(str(tmp_path / "p.yaml"), {}, effective=True, origin=True).splitlines()
    assert f"      k1: 1.5  # {tmp_path}/p.yaml:1:49" in shown
    [use] = [line for line in shown if line.startswith("    - use: bm25")]
    assert "# (shipped) config/pipeline.yaml:" in use


@pytest.mark.requirement("P2")
def test_a_change_leaves_a_step_behind_its_flag_and_may_put_it_behind_another(tmp_path: Path) -> None:
    whole = checked(tmp_path, "extends: catalogue\nfusion: {change: [{id: novelty, optional: true}]}\n")
    [novelty] = [step for step in whole.effective.inactive if step.id == "novelty"]
    assert (novelty.flags, novelty.optional) == (("SPECKIT_NOVELTY_BOOST",), True)
    other = checked(tmp_path, "rerank: {change: [{id: maxsim, flag: SPECKIT_LATE_INTERACTION}]}\n")
    trials = {step.id for step in checked(tmp_path, "").effective.inactive}
    assert {step.id for step in other.effective.inactive} - trials == {"maxsim"}


@pytest.mark.requirement("P2")
def test_an_inherited_weight_leaves_with_its_channel_and_that_is_shown(tmp_path: Path) -> None:
    whole = checked(tmp_path, "candidates: {channels: {remove: [phrase]}}\n")
    assert params(whole, "z_score")["weights"] == {key: value for key, value in WEIGHTS.items() if key != "phrase"}
    shown = pipelines.show(str(tmp_path / "p.yaml"), {}, origin=True)
    dropped = "# dropped: z_score.weights.phrase, whose channel is not active ((shipped) config/pipeline.yaml:"
    assert dropped in shown
    own = "candidates: {channels: {remove: [phrase]}}\nfusion: {change: [{id: z_score, weights: {phrase: 1}}]}\n"
    [problem] = problems(tmp_path, own)
    assert problem.startswith("2:51: E119 'z_score': there is no channel 'phrase'; ")


@pytest.mark.requirement("P2")
def test_edits_of_several_files_lie_upon_one_another(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("candidates: {channels: {add: [degree], remove: [phrase]}}\n")
    edits = "{add: [{use: fts5, before: degree}], change: [{id: degree, limit: 7}]}"
    whole = checked(tmp_path, f"extends: base.yaml\ncandidates: {{channels: {edits}}}\n")
    ids = [step.id for step in whole.effective.slots["channels"]]
    assert ids == [*(channel for channel in CHANNELS if channel != "phrase"), "fts5", "degree"]
    assert params(whole, "degree")["limit"] == 7
    gone = checked(tmp_path, "extends: base.yaml\ncandidates: {channels: {remove: [degree]}}\n")
    assert [step.id for step in gone.effective.slots["channels"]] == [c for c in CHANNELS if c != "phrase"]
    nothing = "extends: none\ncandidates: {channels: {add: [bm25]}}\nfusion: {add: [{use: single, scale: bm25}]}\n"
    assert [step.id for step in checked(tmp_path, nothing).effective.steps()] == ["bm25", "single"]


@pytest.mark.requirement("P2")
def test_a_fuser_gives_way_to_another_in_its_place(tmp_path: Path) -> None:
    text = "fusion: {add: [{use: rrf, before: z_score}], remove: [z_score]}\nrerank: {remove: [regularise, maxsim]}\n"
    whole = checked(tmp_path, text)
    assert [step.id for step in whole.effective.slots["fusion"]] == ["rrf"]
    assert [step.id for step in whole.effective.slots["rerank"]] == ["encoder", "typed", "named", "min_max", "pin"]


@pytest.mark.requirement("P7")
def test_every_instruction_that_cannot_be_followed_is_told_at_its_place(tmp_path: Path) -> None:
    text = """\
candidates:
  channels:
    adds: []
    add: [bm25, {use: degree, before: grpah}, {use: fts5, after: graph, before: vector}, {id: x}, degree]
    change: [{id: bm52}, {id: vector}, {id: trigger}, {id: trigger}, {id: graph, use: trigger}, {k: 1}, foo]
    remove: [vector, phrase, phrase, nix, 3]
rerank: {add: 3}
annotate: {change: [{id: duplicates, after: duplicates}]}
"""
    assert problems(tmp_path, text) == [
        "3:5: E115 'channels' has no key 'adds'; did you mean 'add'?",
        "4:11: E119 'channels' has a step 'bm25' already; change it, or give the new one another 'id'",
        "4:39: E119 'channels' has no other step 'grpah' for 'degree' to go before; did you mean 'graph'?",
        "4:66: E119 'fts5' goes before 'vector' and after 'graph'; name one of the two",
        "4:90: E114 a step of 'channels' needs the key 'use'; found id",
        "4:99: E119 'degree' is added twice; give one another 'id'",
        "5:19: E119 there is no step 'bm52' to change in 'channels'; did you mean 'bm25'?",
        "5:26: E119 'vector' is changed and removed; keep one of the two",
        "5:55: E119 'trigger' is changed twice; put it all into one entry",
        "5:87: E119 'graph' is a step 'graph', and a change cannot make it 'trigger'",
        "5:97: E114 a step of 'channels' needs the key 'id'; found k",
        "5:105: E114 a step of 'channels' must be a mapping with the key 'id'; found 'foo'",
        "6:30: E119 'phrase' is removed twice; once is enough",
        "6:38: E119 there is no step 'nix' to remove from 'channels'; accepted: bm25, constitutional, dated, graph, "
        "identifier, phrase, surface, trial_community, trial_degree, trial_learned_trigger, trigger, vector",
        "6:43: E114 'remove' of 'channels' must be a list of ids; found 3",
        "7:15: E114 'add' of 'rerank' must be a list; found 3",
        "8:45: E119 'annotate' has no other step 'duplicates' for 'duplicates' to go after; accepted: anchor_filter, "
        "attribution, constitutional_guarantee, encoder_notice, evidence_gap, fitting, session_dedup, state_filter, "
        "superseded, trial_evidence_gap, trial_state_filter, trial_token_budget",
    ]


@pytest.mark.requirement("P7")
def test_steps_that_go_beside_one_another_alone_are_refused(tmp_path: Path) -> None:
    text = "candidates: {channels: {change: [{id: bm25, before: vector}, {id: vector, before: bm25}]}}\n"
    message = "'bm25', 'vector' are only placed next to one another; let one of them name a step that is not moved"
    assert problems(tmp_path, text) == [f"1:34: E119 {message}"]


@pytest.mark.requirement("P7")
def test_what_an_inherited_step_misses_is_told_where_the_file_removes_it(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, "pipeline: p\ncandidates:\n  channels: {remove: [bm25]}\n")
    assert problem.startswith("3:3: E119 'fallback': none of bm25 is a declared channel for the last attempt; ")
    assert problem.endswith("; change or remove it here, in its section")


def test_a_value_that_an_edit_says_is_rewritten_in_its_place(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("# ours\npipeline: ours\ncandidates: {channels: {change: [{id: bm25, k1: 1.5}]}}  # kept\n")
    wanted = {"bm25.k1": "1.7", "bm25.b": "0.5"}
    text = pipelines.pipeline_text_with(str(file), {}, wanted, file=tmp_path / "tuned.yaml", heading=(), remarks={})
    assert text == (
        "# ours\npipeline: tuned\ncandidates: {channels: {change: [{id: bm25, k1: 1.7, b: 0.5}]}}  # kept\n"
    )
