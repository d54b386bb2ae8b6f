from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from files import write_file
from judged_sets import titles

from tests.server.doors import Run, call

SIX_PROBLEMS = """\
pipeline: mine
candidates:
  understand: [{use: intnet}]
  channels:
    - {use: bm25, limit: 0}
    - {use: vectr}
fusion:
  - {use: rrf, kk: 60}
rerank: on
annotate:
  - {use: mmr}
"""


@pytest.mark.requirement("P7.places")
def test_check_reports_every_problem_with_its_position(run: Run, tmp_path: Path) -> None:
    file = write_file(tmp_path / "mine.yaml", SIX_PROBLEMS)
    ran = run("pipeline", "check", str(file), "--json").ended(2)
    found = [(error["where"]["line"], error["where"]["column"], error["code"]) for error in ran.json["errors"]]
    assert found == sorted(found)
    assert {line for line, _, _ in found} >= {3, 5, 6, 8, 9, 11}
    assert ran.json["error"] == ran.json["errors"][0]
    assert all(error["where"]["file"] == str(file) for error in ran.json["errors"])
    human = run("pipeline", "check", str(file)).ended(2)
    heads = [line for line in human.out.splitlines() if line.startswith(str(file))]
    assert [line.split(" ")[0] for line in heads] == [f"{file}:{line}:{column}:" for line, column, _ in found]
    assert human.out.splitlines()[-1] == f"{len(found)} problems in {file}"
    assert "did you mean 'intent'?" in human.out


@pytest.mark.requirement("P7")
def test_a_part_with_nothing_behind_it_is_refused_and_takes_no_steps_away(run: Run, tmp_path: Path) -> None:
    file = write_file(tmp_path / "mine.yaml", "candidates:\n  recover:\nrerank:\n#  - mmr\nannotate:\n  add:\n")
    ran = run("pipeline", "check", str(file), "--json").ended(2)
    assert [(error["where"]["line"], error["message"]) for error in ran.json["errors"]] == [
        (line, f"'{part}' must be a list of steps, or a mapping with add, change, remove; found nothing")
        for line, part in ((2, "recover"), (3, "rerank"))
    ]
    assert ran.json["errors"][1]["actions"] == [
        "write rerank: [] for no steps", "leave out the key to inherit the steps",
    ]  # fmt: skip
    file.write_text("candidates: {recover: []}\nrerank: []\nannotate: {}\n")
    assert run("pipeline", "check", str(file)).status == 0


@pytest.mark.requirement("P7")
def test_a_flag_without_a_name_is_refused_and_leaves_no_step_always_on(run: Run, tmp_path: Path) -> None:
    file = write_file(
        tmp_path / "mine.yaml",
        """\
rerank:
  add:
    - {use: collapse, id: a, flag: ""}
    - {use: collapse, id: b, flag: []}
    - {use: collapse, id: c, flag: 3}
  change:
    - {id: trial_mmr, flag: []}
    - {id: trial_standardise, replaces: ""}
    - {id: pin, after: ""}
""",
    )
    ran = run("pipeline", "check", str(file), "--json").ended(2)
    assert [(error["where"]["line"], error["message"]) for error in ran.json["errors"]] == [
        (3, "'flag' must be a name; found ''"),
        (4, "'flag' must be a name or a list of different names; found []"),
        (5, "'flag' must be a text; found 3"),
        (7, "'flag' must be a name or a list of different names; found []"),
        (8, "'replaces' must be a name; found ''"),
        (9, "'after' must be a name; found ''"),
    ]


@pytest.mark.requirement("T26.pointed")
def test_the_line_stands_below_its_problem_with_a_mark_at_the_place(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("fusion: {change: [{id: z_score, wieghts: {}}]}\nrerank: " + "x" * 300 + "\n")
    told = run("pipeline", "check", str(file)).out.splitlines()
    assert told[1:3] == [
        "    1 | fusion: {change: [{id: z_score, wieghts: {}}]}",
        "      | " + " " * 32 + "^",
    ]
    [long] = [line for line in told if line.startswith("    2 | ")]
    assert long.endswith("xxx…")
    assert len(long) < 125
    assert told[told.index(long) + 1] == "      |         ^"
    file.write_text("検索\u202e: 1\n", encoding="utf-8")
    assert "    1 | 検索\\u202e: 1\n      | ^\n" in run("pipeline", "check", str(file)).out


@pytest.mark.requirement("P7.remedies")
@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("fusion: {move: [z_score]}", "change: [{id: ID, before: OTHER}] moves a step"),
        ("rerank: {reorder: [pin]}", "change: [{id: ID, before: OTHER}] moves a step"),
        ("rerank: {disable: [pin]}", "remove: [ID] leaves a step out"),
        ("rerank: {insert: [pin]}", "add: [{use: NAME, before: OTHER}] adds a step"),
        ("rerank: {change: [{id: pin, enabled: false}]}", "rerank: {remove: [pin]} leaves an inherited one out"),
        (
            "candidates: {channels: {change: [{id: bm25, disabled: true}]}}",
            "candidates: {channels: {remove: [bm25]}} leaves an inherited one out",
        ),
        ("rerank: [mmr]", "Put 'min_max' before it, or write 'after: min_max'"),
        ("rerank: [min_max, maxsim]", "Put 'standardise' before it, or write 'after: standardise'"),
    ],
)
def test_what_other_tools_have_keys_for_is_answered_with_the_edit(
    run: Run, tmp_path: Path, text: str, remedy: str
) -> None:
    file = write_file(tmp_path / "mine.yaml", text)
    assert remedy in run("pipeline", "check", str(file), "--json").json["error"]["message"]


@pytest.mark.requirement("P7.remedies")
@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("fusion: [{use: z_score, id: mix}]", "'mix' uses the component's defaults of 'weights', 'missing'"),
        ("fusion: [{use: z_score, id: mix, weights: {}}]", "'mix' uses the component's defaults of 'missing'"),
        ("fusion: {remove: [z_score], add: [{use: z_score, id: mix, before: trial_causal}]}", "'mix' uses"),
        ("extends: none\ncandidates: {channels: [bm25]}\nfusion: [z_score]", "defaults of 'weights', which"),
        ("fusion: [z_score]", ""),
        ("fusion: {change: [{id: z_score, weights: {bm25: 1}}]}", ""),
        ("rerank: {add: [{use: pin, id: third}]}", ""),
        ("extends: none\ncandidates: {channels: [bm25]}\nfusion: [{use: z_score, weights: {bm25: 1}}]", ""),
    ],
)
def test_a_step_in_the_place_of_one_whose_values_it_loses_is_remarked_on(
    run: Run, tmp_path: Path, text: str, lost: str
) -> None:
    file = write_file(tmp_path / "mine.yaml", text)
    ran, shown = run("pipeline", "check", str(file), "--json"), run("pipeline", "check", str(file))
    assert ran.status == shown.status == 0
    remarks = ran.json.get("remarks", [])
    assert len(remarks) == bool(lost)
    assert all(lost in remark and remark.startswith(f"{file}:") for remark in remarks)
    assert shown.err.count("remark: ") == len(remarks)


def test_a_file_without_problems_passes(run: Run) -> None:
    ran = run("pipeline", "check", "default")
    assert (ran.status, ran.out) == (0, "default: no problems\n")
    assert run("pipeline", "check", "default", "--json").json == {"file": "default", "problems": []}


def test_an_unknown_pipeline_offers_the_nearest_preset(run: Run) -> None:
    error = run("pipeline", "check", "defualt", "--json").refused("E121")
    assert "did you mean 'default'?" in error["message"]


def test_show_fills_in_every_value_and_says_where_it_comes_from(run: Run, tmp_path: Path) -> None:
    ran = run("pipeline", "show", "--pipeline", "bm25", "--effective", "--origin", "--set", "bm25.k1=1.7").ok()
    assert "k1: 1.7  # this call" in ran.out
    assert "# default of bm25" in ran.out
    file = write_file(tmp_path / "shown.yaml", ran.out)
    assert run("pipeline", "check", str(file)).status == 0
    assert run("pipeline", "show", "--pipeline", "bm25", "--json").json["pipeline"] == "bm25"


def test_diff_is_empty_for_equals_and_shows_what_differs(run: Run) -> None:
    assert run("pipeline", "diff", "default", "default", "--json").json == {
        "a": "default", "b": "default", "same": True, "diff": "",
    }  # fmt: skip
    assert run("pipeline", "diff", "default", "bm25").ok().out.startswith("--- default\n+++ bm25\n")


def test_plan_says_what_a_query_would_do(run: Run) -> None:
    document = run("pipeline", "plan", "why are ranks fused", "--json").json
    assert document["query"] == "why are ranks fused"
    assert {channel["id"] for channel in document["plan"]["channels"]} >= {"bm25"}
    assert document["work"]["memories_in_scope"] > 0
    assert "channels\n" in run("pipeline", "plan", "why are ranks fused").ok().out


COUNTED = """\
pipeline: counted
candidates:
  understand: [{use: expansion, modes: [deep]}]
  channels:
    - {use: bm25, fields: {title: 2, triggers: 0, path: 0, body: 1}, single: {title: 1}, passage: 1.0}
    - {use: vector}
    - {use: graph, hops: 2}
    - {use: fts5}
fusion:
  - {use: z_score}
rerank:
  - {use: maxsim, pool: 2}
"""
READ = """\
pipeline: read
candidates:
  channels: [{use: identifier}]
  recover: []
fusion: [{use: single, scale: unit}]
rerank: [{use: cross_encoder}]
"""


@pytest.mark.requirement("P7")
def test_a_plan_counts_what_every_wording_reads_in_every_index(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\ntitle: Fix\ncausalLinks:\n  caused_by: [b.md]\n---\nThe fix for the error.\n")
    (tmp_path / "b.md").write_text("---\ntitle: Failure\n---\nThe exception after the error, REQ-006.\n")
    counted, read = tmp_path / "counted.yaml", tmp_path / "read.yaml"
    counted.write_text(COUNTED)
    read.write_text(READ)
    assert call(tmp_path, ["index", "."]).status == 0

    def plan(query: str, pipeline: Path, mode: str) -> Any:
        ran = call(tmp_path, ["pipeline", "plan", query, "--mode", mode, "--pipeline", pipeline, "--json"]).ok()
        return ran.json

    # bm25 reads title, body and passages, and the title twice more (by itself, with the passages);
    # graph reads title and body for its seeds; fts5 finds whole memories
    first = (3 + 3 + 3) + (1 + 3) + 3  # fix: title and text of a; error: the texts of a and b
    second = (0 + 1 + 1) + (0 + 1) + 1  # exception: the text of b
    third = (3 + 0 + 0) + (1 + 0) + 1  # failure: the title of b
    deep = plan("fix the error", counted, "deep")
    assert deep["plan"]["variants"] == ["fix the error", "repair the exception", "resolve the failure"]
    assert [(term["term"], term["memories"]) for term in deep["terms"]] == [
        ("fix", 1), ("error", 2), ("repair", 0), ("except", 1), ("resolv", 0), ("failur", 1),
    ]  # fmt: skip
    expected = {
        "memories_in_scope": 2,
        "postings": first + second + third,
        "vectors": 2 * 3,
        "edges_at_most": 1 * 2 * 3,
        "feedback_words_at_most": 0,
        "candidates_at_most": 2,
        "passages_compared_at_most": 2,
        "cross_encoder_pairs_at_most": 0,
    }
    assert deep["work"] == expected
    auto = plan("fix the error", counted, "auto")
    assert auto["work"] == expected | {"postings": first, "vectors": 2, "edges_at_most": 2}
    assert plan("REQ-006", read, "auto")["work"] == dict.fromkeys(expected, 0) | {
        "memories_in_scope": 2, "postings": 1, "candidates_at_most": 2, "cross_encoder_pairs_at_most": 2,
    }  # fmt: skip


def test_schema_is_a_json_schema(run: Run) -> None:
    document = run("pipeline", "schema").json
    assert document["$schema"].startswith("https://json-schema.org/")
    assert document["type"] == "object"


def test_a_mapping_that_is_missing_is_named_in_words_of_the_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "routes.yaml"
    file.write_text("pipeline: mine\ncandidates:\n  understand:\n    - {use: router, simple: fast}\n")
    ran = run("pipeline", "check", file, "--json").ended(2)
    assert "'simple' of the step 'router': must map keys to values; found 'fast'" in ran.out
    assert "Route" not in ran.out


HALVES = "pipeline: halves\nfusion:\n  - {use: z_score, weights: {bm25: 0.7, vector: 0.35}}\n"


def values(text: str) -> list[str]:
    return [line.partition("  #")[0].strip() for line in text.splitlines()]


@pytest.mark.requirement("P2")
def test_what_a_file_weighs_anew_leaves_the_other_weights_and_show_and_diff_say_all_of_them(
    run: Run, tmp_path: Path
) -> None:
    file = write_file(tmp_path / "halves.yaml", HALVES)
    document = run("pipeline", "diff", "default", file, "--json").json
    assert (document["same"], document["diff"]) == (True, "")
    shown = values(run("pipeline", "show", "--pipeline", file, "--effective", "--origin").out)
    start = shown.index("weights:")
    assert sorted(shown[start + 1 : start + 10]) == [
        "bm25: 0.7", "constitutional: 0.0", "dated: 10.0", "graph: 0.1", "identifier: 0.0", "phrase: 4.0",
        "surface: 0.0", "trigger: 1.0", "vector: 0.35",
    ]  # fmt: skip
    file.write_text(HALVES.replace("use: z_score", "use: z_score, id: mine"))
    lines = [line.strip() for line in run("pipeline", "diff", "default", file).out.splitlines()]
    assert {"+    mine.weights.graph: 1.0", "+    mine.weights.identifier: 1.0"} <= set(lines)
    file.write_text(HALVES.replace("bm25: 0.7", "bm25: 0.5"))
    assert run("pipeline", "diff", "default", file).out.splitlines()[3:] == [
        "   z_score (use: z_score)",
        "-    z_score.weights.bm25: 0.7",
        "+    z_score.weights.bm25: 0.5",
        "     z_score.weights.vector: 0.35",
    ]


@pytest.mark.requirement("P2", "P7")
@pytest.mark.parametrize(
    "command",
    ["pipeline show", "pipeline check default", "pipeline plan ranks", "search ranks", "doctor", "demo",
     "eval run --dataset {set}", "eval ablate --dataset {set}"],
)  # fmt: skip
@pytest.mark.usefixtures("exhaustive")
def test_every_command_that_sets_values_sets_one_key_of_a_mapping_and_refuses_one_that_is_none(
    command: str, run: Run, tmp_path: Path
) -> None:
    titles(tmp_path / "set", by_title=2, by_text=2)
    words = command.format(set=tmp_path / "set").split()
    run(*words, "--set", "z_score.weights.bm25=0.9", "--set", "bm25.fields.title=2").ok()
    refused = run(*words, "--set", "z_score.weights.bm52=0.9", "--set", "bm25.fields.titel=2")
    assert refused.status != 0
    told = refused.out + refused.err
    assert "did you mean 'bm25'?" in told
    assert "did you mean 'title'?" in told
