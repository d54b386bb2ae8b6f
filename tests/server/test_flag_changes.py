"""`flags promote`, `flags demote` and what `flags audit` says of evidence, through the installed command."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from files import write_file

from speckit_memory.config.files.file_lock import locked
from speckit_memory.config.workspace.settings import FLAGS_FILE
from speckit_memory.engine import components
from speckit_memory.engine.pipelines.flag_edits import write_decision
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.experiments.flag_steps import hashes
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from speckit_memory.memory.store.evaluation.records import (
    AnswerRecord,
    Observation,
    PipelineRecord,
    QueryRecord,
    StoredEvaluation,
    VariantRecord,
    experiment_id,
)
from speckit_memory.pipeline.configuration.loading import load
from tests.server.doors import COMMAND, Ran, call, environment

NAME = "SPECKIT_RSF_FUSION"
TODAY = datetime.now(UTC).date()


def stored(
    root: Path, name: str, pair: Sequence[str], gains: Sequence[float], *, at: float = 1.0, first: int = 0
) -> None:
    """Keeps a comparison of two pipelines in which the variant gains so much on each query, from the `first` on."""
    names = ["control", "variant"]
    before, after = [0.5] * len(gains), [0.5 + gain for gain in gains]
    values = {
        "control": {"nDCG@10": before, "Recall@20": before}, "variant": {"nDCG@10": after, "Recall@20": after}
    }  # fmt: skip
    document = {
        "pipelines": [{"name": name, "hash": hashed} for name, hashed in zip(names, pair, strict=True)],
        "comparisons": [{"a": "control", "b": "variant", "metric": "nDCG@10", "p_adjusted": 0.001}],
        "per_query": {"queries": [str(first + number) for number in range(len(gains))], "values": values},
    }
    with EvaluationDatabase.open(evaluation_file(root / "memory.db")) as database:
        database.keep(StoredEvaluation(name, "compare", at, "own", "digest", document))


def lived(root: Path, pair: Sequence[str], queries: int) -> str:
    """Records a live experiment in which a variant answers just as its control does; its id."""
    control, variant = pair

    def observed(number: int) -> Observation:
        query = QueryRecord(f"q{number}", 1e9 + number, "find_spec", "simple", "", "hybrid", 10, 1, "", "store", number)
        answers = [AnswerRecord(one, (1, 2), (0.9, 0.8), 10.0) for one in (control, variant)]
        return Observation(query, answers[0], (VariantRecord("shadow", answers[1], NAME),))

    with EvaluationDatabase.open(evaluation_file(root / "memory.db")) as database:
        database.record(
            [observed(number) for number in range(queries)], pipelines=[PipelineRecord(one, "ours") for one in pair]
        )
    return experiment_id(control, variant, "shadow")


def pair_of(flag: str = NAME) -> tuple[str, str]:
    return hashes(load("default", {}), flag, components.registry())


def flags(root: Path, text: str) -> Path:
    return write_file(root / FLAGS_FILE, text)


def promote(root: Path, *more: str) -> Ran:
    return call(root, ["flags", "promote", NAME, *more])


@pytest.mark.requirement("P11")
def test_everything_that_is_wrong_with_one_entry_is_told_at_once(tmp_path: Path) -> None:
    flags(
        tmp_path,
        """\
flags:
  SPECKIT_RSF_FUSION: {state: shadwo, was: drak_run, percent: 200, owner: us}
  SPECKIT_OURS: {state: [on], was: x, ownr: us, group: A, criterion: {metric: ndcg, margin: x}}
  SPECKIT_MMR: {percent: a, foo: 1}
""",
    )
    ran = call(tmp_path, ["flags", "audit", "--json"]).ended(1)
    assert [(one["where"]["line"], one["where"]["column"], one["code"]) for one in ran.json["errors"]] == [
        (2, 31, "E114"), (2, 44, "E114"), (2, 63, "E114"), (2, 68, "E115"),
        (3, 25, "E114"), (3, 26, "E113"), (3, 36, "E114"), (3, 39, "E115"), (3, 70, "E114"), (3, 79, "E114"),
        (3, 93, "E114"),
        (4, 26, "E114"), (4, 29, "E115"),
    ]  # fmt: skip


@pytest.mark.requirement("P11.neighbours", "P11.evidence")
def test_a_flag_goes_through_its_states_one_at_a_time_and_back(tmp_path: Path) -> None:
    assert promote(tmp_path, "--json").json == {
        "flag": NAME, "before": "off", "after": "dark_run", "evidence": "", "file": str(tmp_path / FLAGS_FILE),
        "unrecorded": "", "recorded": True, "remarks": [],
    }  # fmt: skip
    assert "dark_run → shadow" in promote(tmp_path).out
    refused = promote(tmp_path).ended(2)
    assert f"{NAME} stays shadow and does not become enabled: a comparison is needed" in refused.err
    stored(tmp_path, "abcdef012345", pair_of(), [0.2] * 200)
    assert promote(tmp_path, "--evidence", "abcdef012345").status == 0
    assert (tmp_path / FLAGS_FILE).read_text() == (
        f'flags:\n  {NAME}: {{state: enabled, was: shadow, since: "{TODAY}", evidence: abcdef012345}}\n'
    )
    assert call(tmp_path, ["flags", "audit"]).status == 0
    stored(tmp_path, "fedcba543210", pair_of(), [0.2] * 200, at=time.time(), first=200)
    assert promote(tmp_path, "--evidence", "fedcba543210", "--json").json["after"] == "permanent"
    assert call(tmp_path, ["flags", "audit"]).status == 0
    back = call(tmp_path, ["flags", "demote", NAME, "--json"]).json
    assert (back["before"], back["after"]) == ("permanent", "enabled")
    with EvaluationDatabase.open(evaluation_file(tmp_path / "memory.db")) as database:
        steps = [(change.before, change.after, change.evidence) for change in database.flag_changes(NAME)]
    assert sorted(steps) == sorted([
        ("off", "dark_run", ""), ("dark_run", "shadow", ""), ("shadow", "enabled", "abcdef012345"),
        ("enabled", "permanent", "fedcba543210"), ("permanent", "enabled", ""),
    ])  # fmt: skip


CAUSAL = "SPECKIT_CAUSAL_BOOST"
"""Its criterion: nDCG@10 not worse by 0.02 over 300 queries."""


@pytest.mark.requirement("P11.loss")
def test_evidence_of_a_loss_within_the_margin_is_refused(tmp_path: Path) -> None:
    flags(tmp_path, f"flags: {{{CAUSAL}: {{state: shadow, was: dark_run}}}}\n")
    stored(tmp_path, "abcdef012345", pair_of(CAUSAL), [-0.01] * 2_000)
    for more in ((), ("--reason", "It follows decisions.")):
        refused = call(tmp_path, ["flags", "promote", CAUSAL, "--evidence", "abcdef012345", *more]).ended(2)
        assert "becomes" not in refused.out
        assert "it shows nDCG@10 to be worse (-0.0100), which no margin excuses" in refused.err


@pytest.mark.requirement("P11.gain")
def test_a_flag_that_gains_nothing_is_enabled_for_a_reason_that_the_file_keeps(tmp_path: Path) -> None:
    file = flags(tmp_path, f"flags: {{{CAUSAL}: {{state: shadow, was: dark_run}}}}\n")
    stored(tmp_path, "abcdef012345", pair_of(CAUSAL), [0.0] * 400)
    step = ["flags", "promote", CAUSAL, "--evidence", "abcdef012345"]
    refused = call(tmp_path, step).ended(2)
    assert "its criterion only rules out a loss, and the comparison shows no gain in quality or time" in refused.err
    assert call(tmp_path, [*step, "--reason", "   "]).status == 2
    assert call(tmp_path, [*step, "--reason", 'It follows: decisions, and "why".']).status == 0
    assert 'reason: "It follows: decisions, and \\"why\\"."' in file.read_text()
    assert call(tmp_path, ["flags", "audit"]).status == 0
    file.write_text(file.read_text().replace("reason", "# reason"))
    assert call(tmp_path, ["flags", "audit"]).status == 1
    flags(tmp_path, f"flags: {{{CAUSAL}: {{state: shadow, was: dark_run, reason: 3}}}}\n")
    assert f"'reason' of '{CAUSAL}' must be a sentence" in call(tmp_path, ["flags", "audit"]).out


@pytest.mark.requirement("P11.second")
def test_a_flag_is_settled_by_other_queries_than_those_that_enabled_it(tmp_path: Path) -> None:
    for _ in range(2):
        promote(tmp_path)
    stored(tmp_path, "before000000", pair_of(), [0.2] * 200, at=2.0, first=200)
    stored(tmp_path, "first0000000", pair_of(), [0.2] * 200)
    assert promote(tmp_path, "--evidence", "first0000000").status == 0
    stored(tmp_path, "mixed0000000", pair_of(), [0.2] * 201, at=time.time(), first=199)
    for name, told in (
        (
            "first0000000",
            "it was enabled by first0000000 itself; a second comparison on other queries must confirm it",
        ),
        (
            "before000000",
            "before000000 was measured before the flag was enabled; a second comparison is made after that",
        ),
        ("mixed0000000", "1 of the 201 queries of mixed0000000 were asked in first0000000, by which it was enabled"),
    ):
        refused = promote(tmp_path, "--evidence", name).ended(2)
        assert told in refused.err
        assert "`speckit-memory eval compare --own --window 2 --flag SPECKIT_RSF_FUSION`" in refused.err
    flags(tmp_path, f"flags: {{{NAME}: {{state: enabled, was: shadow}}}}\n")
    stored(tmp_path, "second000000", pair_of(), [0.2] * 200, at=time.time(), first=200)
    unconfirmed = promote(tmp_path, "--evidence", "second000000").ended(2)
    assert "a second comparison must confirm a first one, and the flag cites no comparison" in unconfirmed.err
    flags(tmp_path, f"flags: {{{NAME}: {{state: enabled, was: shadow, evidence: first0000000}}}}\n")
    assert promote(tmp_path, "--evidence", "second000000").status == 0


@pytest.mark.requirement("P11.refused")
@pytest.mark.parametrize(
    ("criterion", "offered"),
    [
        ("{metric: nDCG@10, direction: better, queries: 400}", "eval compare --own --flag SPECKIT_OURS"),
        ("{metric: nDCG@10, direction: better, queries: 401}", "eval compare --dataset DIR --flag SPECKIT_OURS"),
        ("{metric: interleaving, direction: better}", "an entry of `shadows` with `interleave: true`"),
    ],
)
def test_what_is_offered_to_measure_a_flag_can_meet_its_criterion(tmp_path: Path, criterion: str, offered: str) -> None:
    flags(tmp_path, f"flags: {{SPECKIT_OURS: {{state: shadow, was: dark_run, criterion: {criterion}}}}}\n")
    refused = call(tmp_path, ["flags", "promote", "SPECKIT_OURS"]).ended(2)
    assert offered in refused.err
    assert ("--own" in refused.err) is ("--own" in offered)


@pytest.mark.requirement("P11.evidence", "P11.refused")
def test_everything_that_is_missing_is_told_at_once(tmp_path: Path) -> None:
    file = flags(tmp_path, f"flags: {{{NAME}: {{state: shadow, was: dark_run}}}}\n")
    before = file.read_text()
    stored(tmp_path, "other0000000", ("0" * 12, "1" * 12), [0.0] * 50)
    refused = promote(tmp_path, "--evidence", "other0000000", "--json").ended(2)
    told = refused.out
    assert refused.json["error"]["code"] == "E127"
    assert "its control is 000000000000; the pipeline without the flag is " in told
    assert "its variant is 111111111111; the pipeline with the flag is " in told
    assert "needs 200 queries, has 50, nDCG@10 interval reaches -0.1" in told
    assert "there is no comparison 'none'" in promote(tmp_path, "--evidence", "none").err
    assert file.read_text() == before


@pytest.mark.requirement("P11.refused")
def test_what_cannot_be_changed_is_refused(tmp_path: Path) -> None:
    unknown = call(tmp_path, ["flags", "promote", "SPECKIT_RSF_FUSON"])
    assert (unknown.status, "did you mean 'SPECKIT_RSF_FUSION'" in unknown.err) == (2, True)
    for said, told in (
        ("rsf_fusion", "did you mean 'SPECKIT_RSF_FUSION'?"),
        ("rsf-fuson", "did you mean 'SPECKIT_RSF_FUSION'?"),
        ("rsf", "the step 'rsf' waits for SPECKIT_RSF_FUSION"),
        ("zzzz", "see `speckit-memory flags list`"),
    ):
        for step in ("promote", "demote"):
            assert f"no flag is called '{said}'; {told}" in call(tmp_path, ["flags", step, said]).err
    assert "is off already" in call(tmp_path, ["flags", "demote", NAME]).err
    flags(tmp_path, f"flags: {{{NAME}: {{state: permanent, was: enabled}}}}\n")
    assert "is permanent already" in promote(tmp_path).err
    flags(tmp_path, f"flags: {{{NAME}: {{state: enabled, was: shadow, percent: 20}}}}\n")
    stored(tmp_path, "abcdef012345", pair_of(), [0.2] * 200)
    assert (
        "it is enabled for 20 % of sessions; raise 'percent' to 100 first"
        in promote(tmp_path, "--evidence", "abcdef012345").err
    )


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", 'flags:\n  SPECKIT_X: {state: shadow, was: dark_run}\n'),
        ("# ours\n", '# ours\nflags:\n  SPECKIT_X: {state: shadow, was: dark_run}\n'),
        ("flags:\n", "flags:\n  SPECKIT_X: {state: shadow, was: dark_run}\n"),
        ("flags:\n  # why A is on\n  SPECKIT_A: {state: off}\n",
         "flags:\n  # why A is on\n  SPECKIT_A: {state: off}\n  SPECKIT_X: {state: shadow, was: dark_run}\n"),
        ("flags: {SPECKIT_A: {state: off}}\n",
         "flags: {SPECKIT_A: {state: off}, SPECKIT_X: {state: shadow, was: dark_run}}\n"),
        ("flags:\n  SPECKIT_X: {state: dark_run} # mine\n",
         "flags:\n  SPECKIT_X: {state: shadow, was: dark_run} # mine\n"),
        ("flags:\n  SPECKIT_X:\n    # first\n    state: dark_run  # then\n    owner: us\n",
         "flags:\n  SPECKIT_X:\n    # first\n    state: shadow  # then\n    owner: us\n    was: dark_run\n"),
    ],
)  # fmt: skip
def test_a_decision_is_written_in_place_and_the_rest_stays(text: str, after: str) -> None:
    assert write_decision(text, "SPECKIT_X", {"state": "shadow", "was": "dark_run"}, "f") == after


@pytest.mark.parametrize(
    ("entry", "left"),
    [
        ("{evidence: e1, state: enabled, was: shadow, percent: 20}", "{state: shadow, was: enabled}"),
        ("{state: enabled, evidence: run 12, percent: 20}", "{state: shadow, was: enabled}"),
        ("{evidence: e1, percent: 20, state: enabled, was: shadow}", "{state: shadow, was: enabled}"),
        ("{state: enabled, was: shadow, criterion: {metric: Hit@1}, evidence: e1}",
         "{state: shadow, was: enabled, criterion: {metric: Hit@1}}"),
        ('{state: enabled, evidence: "a, b", was: shadow, # why\n    percent: 20}',
         "{state: shadow, was: enabled}"),
        ("\n    # first\n    state: enabled\n    evidence: e1  # ours\n    was: shadow\n    percent: 20",
         "\n    # first\n    state: shadow\n    was: enabled"),
    ],
)  # fmt: skip
def test_what_holds_no_longer_is_taken_out_in_place(entry: str, left: str) -> None:
    text = "flags:\n  SPECKIT_A: {state: off} # a\n  SPECKIT_X: %s\n  SPECKIT_B: {state: off}\n"
    wanted = {"state": "shadow", "was": "enabled"}
    assert write_decision(text % entry, "SPECKIT_X", wanted, "f", ("evidence", "percent")) == text % left


@pytest.mark.requirement("P11.neighbours")
def test_after_a_demotion_the_entry_says_what_is_true(tmp_path: Path) -> None:
    file = flags(tmp_path, f"""\
flags:
  # ours
  {NAME}: {{state: enabled, was: shadow, since: 2026-01-01, evidence: abcdef012345, percent: 20}}
""")  # fmt: skip
    assert "enabled → shadow" in call(tmp_path, ["flags", "demote", NAME]).out
    assert file.read_text() == f'flags:\n  # ours\n  {NAME}: {{state: shadow, was: enabled, since: "{TODAY}"}}\n'
    assert call(tmp_path, ["flags", "demote", NAME]).status == 0
    assert call(tmp_path, ["flags", "demote", NAME]).status == 0
    assert file.read_text() == f'flags:\n  # ours\n  {NAME}: {{state: "off", was: dark_run, since: "{TODAY}"}}\n'
    assert call(tmp_path, ["flags", "audit"]).status == 0


@pytest.mark.requirement("P11.refused")
def test_no_comparison_is_noted_that_nobody_judged(tmp_path: Path) -> None:
    refused = promote(tmp_path, "--evidence", "abcdef012345").ended(2)
    assert f"{NAME} stays off and does not become dark_run: that state needs no comparison" in refused.err
    assert not (tmp_path / FLAGS_FILE).exists()


def test_what_cannot_be_changed_in_place_is_told_with_what_to_write() -> None:
    with pytest.raises(SpeckitError) as refused:
        write_decision("flags:\n  SPECKIT_X: [3]\n", "SPECKIT_X", {"state": "shadow"}, "f")
    assert "Write it by hand: SPECKIT_X: {state: shadow}" in str(refused.value.problems[0].hint)


@pytest.mark.requirement("P11.audit", "P11.limits")
def test_the_audit_names_every_broken_rule_with_its_line_and_nothing_flips(tmp_path: Path) -> None:
    past, soon = TODAY - timedelta(days=100), TODAY + timedelta(days=80)
    met = "criterion: {metric: Hit@1, direction: better}"
    file = flags(tmp_path, f"""\
flags:
  {NAME}: {{state: enabled}}
  SPECKIT_MMR: {{state: enabled, was: shadow, evidence: abcdef012345}}
  SPECKIT_TRM: {{state: enabled, was: shadow, evidence: nothing}}
  SPECKIT_NOVELTY_BOST: {{state: shadow}}
  SPECKIT_OLD: {{state: dark_run, group: A, owner: us, since: {past}, expires: {TODAY - timedelta(days=20)}, {met}}}
  SPECKIT_LONG: {{state: dark_run, group: A, owner: us, since: {past}, expires: {soon}, {met}}}
  SPECKIT_BARE: {{state: dark_run, group: A, since: {TODAY}, expires: {soon}}}
  SPECKIT_RRF: {{state: dark_run}}
""")  # fmt: skip
    stored(tmp_path, "abcdef012345", ("0" * 12, "1" * 12), [0.0] * 50)
    ran = call(tmp_path, ["flags", "audit"]).ended(1)
    for told in (
        f"{file}:2:3: E124 {NAME} jumps from off to enabled and skips dark_run, shadow",
        f"{file}:2:3: E124 {NAME} is enabled without evidence",
        f"{file}:3:3: E124 SPECKIT_MMR cites abcdef012345, which compares 000000000000 with 111111111111; the pipeline",
        f"{file}:4:3: E124 SPECKIT_TRM cites 'nothing', and there is no such comparison",
        f"{file}:5:3: E120 no flag is called 'SPECKIT_NOVELTY_BOST'; did you mean 'SPECKIT_NOVELTY_BOOST'?",
        f"{file}:6:3: E124 SPECKIT_OLD expired on ",
        f"{file}:7:3: E124 SPECKIT_LONG may live 180 days, accepted: at most 90",
        f"{file}:8:3: E124 SPECKIT_BARE names no owner",
        f"{file}:8:3: E124 SPECKIT_BARE has no criterion",
        f"{file}:9:3: E124 7 flags are active, accepted: at most 6; active: ",
    ):
        assert told in ran.out, told
    flags(tmp_path, f"flags: {{SPECKIT_OURS: {{state: permanent, was: enabled, group: A, owner: us, {met}}}}}\n")
    settled = call(tmp_path, ["flags", "audit"], {"SPECKIT_OURS": "false"})
    assert (settled.status, "SPECKIT_OURS is permanent and cannot be switched off" in settled.out) == (1, True)


@pytest.mark.requirement("P11.limits")
def test_too_many_active_flags_are_told_with_their_lines_and_which_to_demote(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Fusion\n\nRanks are fused.\n")
    assert call(tmp_path, ["index", "a.md"]).status == 0
    names = ["RRF", "TRM", "SIGNAL_VOCAB", "DEGREE_BOOST", "CAUSAL_BOOST", "MMR", "NOVELTY_BOOST", "STATE_LIMITS"]
    entries = [f"  SPECKIT_{name}: {{state: dark_run, was: off}}" for name in names]
    for count in (7, 8):
        file = flags(tmp_path, "\n".join(["flags:", *entries[:count], ""]))
        assert call(tmp_path, ["search", "fusion"]).status == 0
        audited, doctor = call(tmp_path, ["flags", "audit"]), call(tmp_path, ["doctor"])
        assert (audited.status, doctor.status) == (1, 0)
        told = (
            f"{file}:8:3: E124 {count} flags are active, accepted: at most 6; active: SPECKIT_RRF dark_run ({file}:2)"
        )
        assert told in audited.out
        assert "try:  `speckit-memory flags demote SPECKIT_NOVELTY_BOOST` until it is off" in audited.out
        assert told in doctor.out
    ninth = f"  {NAME}: {{state: shadow, was: dark_run}}"
    flags(tmp_path, "\n".join(["flags:", ninth, *entries, ""]))
    refused = call(tmp_path, ["search", "fusion"]).ended(2)
    assert refused.err.startswith(
        f"{file}:10:3: E114 9 pipelines would run in addition to 'default', accepted: at most 8; 9 are of flags: "
        f"{NAME} shadow ({file}:2), SPECKIT_RRF dark_run ({file}:3), "
    )
    assert "try:  `speckit-memory flags demote SPECKIT_STATE_LIMITS` until it is off" in refused.err
    assert call(tmp_path, ["flags", "demote", "SPECKIT_STATE_LIMITS"]).status == 0
    assert call(tmp_path, ["search", "fusion"]).status == 0


@pytest.mark.requirement("P7")
def test_a_misspelt_variable_is_told_where_its_flag_would_act(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Fusion\n\nRanks are fused.\n")
    assert call(tmp_path, ["index", "a.md"]).status == 0
    told = "the environment variable SPECKIT_RSF_FUSON has no effect; did you mean 'SPECKIT_RSF_FUSION'?"
    misspelt = {"SPECKIT_RSF_FUSON": "true", "SPECKIT_QQQQ": "1", "SPECKIT_DEBUG": "", "SPECKIT_LOG_CONTENT": "0"}
    found = call(tmp_path, ["search", "fusion", "--json"], misspelt).json
    assert found["notes"]["warnings"] == [told]
    assert f"warning: {told}" in call(tmp_path, ["search", "fusion"], misspelt).out
    listed = call(tmp_path, ["flags", "list"], misspelt).err
    assert listed.splitlines() == [
        "remark: the environment variable SPECKIT_QQQQ has no effect: no flag or setting has this name",
        f"remark: {told}",
    ]


def test_advice_is_told_once_for_problems_that_are_mended_alike(tmp_path: Path) -> None:
    flags(tmp_path, f"""\
flags:
  {NAME}: {{state: enabled}}
  SPECKIT_ONE: {{state: off}}
  SPECKIT_MMR: {{state: enabled}}
  SPECKIT_TWO: {{state: off}}
""")  # fmt: skip
    told = call(tmp_path, ["flags", "audit"]).out
    assert (told.count(" E124 "), told.count(" E120 ")) == (4, 2)
    assert told.count("hint: Feature flags are few, dated and owned") == 1
    assert told.count("hint: To declare a flag of your own, give it group, owner, since, expires, criterion.") == 1


@pytest.mark.requirement("P11.expiry")
def test_an_expired_flag_behaves_as_before(tmp_path: Path) -> None:
    life = "since: 2025-01-01, expires: 2025-03-01, criterion: {metric: Hit@1, direction: better}"
    flags(tmp_path, f"flags: {{SPECKIT_OURS: {{state: enabled, group: A, owner: us, was: shadow, {life}}}}}\n")
    (tmp_path / "p.yaml").write_text("rerank: {add: [{use: mmr, flag: SPECKIT_OURS, before: pin}]}\n", encoding="utf-8")
    shown = call(tmp_path, ["pipeline", "show", "--pipeline", "p.yaml"])
    assert "- {use: mmr, flag: SPECKIT_OURS}" in shown.out
    assert call(tmp_path, ["flags", "audit"]).status == 1


@pytest.mark.requirement("P11.evidence")
def test_evidence_stays_good_when_another_flag_is_opened_after_it(tmp_path: Path) -> None:
    other = "SPECKIT_CONFIDENCE_TRUNCATION"
    stored(tmp_path, "aaaaaaaaaaaa", pair_of(), [0.2] * 200)
    opened = load("default", {NAME: "true"})
    stored(tmp_path, "bbbbbbbbbbbb", hashes(opened, other, components.registry()), [0.2] * 300)
    flags(tmp_path, f"""\
flags:
  {NAME}: {{state: enabled, was: shadow, evidence: aaaaaaaaaaaa}}
  {other}: {{state: enabled, was: shadow, evidence: bbbbbbbbbbbb}}
""")  # fmt: skip
    assert call(tmp_path, ["flags", "audit"]).err == ""


LIVED = "SPECKIT_TRM"


@pytest.mark.requirement("P11.evidence", "P11.audit")
@pytest.mark.usefixtures("processes")
def test_what_a_live_experiment_showed_outlives_its_queries(tmp_path: Path) -> None:
    before = f"flags: {{{LIVED}: {{state: shadow, was: dark_run}}}}\n"
    flags(tmp_path, before)
    name = lived(tmp_path, pair_of(LIVED), 210)
    assert call(tmp_path, ["flags", "promote", LIVED, "--evidence", name]).status == 0
    with EvaluationDatabase.open(evaluation_file(tmp_path / "memory.db")) as database:
        assert database.prune(before=1e9 + 400, max_bytes=10**9) == 210
    audited = call(tmp_path, ["flags", "audit"])
    assert (audited.status, audited.err) == (0, "")
    flags(tmp_path, before)
    again = call(tmp_path, ["flags", "promote", LIVED, "--evidence", name])
    assert (again.status, again.err) == (0, "")
    asked_again = call(tmp_path, ["eval", "gate", "--own", "--against", name])
    assert (asked_again.status, "nor a revision" in asked_again.err) == (2, True)


@pytest.mark.requirement("P11.audit")
def test_the_audit_holds_what_is_cited_against_the_criterion(tmp_path: Path) -> None:
    flags(tmp_path, f"flags: {{{NAME}: {{state: enabled, was: shadow, evidence: abcdef012345}}}}\n")
    stored(tmp_path, "abcdef012345", pair_of(), [0.2] * 50)
    audited = call(tmp_path, ["flags", "audit"]).ended(1)
    assert (
        f"{NAME} cites abcdef012345, which does not meet its criterion: nDCG@10 better over 200 queries: needs 200 "
        "queries, has 50"
    ) in audited.out


@pytest.mark.requirement("P11.limits", "P11.refused")
def test_no_promotion_breaks_a_rule_of_the_audit(tmp_path: Path) -> None:
    six = ["RRF", "MMR", "CAUSAL_BOOST", "TRM", "SIGNAL_VOCAB", "DEGREE_BOOST"]
    entries = "".join(f"  SPECKIT_{name}: {{state: dark_run, was: off}}\n" for name in six)
    past = f"group: A, owner: us, since: {TODAY - timedelta(days=50)}, expires: {TODAY - timedelta(days=1)}"
    met = "criterion: {metric: Hit@1, direction: better}"
    file = flags(tmp_path, f"flags:\n{entries}  SPECKIT_OURS: {{state: off, {past}, {met}}}\n")
    before = file.read_text()
    refused = promote(tmp_path)
    assert (refused.status, file.read_text()) == (2, before)
    assert f"{NAME} stays off and does not become dark_run: 6 others are active (SPECKIT_" in refused.err
    assert call(tmp_path, ["flags", "promote", "SPECKIT_TRM"]).status == 0  # active already
    expired = call(tmp_path, ["flags", "promote", "SPECKIT_OURS"])
    assert (expired.status, f"it expired on {TODAY - timedelta(days=1)}" in expired.err) == (2, True)


@pytest.mark.requirement("P11.evidence", "P11.refused")
def test_a_kept_evaluation_is_tested_on_the_metric_that_the_criterion_names(tmp_path: Path) -> None:
    flag = "SPECKIT_EMBEDDING_EXPANSION"  # Recall@20, which no report tests by itself
    flags(tmp_path, f"flags: {{{flag}: {{state: shadow, was: dark_run}}}}\n")
    stored(tmp_path, "abcdef012345", pair_of(flag), [0.2] * 5 + [0.0] * 195)
    refused = call(tmp_path, ["flags", "promote", flag, "--evidence", "abcdef012345"]).ended(2)
    assert "p after correction is " in refused.err
    assert f"eval compare --own --flag {flag}" in " ".join(refused.err.split())


@pytest.mark.requirement("P11.limits")
@pytest.mark.usefixtures("processes")
def test_two_promotions_at_once_do_not_pass_the_limit_together(tmp_path: Path) -> None:
    five = ["RRF", "MMR", "CAUSAL_BOOST", "TRM", "SIGNAL_VOCAB"]
    file = flags(tmp_path, "flags:\n" + "".join(f"  SPECKIT_{name}: {{state: dark_run, was: off}}\n" for name in five))
    both = (NAME, "SPECKIT_DEGREE_BOOST")
    with locked(file):  # until both have judged
        running = [
            subprocess.Popen([COMMAND, "flags", "promote", name], env=environment(tmp_path), cwd=tmp_path,
                             stderr=subprocess.PIPE, text=True)
            for name in both
        ]  # fmt: skip
        with pytest.raises(subprocess.TimeoutExpired):
            running[0].wait(8)
        assert running[1].poll() is None
    told = [process.communicate()[1] for process in running]
    assert sorted(process.returncode for process in running) == [0, 2]
    assert "does not become dark_run: 6 others are active" in "".join(told)


@pytest.mark.usefixtures("processes")
def test_a_flag_that_another_process_has_decided_meanwhile_is_not_decided_again(tmp_path: Path) -> None:
    file = flags(tmp_path, f"flags:\n  {NAME}: {{state: dark_run, was: off}}\n")
    with locked(file):
        asked = subprocess.Popen(
            [COMMAND, "flags", "demote", NAME],
            env=environment(tmp_path),
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        with pytest.raises(subprocess.TimeoutExpired):
            asked.wait(6)
        now = flags(tmp_path, f"flags:\n  {NAME}: {{state: shadow, was: dark_run}}\n").read_text()
    told = asked.communicate()[1]
    assert (asked.returncode, file.read_text()) == (2, now)
    assert f"{NAME} was dark_run when it was judged; another process has since made it shadow" in told


def test_a_state_that_does_nothing_here_is_told(tmp_path: Path) -> None:
    assert call(tmp_path, ["flags", "promote", NAME]).err == ""
    set_here = call(tmp_path, ["flags", "promote", NAME], {NAME: "false"})
    assert f"{NAME}=false decides here and makes it off; unset it" in " ".join(set_here.err.split())
    idle = call(tmp_path, ["flags", "promote", "SPECKIT_RRF", "--pipeline", "catalogue"])
    assert "no step of the pipeline in use, catalogue, waits for SPECKIT_RRF" in " ".join(idle.err.split())


@pytest.mark.requirement("E3.windows")
def test_a_window_is_for_made_queries_alone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("q 0 a 1\n")
    judged_runs = ["--qrels", "a.txt", "--run-file", "a.txt"]
    for more in (["--from-use", "--flag", NAME], ["--dataset", "bundled", "--flag", NAME], judged_runs):
        refused = call(tmp_path, ["eval", "compare", *more, "--window", "2"]).ended(2)
        assert "--window selects among queries made of your memories, so it goes with --own alone" in refused.err
