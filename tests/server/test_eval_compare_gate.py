"""`eval compare` and `eval gate` through the installed command."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import judged_sets
import pytest
from files import write_file

from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from speckit_memory.memory.store.evaluation.records import StoredEvaluation
from tests.server.doors import Ran, call

pytestmark = pytest.mark.usefixtures("processes")

WEAK = """\
pipeline: weak
candidates:
  channels: {remove: [bm25, phrase, identifier, surface]}
  recover: []
fusion: [{use: z_score, weights: {vector: 1.0, graph: 0.1, trigger: 1.0, constitutional: 0.0}}]
rerank: {remove: [named]}
"""

TWO = """\
pipeline: two
extends: none
candidates: {channels: [{use: bm25}, {use: vector}]}
fusion: [{use: z_score, weights: {bm25: 1.0, vector: 1.0}}]
"""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judged_sets.titles(tmp_path_factory.mktemp("sets") / "mixed", by_title=10, by_text=10, by_mention=10)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A repository whose pipeline is the default in its only commit."""
    root = tmp_path / "project"
    write_file(root / ".speckit" / "pipeline.yaml", "pipeline: mine\n")
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        git(root, *arguments)
    return root


def git(root: Path, *arguments: str) -> None:
    name = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
    subprocess.run(["git", *name, *arguments], cwd=root, check=True, capture_output=True)


def run(root: Path, *arguments: str | Path, **env: str) -> Ran:
    """In a workspace whose store would be in its .speckit folder."""
    return call(root, ["eval", *arguments], env={"SPECKIT_DB": "", **env})


def gate(root: Path, dataset: Path, *options: str | Path, **environ: str) -> Ran:
    return run(root, "gate", "--dataset", dataset, *options, **environ)


@pytest.mark.requirement("E2")
def test_a_comparison_is_kept_and_a_gate_pairs_with_it_by_its_id(workspace: Path, mixed: Path) -> None:
    compared = run(
        workspace, "compare", "--dataset", mixed, "--pipeline", "bm25", "--pipeline", "vector", "--json"
    ).ok()
    name = compared.json["id"]
    assert (workspace / ".speckit" / "memory.evaluation.db").is_file()
    same = gate(workspace, mixed, "--pipeline", "bm25", "--against", name, "--json")
    assert (same.status, same.json["gate"]["verdict"]) == (0, "pass")
    assert {c["delta"] for c in same.json["comparisons"]} == {0.0}
    assert same.json["pipelines"][0]["name"] == f"bm25 of {name}"
    worse = gate(workspace, mixed, "--pipeline", "vector", "--against", name, "--json")
    assert (worse.status, worse.json["gate"]["verdict"]) == (1, "fail")
    gate(workspace, mixed, "--pipeline", "vector", "--against", f"{name}:vector", "--json").ok()
    gate(workspace, mixed, "--pipeline", "vector", "--against", f"{name}:fts5", "--json").refused("E030")
    error = gate(workspace, mixed, "--pipeline", "bm25", "--against", name, "--queries", "5", "--json").refused("E030")
    assert "leave out --queries" in error["actions"]


def test_the_same_figures_are_told_in_the_same_words_with_what_keeps_them_from_a_verdict(
    workspace: Path, mixed: Path
) -> None:
    compared = run(workspace, "compare", "--dataset", mixed, "--pipeline", "bm25", "--pipeline", "vector", "--json")
    stored = compared.json["id"]
    told = []
    for against, other in ((stored, f"bm25 of {stored}"), ("bm25", "bm25")):
        ran = gate(workspace, mixed, "--pipeline", "bm25", "--against", against, "--no-keep").ok()
        told += re.findall(rf"bm25\S* against {other}\S* (is .+? on nDCG@10: .+)", " ".join(ran.out.splitlines()))
    told = [sentence.partition(" bm25")[0] for sentence in told]
    assert len(told) == 2
    assert told[0] == told[1]
    assert told[0].startswith("is undecided on nDCG@10: +0.0000 (95 % interval -")
    assert re.search(r"; about [\d,]+ queries in all would show none above 0\.005$", told[0])


def test_a_stored_evaluation_of_other_documents_is_refused(workspace: Path, mixed: Path, tmp_path: Path) -> None:
    compared = run(workspace, "compare", "--dataset", mixed, "--pipeline", "bm25", "--pipeline", "fts5", "--json")
    other = judged_sets.titles(tmp_path / "mixed", by_title=10, by_text=10, by_mention=9)
    error = gate(workspace, other, "--pipeline", "bm25", "--against", compared.json["id"], "--json").refused("E030")
    assert "nothing can be paired" in error["message"]


def test_nothing_is_kept_where_that_is_not_wanted_or_there_is_no_folder(
    workspace: Path, mixed: Path, tmp_path: Path
) -> None:
    two = ["--pipeline", "bm25", "--pipeline", "fts5"]
    ran = run(workspace, "compare", "--dataset", mixed, *two, "--no-keep").ok()
    assert "not kept: --no-keep" in ran.out.splitlines()
    assert list((workspace / ".speckit").iterdir()) == [workspace / ".speckit" / "pipeline.yaml"]
    bare = tmp_path / "bare"
    bare.mkdir()
    assert "not kept: there is no folder" in run(bare, "compare", "--dataset", mixed, *two).ok().out
    assert list(bare.iterdir()) == []


@pytest.mark.requirement("E8.regression")
@pytest.mark.parametrize(
    "planted",
    ["pipeline", "weight"],
)
def test_a_planted_regression_closes_the_gate_with_its_interval(workspace: Path, mixed: Path, planted: str) -> None:
    options, against = [], "HEAD"
    if planted == "pipeline":
        (workspace / ".speckit" / "pipeline.yaml").write_text(WEAK)
    else:
        (workspace / "two.yaml").write_text(TWO)
        options, against = ["--pipeline", "two.yaml", "--set", "z_score.weights.bm25=0"], "two.yaml"
    ran = gate(workspace, mixed, *options, "--against", against, "--markdown", "gate.md").ended(1)
    assert ran.out.startswith("Retrieval gate failed\n")
    assert "is worse than " in ran.out
    assert "95 % interval -" in ran.out
    text = (workspace / "gate.md").read_text()
    name = "weak" if planted == "pipeline" else "two"  # a name stays as it is, where a sentence begins too
    assert text.startswith(f"### Retrieval gate failed\n\n{name}")
    assert "| nDCG@10 |" in text


@pytest.mark.requirement("E8.hidden")
def test_a_pipeline_that_only_looks_otherwise_passes_the_gate_and_says_what_can_hide(
    workspace: Path, mixed: Path
) -> None:
    (workspace / ".speckit" / "pipeline.yaml").write_text("pipeline: renamed\ndescription: As it was.\n")
    summary = workspace / "summary.md"
    summary.write_text("before\n")
    ran = gate(workspace, mixed, "--against", "HEAD", "--json", GITHUB_STEP_SUMMARY=str(summary)).ok()
    (contrast,) = ran.json["contrasts"]
    assert (contrast["ordering_differences"], contrast["score_differences"]) == (0, 0)
    assert "no regression larger than 0.1095 can hide here" in ran.json["gate"]["sentence"]
    assert summary.read_text().startswith("before\n### Retrieval gate passed\n")
    assert [one["loss"] for one in ran.json["gate"]["hidden"]] == [pytest.approx(0.109489, abs=1e-6)] * 2


def test_a_margin_that_the_queries_cannot_rule_out_closes_the_gate_and_says_how_many_would(
    workspace: Path, mixed: Path
) -> None:
    gate: list[str | Path] = ["gate", "--dataset", mixed, "--pipeline", "bm25", "--against", "bm25", "--json"]
    narrow = run(workspace, *gate, "--max-loss", "0.01")
    assert (narrow.status, narrow.json["gate"]["verdict"]) == (1, "fail")
    assert {one["queries_needed"] for one in narrow.json["gate"]["hidden"]} == {368}
    assert "is not ruled out" in narrow.json["gate"]["sentence"]
    wide = run(workspace, *gate, "--max-loss", "0.11")
    assert (wide.status, wide.json["gate"]["max_loss"]) == (0, 0.11)
    assert run(workspace, *gate, "--max-loss", "0").status == 2


def test_an_evaluation_without_values_of_single_queries_is_refused_with_what_to_do(
    workspace: Path, mixed: Path
) -> None:
    stored = StoredEvaluation("0123456789ab", "judgements", 1.0, "forty", "d" * 12, {"judgements": []})
    with EvaluationDatabase.open(workspace / ".speckit" / "memory.evaluation.db") as database:
        database.keep(stored)
    error = gate(workspace, mixed, "--pipeline", "bm25", "--against", stored.id, "--json").refused("E030")
    assert "was kept by `judgements` and has no per-query values to pair with" in error["message"]


def test_a_revision_brings_the_files_that_its_pipeline_extends(workspace: Path, mixed: Path) -> None:
    write_file(workspace / "shared" / "base.yaml", "pipeline: base\nextends: bm25\n")
    (workspace / "mine.yaml").write_text("pipeline: mine\nextends: shared/base.yaml\n")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "two")
    (workspace / "shared" / "base.yaml").write_text("pipeline: base\nextends: vector\n")
    gate(workspace, mixed, "--pipeline", "mine.yaml", "--against", "HEAD", "--json").ended(1)
    ran = gate(workspace, mixed, "--pipeline", "mine.yaml", "--against", "HEAD:shared/base.yaml", "--json").ended(1)
    assert ran.json["pipelines"][0]["name"].startswith("base@")
    assert gate(workspace, mixed, "--pipeline", "vector", "--against", "HEAD:mine.yaml").status == 1


def test_a_revision_brings_its_own_flags(workspace: Path, mixed: Path) -> None:
    flag = (
        "flags:\n  SPECKIT_MY_WORDS:\n    {state: %s, group: mine, owner: me, since: 2026-11-01, expires: 2027-01-01}\n"
    )
    behind = TWO.replace("[{use: bm25}, ", "[{use: bm25, flag: SPECKIT_MY_WORDS}, ").replace("{bm25: 1.0, ", "{")
    (workspace / ".speckit" / "pipeline.yaml").write_text(behind)
    (workspace / ".speckit" / "flags.yaml").write_text(flag % "enabled")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "two")
    (workspace / ".speckit" / "flags.yaml").write_text(flag % "'off'")
    (contrast,) = gate(workspace, mixed, "--against", "HEAD", "--json").ended(1).json["contrasts"]
    assert contrast["differ_most"][0]["parted_at"] == "bm25 (only in the control)"


@pytest.mark.parametrize(
    ("against", "message"),
    [
        ("no-such-branch", "is not a revision of the repository"),
        ("HEAD:none.yaml", "has no file 'none.yaml'"),
        ("-n", "does not name a revision"),
        ("0123456789ab", "is neither a preset, a file, the id of a stored evaluation, nor a revision"),
    ],
)
def test_what_names_nothing_is_told_with_the_accepted(workspace: Path, mixed: Path, against: str, message: str) -> None:
    error = gate(workspace, mixed, "--pipeline", "bm25", f"--against={against}", "--json").refused("E030")
    assert message in error["message"]


def test_outside_a_repository_a_revision_is_refused(tmp_path: Path, mixed: Path) -> None:
    error = gate(tmp_path, mixed, "--pipeline", "bm25", "--against", "HEAD", "--json").refused("E030")
    assert "is not in a git repository" in error["message"]


def test_run_files_are_compared_by_judgements_alone(tmp_path: Path, mixed: Path) -> None:
    two = ["--pipeline", "bm25", "--pipeline", "vector", "--no-keep"]
    live = run(
        tmp_path, "compare", "--dataset", mixed, *two, "--run-file", "out.run", "--qrels-out", "q.txt", "--json"
    ).ok()
    read = run(tmp_path, "compare", "--run-file", "out.run", "--qrels", "q.txt", "--no-keep", "--json").ok()
    assert read.json["comparisons"] == live.json["comparisons"]
    (tmp_path / "bad.run").write_text("q0 Q0 t0 1 high x\n")
    bad = run(tmp_path, "compare", "--run-file", "out.run", "--run-file", "bad.run", "--qrels", "q.txt", "--json")
    assert (bad.status, bad.json["error"]["where"]["line"]) == (2, 1)
    (tmp_path / "empty.txt").write_text("")
    run(tmp_path, "compare", "--run-file", "out.run", "--qrels", "empty.txt", "--json").refused("E123")


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare"],
        ["compare", "--qrels", "q.txt"],
        ["compare", "--qrels", "q.txt", "--run-file", "a", "--pipeline", "bm25"],
        ["compare", "--dataset", "a", "--run-file", "a", "--run-file", "b"],
        ["compare", "--dataset", "a", "--dataset", "b", "--run-file", "a"],
        ["gate", "--dataset", "a"],
    ],
)
def test_options_that_do_not_go_together_are_refused(tmp_path: Path, arguments: list[str]) -> None:
    assert run(tmp_path, *arguments).status == 2


def test_several_datasets_are_compared_each_for_itself(tmp_path: Path, mixed: Path) -> None:
    other = judged_sets.titles(tmp_path / "texts", by_text=5)
    two = ["--pipeline", "bm25", "--pipeline", "fts5", "--no-keep", "--queries", "4", "--json"]
    ran = run(tmp_path, "compare", "--dataset", mixed, "--dataset", other, *two)
    assert [one["dataset"] for one in ran.json] == ["mixed", "texts"]
    assert [one["queries"] for one in ran.json] == [4, 4]


def test_over_several_datasets_a_sentence_says_what_all_of_them_show(tmp_path: Path, mixed: Path) -> None:
    other = judged_sets.titles(tmp_path / "texts", by_mention=16)
    three = ["--pipeline", "vector", "--pipeline", "bm25", "--pipeline", "vector", "--no-keep"]
    both: list[str | Path] = ["--dataset", mixed, "--dataset", other]
    first, second = run(tmp_path, "compare", *both, *three, "--json").ok().json
    assert first["overall"] == second["overall"]
    better, same = first["overall"]
    assert (better["b"], better["verdict"]) == ("bm25", "better")
    assert [one["dataset"] for one in better["datasets"]] == ["mixed", "texts"]
    assert better["sentence"].startswith("over 2 datasets bm25 is better than vector: ")
    assert (same["b"], same["verdict"]) == ("vector#2", "undecided"), "too few to be called the same"
    assert better["sentence"] in " ".join(run(tmp_path, "compare", *both, *three).out.split())


@pytest.mark.requirement("E8.absolute")
def test_in_a_fresh_workspace_good_enough_cannot_be_told_yet(workspace: Path) -> None:
    words = ["apricot", "quokka", "sextant", "vellum", "zeppelin", "marimba", "obelisk", "trellis"]
    (workspace / "docs").mkdir()
    for word in words:
        text = f"# Notes on the {word}\n\nThe {word} of {word[::-1]} is kept in the {word[1:]} cellar.\n"
        (workspace / "docs" / f"{word}.md").write_text(text)
    assert call(workspace, ["index", "docs"], env={"SPECKIT_DB": ""}).status == 0
    ran = run(workspace, "gate", "--own", "--good-enough", "--json")
    assert (ran.status, ran.json["verdict"]) == (3, "unknown"), ran.out + ran.err
    assert [one["verdict"] for one in ran.json["criteria"]] == ["go", "n/a", "not yet"]
    assert "some must ask for older ones" in ran.json["criteria"][2]["missing"]


def test_a_changed_value_is_compared_with_the_pipeline_as_it_is(tmp_path: Path, mixed: Path) -> None:
    ran = run(
        tmp_path, "compare", "--dataset", mixed, "--pipeline", "bm25", "--set", "bm25.k1=0.1", "--json", "--no-keep"
    ).ok()
    assert [pipeline["name"] for pipeline in ran.json["pipelines"]] == ["bm25", "bm25#2"]
    assert json.dumps(ran.json["contrasts"])


@pytest.mark.requirement("P11.evidence", "E8.flags")
def test_a_flag_is_compared_with_the_pipeline_in_use_and_that_is_evidence_for_it(workspace: Path, mixed: Path) -> None:
    flag = "SPECKIT_RSF_FUSION"
    flags = workspace / ".speckit" / "flags.yaml"
    flags.write_text(f"flags:\n  {flag}: {{state: shadow, was: dark_run}}\n")

    compared = run(workspace, "compare", "--dataset", mixed, "--flag", flag, "--json", SPECKIT_DB="memory.db").json
    refused = call(
        workspace, ["flags", "promote", flag, "--evidence", compared["id"], "--json"], env={"SPECKIT_DB": "memory.db"}
    )

    control, variant = compared["pipelines"]
    assert (control["name"], variant["name"]) == ("mine", f"mine with {flag}")
    assert control["hash"] != variant["hash"]
    with EvaluationDatabase.open(evaluation_file(workspace / "memory.db"), create=False) as database:
        kept = database.evaluation(compared["id"])
    assert kept is not None
    times = kept.document["per_query"]["ms"]
    assert {name: len(row) for name, row in times.items()} == {
        "mine": compared["queries"], f"mine with {flag}": compared["queries"]
    }  # fmt: skip
    # that searches ran beside it too says nothing of quality
    (workspace / "a.md").write_text("# Fusion\n\nRanks are fused.\n")
    for command in (["index", "a.md"], ["search", "ranks"]):
        assert call(workspace, command, env={"SPECKIT_DB": "memory.db"}).status == 0
    gated = gate(workspace, mixed, "--against", "default", "--json", SPECKIT_DB="memory.db")
    (told,) = gated.json["flags"]
    assert (gated.status, told["flag"], told["state"], told["verdict"]) == (0, flag, "shadow", "no-go")
    assert told["evidence"] == compared["id"]
    assert told["lacks"][0].startswith(f"nDCG@10 better over 200 queries: needs 200 queries, has {compared['queries']}")
    flags.write_text(f"flags:\n  {flag}: {{state: shadow, was: dark_run}}\n  SPECKIT_MMR: {{state: dark_run}}\n")
    said = gate(workspace, mixed, "--against", "default", "--queries", "3", SPECKIT_DB="memory.db")
    assert f"flag {flag} (shadow) no-go by {compared['id']}: nDCG@10 better" in " ".join(said.out.split())
    assert "flag SPECKIT_MMR (dark_run) not yet: no comparison of the pipeline in use without and" in said.out
    # of the two pipelines in question, only too small
    assert refused.status == 2
    assert "queries" in refused.json["error"]["message"]
    assert "hash" not in refused.json["error"]["message"]


def test_a_flag_that_no_step_waits_for_is_refused_with_the_nearest(workspace: Path, mixed: Path) -> None:
    ran = run(workspace, "compare", "--dataset", mixed, "--flag", "SPECKIT_RSF_FUSIN", "--json").ended(2)
    assert ran.json["error"]["message"].endswith("did you mean 'SPECKIT_RSF_FUSION'?")
