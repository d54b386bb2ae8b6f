from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from speckit_memory.config.workspace.options import KEYS
from tests.server.doors import COMMAND, Run, call, environment, script


@pytest.mark.usefixtures("processes")
def test_the_demo_answers_its_questions_from_any_folder(tmp_path: Path) -> None:
    ran = call(tmp_path, ["demo"]).ok()
    assert ran.out.count("✓ the expected document is first") >= 5
    assert "step by step:" in ran.out
    assert "Try next:" in ran.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("placed", "arguments"),
    [("empty", []), ("workspace", ["--keep", "demo.db"]), ("elsewhere", []), ("elsewhere", ["--keep", "demo.db"])],
    ids=["empty-temporary", "workspace-kept", "elsewhere-temporary", "elsewhere-kept"],
)
@pytest.mark.usefixtures("processes")
def test_what_the_demo_advises_runs_as_printed_where_its_reader_stands(
    tmp_path: Path, placed: str, arguments: list[str]
) -> None:
    here = tmp_path / "here and now"
    here.mkdir()
    more = {}
    if placed == "workspace":
        (here / "docs").mkdir()
        (here / "docs" / "note.md").write_text("# Note\n\nText.\n")
    if placed == "elsewhere":
        (tmp_path / "root").mkdir()
        more = {"SPECKIT_ROOT": str(tmp_path / "root")}
    env = {name: value for name, value in environment(here).items() if not name.startswith("SPECKIT_")} | more
    start = script(env)
    demo = subprocess.run([*start, "demo", *arguments], cwd=here, env=env, capture_output=True, text=True, check=True)
    advice = [
        line for line in demo.stdout.split("Try next:")[1].splitlines() if line.startswith("  ") and line[2] != " "
    ]
    assert len(advice) == 5
    printed = shlex.quote(str(COMMAND))
    for line in advice:
        assert line.startswith(f"  {printed} ")
        done = subprocess.run(
            shlex.join(start) + line.strip().removeprefix(printed), shell=True, cwd=here, env=env, capture_output=True,
            text=True, check=False, input="",
        )  # fmt: skip
        assert done.returncode == 0, line + done.stdout + done.stderr
    assert (here / "demo.db").is_file()


def test_the_demo_writes_to_no_store_but_its_own(workspace: Path) -> None:
    before = (workspace / "memory.db").read_bytes()
    call(workspace, ["demo", "--keep", "memory.db", "--json"]).refused("E014")
    assert (workspace / "memory.db").read_bytes() == before


def test_the_demo_fails_when_an_answer_is_not_the_expected_one(tmp_path: Path) -> None:
    ran = call(tmp_path, ["demo", "--json", "--pipeline", "bm25", "--set", "bm25.limit=1", "--set", "bm25.b=0.99",
                          "--set", "bm25.k1=0.01"])  # fmt: skip
    questions = ran.json["questions"]
    assert ran.json["right"] == sum(question["right"] for question in questions)
    assert ran.status == (0 if all(question["right"] for question in questions) else 1)
    assert len({question["query"] for question in questions}) >= 5


def test_doctor_finds_a_healthy_store_in_order(run: Run) -> None:
    ran = run("doctor", "--json").ok()
    assert ran.json["ok"] is True
    assert {check["name"] for check in ran.json["checks"]} >= {"sqlite", "store", "model", "search"}
    checks = ran.json["checks"]
    assert run("doctor").out == f"everything is in order ({len(checks)} checks)\n-v shows more\n"
    shown = run("doctor", "-v").out.splitlines()
    results = [line.split()[:2] for line in shown if line.startswith("ok")]
    assert results == [[check["verdict"], check["name"]] for check in checks]
    details = {check["name"]: check["detail"] for check in checks}
    assert [key for key in KEYS if key not in details["configuration"]] == []


@pytest.mark.parametrize("tier", ["normal", "deprecated"])
def test_doctor_finds_no_fault_in_a_store_that_holds_nothing_english(tmp_path: Path, tier: str) -> None:
    (tmp_path / "kuchen.md").write_text(f"---\nimportance_tier: {tier}\n---\n# Kuchen\n\nMehl und Butter.\n")
    assert call(tmp_path, ["index", "."]).status == 0
    assert call(tmp_path, ["doctor", "--json", "--pipeline", "bm25"]).ok().json["ok"] is True


def test_doctor_without_a_store_warns_and_checks_the_rest(tmp_path: Path) -> None:
    ran = call(tmp_path, ["doctor", "--json"])
    assert (ran.status, ran.json["ok"]) == (0, True)
    verdicts = {check["name"]: check["verdict"] for check in ran.json["checks"]}
    assert verdicts["store"] == "warn"
    assert verdicts["model"] == "ok"
    assert not (tmp_path / "memory.db").exists()


def test_doctor_fails_on_a_file_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_bytes(b"not a database" * 400)
    ran = call(tmp_path, ["doctor"]).ended(1)
    assert "fail" in ran.out
    assert "→ If it never was a store, leave it as it is" in ran.out


def test_doctor_says_that_the_option_names_a_store_that_is_not_there(tmp_path: Path) -> None:
    told = " ".join(call(tmp_path, ["doctor", "--db", "notes.md"]).ok().out.split())
    assert "there is no store at notes.md → --db names it." in told


@pytest.mark.parametrize("with_store", [True, False])
def test_doctor_names_a_broken_pipeline_and_checks_the_rest(workspace: Path, with_store: bool) -> None:
    (workspace / "broken.yaml").write_text("pipeline: mine\nfusion:\n  - {use: nothing_like_it}\n")
    store = workspace / ("memory.db" if with_store else "none.db")
    ran = call(workspace, ["doctor", "--json", "--pipeline", "broken.yaml", "--db", store])
    assert (ran.status, ran.json["ok"]) == (1, False)
    verdicts = {check["name"]: check["verdict"] for check in ran.json["checks"]}
    assert verdicts == {
        "pipeline": "fail", "sqlite": "ok", "store": "ok" if with_store else "warn",
        "content": "ok", "aliases": "ok",
        "graph": "ok", "segment": "ok", "maintenance": "ok", "model": "ok", "vectors": "ok",
        "words": "ok",
        "extensions": "ok", "search": "ok", "configuration": "ok", "flags": "ok", "shadows": "ok",
        **({"evaluation": "ok", "latency": "ok"} if with_store else {}),
    }  # fmt: skip


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    (folder / "qrels").mkdir(parents=True)
    topics = ("fusion of ranks", "write-ahead logging", "vector quantisation", "causal graphs")
    corpus = [{"_id": f"d{n}", "title": t, "text": f"All about {t}.", "metadata": {}} for n, t in enumerate(topics)]
    queries = [{"_id": f"q{n}", "text": t, "metadata": {}} for n, t in enumerate(topics)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in corpus))
    (folder / "queries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in queries))
    judged = "".join(f"q{n}\td{n}\t1\n" for n in range(3))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    return folder


def test_eval_run_reports_figures_and_comparisons(dataset: Path, tmp_path: Path) -> None:
    run_file = tmp_path / "out.trec"
    pipelines = ["--pipeline", "bm25", "--pipeline", "default"]
    ran = call(tmp_path, ["eval", "run", "--dataset", dataset, *pipelines, "--run-file", run_file, "--json"]).ok()
    assert set(ran.json) >= {"dataset", "documents", "queries", "excluded", "pipelines", "comparisons"}
    assert (ran.json["documents"], ran.json["queries"], ran.json["excluded"]) == (4, 3, {"no_relevant": 1})
    assert [pipeline["name"] for pipeline in ran.json["pipelines"]] == ["bm25", "default"]
    for pipeline in ran.json["pipelines"]:
        assert set(pipeline["metrics"]) == {"nDCG@10", "MRR@5", "Recall@20", "Hit@1"}
        assert pipeline["metrics"]["Hit@1"] == 1.0
    assert {(c["a"], c["b"]) for c in ran.json["comparisons"]} == {("bm25", "default")}
    assert len(run_file.read_text().splitlines()[0].split()) == 6


def test_eval_run_says_what_its_stars_mean(dataset: Path, tmp_path: Path) -> None:
    one = call(tmp_path, ["eval", "run", "--dataset", dataset, "--pipeline", "bm25"]).out
    two = call(tmp_path, ["eval", "run", "--dataset", dataset, "--pipeline", "bm25", "--pipeline", "fts5"]).out
    assert "*" not in one
    assert "* the best in its column" in two.splitlines()


@pytest.mark.requirement("P10.evaluated")
@pytest.mark.parametrize(("budget", "verdict"), [(60_000, "under"), (0.001, "over")])
def test_eval_run_says_of_each_complexity_whether_it_keeps_to_its_budget(
    dataset: Path, tmp_path: Path, budget: float, verdict: str
) -> None:
    text = f"pipeline: mine\nextends: bm25\nbudgets_ms: {{simple: {budget}, moderate: {budget}, complex: {budget}}}\n"
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    arguments: list[str | Path] = ["eval", "run", "--dataset", dataset, "--pipeline", "mine.yaml"]
    told = " ".join(call(tmp_path, arguments).out.split())
    assert "mine against its latency budgets (p95): " in told
    assert f" ms, {verdict} {budget:g}" in told
    [pipeline] = call(tmp_path, [*arguments, "--json"]).json["pipelines"]
    levels = pipeline["latency_ms"]["by_complexity"].values()
    assert levels
    assert {(one["budget_ms"], one["over_budget"]) for one in levels} == {(budget, verdict == "over")}


def test_eval_run_of_two_datasets_is_a_list(dataset: Path, tmp_path: Path) -> None:
    ran = call(tmp_path, ["eval", "run", "--dataset", dataset, "--dataset", dataset, "--pipeline", "bm25", "--json"])
    assert [report["documents"] for report in ran.json] == [4, 4]


def test_eval_run_names_the_place_of_a_malformed_line(dataset: Path, tmp_path: Path) -> None:
    (dataset / "queries.jsonl").write_text('{"_id": "q1", "text": "x"}\n{oops\n')
    error = call(tmp_path, ["eval", "run", "--dataset", dataset, "--json"]).refused("E123")
    assert error["where"]["line"] == 2


def test_eval_ablate_says_what_each_step_is_worth(dataset: Path, tmp_path: Path) -> None:
    other = shutil.copytree(dataset, tmp_path / "other")
    ran = call(tmp_path, ["eval", "ablate", "--dataset", dataset, "--dataset", other, "--queries", "2", "--json"]).ok()
    assert [one["dataset"] for one in ran.json["datasets"]] == [dataset.name, "other"]
    assert {step["step"]: step["verdict"] for step in ran.json["steps"]}["pin"] == "not exercised"
    assert set(ran.json["needed"]) == {"bm25", "z_score"}
